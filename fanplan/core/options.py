"""Options stated once: name, type, unit, default, limits and meaning of each, in one frozen class.

From such a class come the flags of a command, the keywords of the Python interface, the record in a
plan, the words of errors and the tables in the documentation. This module imports nothing heavy, so
that help answers at once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib import import_module
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from fanplan.core.errors import InputError, Problem, similar

Read = Callable[[Any], Any]
LIMITS: dict[str, Callable[[float, float], bool]] = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
}


@dataclass(frozen=True)
class About:
    """What is said of an option beside its name, type and default.

    ``flag`` is how the command line spells it if not by its name, ``read`` makes its value from the
    words given there, ``many``: they may be given several times. ``shown`` is the default in words.
    ``kept``: a plan records it; "whether" records only that it was given, "names" only its keys.
    ``also`` are names that errors of the search use for it.
    """

    help: str
    unit: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    metavar: str | None = None
    flag: str | None = None
    read: Read | None = None
    many: bool = False
    shown: str | None = None
    kept: bool | Literal["whether", "names"] = True
    also: tuple[str, ...] = ()


def option(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    **about: Any,
) -> Any:
    """A field with its meaning and its range; further words are those of `About`."""
    limits = {"at least": at_least, "more than": above, "at most": at_most}
    given = {name: bound for name, bound in limits.items() if bound is not None}
    said = About(help, limits=given, **about)
    if isinstance(default, dict | Options):
        return field(default_factory=lambda: default, metadata={"about": said})
    return field(default=default, metadata={"about": said})


def required(help: str, **about: Any) -> Any:
    """A field that must be given."""
    return option(MISSING, help, **about)


@dataclass(frozen=True)
class Options:
    """Options that are checked when they are made: all that is wrong is told at once."""

    def __post_init__(self) -> None:
        kinds = types_of(type(self))
        values = [(item, getattr(self, item.name)) for item in fields(self)]
        problems = [p for item, value in values for p in mistyped(item, kinds[item.name], value)]
        odd = {problem.where for problem in problems}
        for item, value in values:
            problems += [] if item.name in odd else out_of_range(item, value)
        if not odd:
            problems += self.relations()
        if problems:
            raise InputError(problems)

    def relations(self) -> Iterator[Problem]:
        """Problems between options; it meets values of the right type, in range or not."""
        return iter(())

    @classmethod
    def given(cls, values: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Self:
        """Options from keywords; None is not given. What is unknown is refused by name."""
        known = [item.name for item in fields(cls)]
        unknown = [name for name in values if name not in known]
        if unknown:
            raise InputError(unknown_option(name, known, renamed or {}) for name in unknown)
        kinds = types_of(cls)
        return cls(**{name: as_kind(kinds[name], v) for name, v in values.items() if v is not None})

    def recorded(self) -> dict[str, Any]:
        """The options as a plan stores them."""
        return {
            item.name: kept_value(getattr(self, item.name), about(item).kept)
            for item in fields(self)
            if about(item).kept
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A section of a plan holds options as they were recorded."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._from_record,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda options: options.recorded()
            ),
        )

    @classmethod
    def _from_record(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ValueError("options are a mapping")
        lacking = [item.name for item in fields(cls) if default_of(item) is MISSING]
        if lost := [name for name in lacking if value.get(name) is None]:
            raise ValueError(f"lacks {', '.join(lost)}")
        try:
            return cls.given(value)
        except InputError as error:
            raise ValueError(str(error)) from error


GIVEN = "given"
"""What a plan records of an option whose value is of no use later: a folder, for example."""


def about(item: Field[Any]) -> About:
    said: About = item.metadata["about"]
    return said


def default_of(item: Field[Any]) -> Any:
    """The default of an option; MISSING if it must be given."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def types_of(options: type[Options]) -> dict[str, Any]:
    """The type of every option."""
    return get_type_hints(options)


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def choices_of(kind: Any) -> tuple[str, ...]:
    """The words that an option may be, if only some may."""
    return tuple(
        word for own in kinds_of(kind) if get_origin(own) is Literal for word in get_args(own)
    )


