"""Content spaces: attributes, coordinates and boxes.

Every attribute is an axis of float64 coordinates: a number is its own coordinate, a category value
is its position in the list of values. Every interval is half-open, ``lo <= x < hi``. That loses
nothing: over float64, ``x > 10`` is ``x >= nextafter(10)``, and ``x <= 20`` is
``x < nextafter(20)``. So a box is two vectors, its end points are exact, grid cells tile an axis
without gaps, and no kernel needs to know about open and closed ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property


def just_above(x: float) -> float:
    """The next float64: turns ``> x`` into ``>=`` and ``<= x`` into ``<``. Never -0.0."""
    return math.nextafter(x, math.inf) + 0.0


@dataclass(frozen=True)
class NumberAttribute:
    """A number with a closed domain [min, max]."""

    name: str
    min: float
    max: float
    unit: str = ""

    @property
    def lo(self) -> float:
        return self.min

    @property
    def hi(self) -> float:
        return just_above(self.max)

    @property
    def size(self) -> float:
        """Measure of the whole domain, in units."""
        return self.max - self.min


@dataclass(frozen=True)
class CategoryAttribute:
    """One of a list of values; its coordinate is its position in that list."""

    name: str
    values: tuple[str, ...]

    @cached_property
    def positions(self) -> dict[str, int]:
        return {value: position for position, value in enumerate(self.values)}

    @property
    def lo(self) -> float:
        return 0.0

    @property
    def hi(self) -> float:
        return float(len(self.values))

    @property
    def size(self) -> float:
        return float(len(self.values))


Attribute = NumberAttribute | CategoryAttribute


@dataclass(frozen=True)
class Space:
    """The attributes of a topic, in order, and the cells per axis of its uniform grid.

    A space without attributes is plain topic-based messaging: one cell, the topic itself.
    """

    attributes: tuple[Attribute, ...] = ()
    cells: tuple[int, ...] = ()

    @property
    def dimensions(self) -> int:
        return len(self.attributes)

    @cached_property
    def axes(self) -> dict[str, int]:
        """Position of each attribute, by name."""
        return {attribute.name: axis for axis, attribute in enumerate(self.attributes)}

    def axis(self, name: str) -> int | None:
        """Position of an attribute, or None if the space has none of that name."""
        return self.axes.get(name)

    def whole(self) -> Box:
        """The box that holds every point of the space."""
        return Box(tuple(a.lo for a in self.attributes), tuple(a.hi for a in self.attributes))


PLAIN = Space()


@dataclass(frozen=True)
class Box:
    """A region: ``lo[i] <= x[i] < hi[i]`` on every axis."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
