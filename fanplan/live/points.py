"""Attributes of a publication as coordinates in the space of its topic, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from fanplan.core.arrays import Floats, Longs
from fanplan.core.errors import InputError, Problem, readable, similar
from fanplan.workload.space import Attribute, CategoryAttribute, Space

Value = str | float
Attributes = Mapping[str, Value]


Axis = tuple[str, float, float, Mapping[str, int] | None]
"""An attribute: its name, its domain, and the places of a category's values."""


def axis_of(attribute: Attribute) -> Axis:
    if isinstance(attribute, CategoryAttribute):
        return attribute.name, 0.0, float(len(attribute.values)), attribute.positions
    return attribute.name, attribute.min, attribute.max, None


@dataclass(frozen=True)
class Topics:
    """The topics of a plan by name, and the space of each by number."""

    names: tuple[str, ...]
    spaces: tuple[Space, ...]
    space_of: tuple[int, ...]

    @cached_property
    def number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def find(self, topic: str) -> int:
        """The number of a topic. An unknown one is refused: nobody knows who asked for it."""
        number = self.number.get(topic)
        if number is None:
            remedy = similar(topic, self.names) or "Plan again with a workload that has it"
            raise InputError(Problem(f"topic {readable(topic)!r}", "is not in the plan", remedy))
        return number

    def space(self, number: int) -> Space:
        return self.spaces[self.space_of[number]]

    @cached_property
    def _axes(self) -> list[tuple[Axis, ...]]:
        """Of each topic what `point` needs: this is done for every publication."""
        by_space = [tuple(map(axis_of, space.attributes)) for space in self.spaces]
        return [by_space[space] for space in self.space_of]

    def point(self, number: int, given: Attributes) -> tuple[float, ...]:
        """The coordinates of a publication; all that its topic has must be given, and no others."""
        axes = self._axes[number]
        if len(given) != len(axes):
            self._refuse(number, given)
        found = []
        try:
            for name, low, high, places in axes:
                value = given[name]
                at = value if places is None else places[value]  # type: ignore[index]
                if not low <= at <= high:  # type: ignore[operator]
                    raise ValueError
                # Adding zero turns minus zero into zero.
                found.append(at + 0.0)  # type: ignore[operator]
        except (KeyError, ValueError, TypeError):
            return self._checked(number, given)
        return tuple(found)

    def _checked(self, number: int, given: Attributes) -> tuple[float, ...]:
        """The same, with words for what is wrong."""
        try:
            return tuple([coordinate(a, given[a.name]) for a in self.space(number).attributes])
        except KeyError:
            self._refuse(number, given)

    def columns(
        self, topics: Sequence[str], given: Mapping[str, ArrayLike], width: int
    ) -> tuple[Longs, Floats]:
        """Numbers of topics and rows of coordinates, NaN beyond their attributes.

        Topics must have the same attributes, of which there is a column each.
        """
        numbers = np.fromiter(map(self.number.get, topics, repeat(-1)), np.int64, len(topics))
        for wrong in np.flatnonzero(numbers < 0)[:1]:
            self.find(topics[int(wrong)])
        used = {self.space_of[number] for number in np.unique(numbers).tolist()}
        if len(used) > 1:
            what = "are topics with different attributes"
            raise InputError(Problem("topics", what, "Send each kind by itself"))
        x = np.full((len(topics), width), np.nan)
        for space in used:
            attributes = self.spaces[space].attributes
            if {a.name for a in attributes} != given.keys():
                self._refuse(int(numbers[0]), dict.fromkeys(given, 0.0))
            for axis, attribute in enumerate(attributes):
                x[:, axis] = column_coordinates(attribute, given[attribute.name], len(topics))
        return numbers, x

    def _refuse(self, number: int, given: Attributes) -> NoReturn:
        known = [attribute.name for attribute in self.space(number).attributes]
        where = f"a publication on {readable(self.names[number])}"
        missing = [Problem(where, f"has no {n}", "Give it") for n in known if n not in given]
        more = [
            Problem(
                where,
                f"has {n!r}, which the topic does not have",
                similar(n, known) or "Leave it out",
            )
            for n in given
            if n not in known
        ]
        raise InputError(missing + more)

    def attributes(self, topic: str, x: tuple[float, ...]) -> dict[str, Value]:
        """The attributes that coordinates stand for."""
        space = self.space(self.find(topic))
        return {a.name: value_of(a, at) for a, at in zip(space.attributes, x, strict=True)}


def coordinate(attribute: Attribute, value: Value) -> float:
    """Where a value lies on its axis. Adding zero turns minus zero into zero."""
    if isinstance(attribute, CategoryAttribute):
        place = attribute.positions.get(value) if isinstance(value, str) else None
        if place is None:
            remedy = f"Give one of {', '.join(map(readable, attribute.values[:10]))}"
            raise _wrong(attribute, value, "is not one of its values", remedy)
        return float(place)
    # A text is no measurement, nor is nothing; a NaN is in no domain.
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not attribute.min <= number <= attribute.max:
        domain = f"a number from {attribute.min!r} to {attribute.max!r}"
        raise _wrong(attribute, value, f"is not {domain}", f"Give {domain}")
    return number + 0.0


def column_coordinates(attribute: Attribute, values: ArrayLike, count: int) -> Floats:
    """The same for a column of values."""
    column = np.asarray(values)
    if column.shape != (count,):
        what = f"has {column.size:,} values for {count:,} topics"
        raise InputError(Problem(attribute.name, what, "Give one for each"))
    if isinstance(attribute, CategoryAttribute):
        places = attribute.positions
        return np.array([_place(attribute, places, value) for value in column.tolist()], np.float64)
    if column.dtype.kind not in "fiu":
        raise _wrong(attribute, str(column[:1]), "is not a column of numbers", "Give numbers")
    found: Floats = column.astype(np.float64) + 0.0
    # A NaN is in no domain.
    for wrong in found[~((attribute.min <= found) & (found <= attribute.max))][:1]:
        coordinate(attribute, float(wrong))
    return found


def _place(attribute: CategoryAttribute, places: Mapping[str, int], value: str) -> float:
    place = places.get(value)
    return coordinate(attribute, value) if place is None else float(place)


def _wrong(attribute: Attribute, value: Value, what: str, remedy: str) -> InputError:
    return InputError(Problem(attribute.name, f"{readable(str(value))} {what}", remedy))


def value_of(attribute: Attribute, at: float) -> Value:
    return attribute.values[int(at)] if isinstance(attribute, CategoryAttribute) else at
