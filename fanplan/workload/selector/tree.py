"""The parse tree of a selector, and the one error that selectors raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


def shorten(text: str, limit: int = 40) -> str:
    """At most ``limit`` characters, for use inside a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def as_written(number: float | str) -> str:
    """A literal without a superfluous ``.0``, for use inside a message."""
    return repr(number).removesuffix(".0")


class SelectorError(ValueError):
    """A filter that cannot be used: why, where in its text, and which attribute it is about.

    ``position`` counts characters from 1.
    """

    def __init__(
        self, reason: str, position: int | None = None, attribute: str | None = None
    ) -> None:
        self.reason = reason if position is None else f"{reason} (at character {position})"
        self.position = position
        self.attribute = attribute
        super().__init__(reason, position, attribute)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a string as written in the filter."""

    value: float | str
    position: int


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE or FALSE."""

    value: bool
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Predicate:
    """A question about one attribute; ``position`` is where its name stands."""

    attribute: str
    position: int

    @property
    def depth(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """``attribute operator literal``, with the attribute on the left."""

    operator: str
    literal: Literal


@dataclass(frozen=True, slots=True)
class Between(Predicate):
    """``low <= attribute <= high``."""

    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """The attribute equals one of the literals."""

    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    """The whole of a category's value matches the pattern."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Compound:
    """A node above others; ``depth`` counts the levels below it and itself."""

    items: tuple[Node, ...]
    depth: int


class Not(Compound):
    """True where its only item is false."""


class And(Compound):
    """True where all items are true."""


class Or(Compound):
    """True where at least one item is true."""


Question = Compare | Between | In | Like
Node = Constant | Question | Not | And | Or


def predicates(node: Node) -> Iterator[Question]:
    """All predicates of a tree, in the order of the text."""
    if isinstance(node, Not | And | Or):
        for item in node.items:
            yield from predicates(item)
    elif not isinstance(node, Constant):
        yield node