def as_kind(kind: Any, value: Any) -> Any:
    """What JSON and callers write in plainer ways: options as mappings, tuples as lists."""
    if isinstance(kind, type) and issubclass(kind, Options) and isinstance(value, Mapping):
        return kind.given(value)
    if isinstance(value, list) and any(get_origin(own) is tuple for own in kinds_of(kind)):
        return tuple(value)
    return value


def unknown_option(name: str, known: list[str], renamed: Mapping[str, str]) -> Problem:
    if name in renamed:
        field, _, price = renamed[name].partition(".")
        now = f"{field}={{{price!r}: …}}" if price else field
        return Problem(name, f"is now {now}", f"Write {now}")
    remedy = similar(name, known) or f"Use one of: {', '.join(known)}"
    return Problem(name, "no such option", remedy)


def kept_value(value: Any, kept: bool | Literal["whether", "names"]) -> Any:
    if kept == "whether":
        return GIVEN if value else None
    if kept == "names":
        return dict.fromkeys(sorted(value), GIVEN)
    if isinstance(value, Options):
        return value.recorded()
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    return list(value) if isinstance(value, tuple | list) else value


# ---- what is wrong with one option


def mistyped(item: Field[Any], kind: Any, value: Any) -> Iterator[Problem]:
    """What is wrong with the type of a value."""
    kinds, words = kinds_of(kind), choices_of(kind)
    if (isinstance(value, str) and value in words) or any(fits(own, value) for own in kinds):
        return
    if words:
        yield Problem(item.name, f"{value!r} is unknown", f"Use one of: {', '.join(words)}")
    else:
        meant = next((NUMBERS[own] for own in kinds if own in NUMBERS), "what its help says")
        yield Problem(item.name, f"{value!r} is not {meant}", f"Give {meant}")


NUMBERS: dict[Any, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "a text",
}


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of a plain type; what is in containers is for `relations` to see."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, Integral)
    if kind is float:
        return isinstance(value, Real) and math.isfinite(value)
    if kind in (None, NoneType):
        return value is None
    own = get_origin(kind) or kind
    return own is Any or (isinstance(own, type) and isinstance(value, own))


MOST = 1 << 53
"""Whole numbers beyond are not exact everywhere: in JSON, in floats, in compiled code."""


def out_of_range(item: Field[Any], value: Any) -> Iterator[Problem]:
    if isinstance(value, Integral) and abs(int(value)) > MOST:
        yield Problem(item.name, f"{str(value)[:20]}… is out of range", f"Give at most {MOST}")
        return
    for limit, bound in about(item).limits.items():
        if isinstance(value, Real) and not LIMITS[limit](float(value), bound):
            yield Problem(item.name, f"{value} is out of range", f"Give {limit} {bound}")


# ---- commands


@dataclass(frozen=True)
class Command:
    """A command that plans: its name, its options, and what it does, in a sentence.

    ``seeded``: it draws at random; ``timed``: its search can be ended. ``compare`` names what
    stands beside the plan unless said otherwise, ``comparable`` refuses names that cannot.
    ``explains`` says what can be explained. ``swept`` is the option of which several values give a
    curve. ``rehearsed``: its kernels are worth compiling while Spark works. ``renamed`` has older
    keywords, each with the option, or option and price, that it is now.
    """

    name: str
    params: type[Options]
    help: str
    seeded: bool = False
    timed: bool = False
    compare: str = ""
    compare_help: str = ""
    comparable: Callable[[list[str]], None] = lambda names: None
    explains: str = ""
    swept: str = ""
    rehearsed: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> list[str]:
        """What stands beside the plan unless said otherwise."""
        return self.compare.split(",") if self.compare else []

    def part(self, name: str) -> Any:
        """A module of the layer that states the command: one beside its options."""
        return import_module(f"{self.params.__module__.rpartition('.')[0]}.{name}")
