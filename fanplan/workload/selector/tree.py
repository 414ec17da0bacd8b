"""The parse tree of a selector, whether it makes sense in a space, and the one error it raises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from fanplan.core.errors import shorten
from fanplan.workload.space import Attribute, CategoryAttribute, NumberAttribute, Space


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


def without_absent(node: Node, absent: Set[str], negated: bool = False) -> Node:
    """The tree without questions about absent attributes, true at the same points.

    A pattern may reach topics of several spaces. Where a topic has no such attribute the value is
    NULL, a question about it is neither true nor false, and the filter holds only if the rest of it
    suffices: the three-valued logic of SQL-92 and JMS.

    NOT is moved down to the questions first. What is left above them can only grow with them, so
    a question that is neither true nor false may be taken as false.
    """
    if isinstance(node, Not):
        return without_absent(node.items[0], absent, not negated)
    if isinstance(node, Compound):
        turned = Or if isinstance(node, And) == negated else And
        items = tuple(without_absent(item, absent, negated) for item in node.items)
        return turned(items, 1 + max(item.depth for item in items))
    if isinstance(node, Constant):
        return Constant(node.value != negated)
    if node.attribute in absent:
        return Constant(False)
    return Not((node,), 2) if negated else node


def check_tree(tree: Node, space: Space) -> None:
    """Raise SelectorError at the first unknown attribute, wrong type or unknown value."""
    for question in predicates(tree):
        axis = space.axes.get(question.attribute)
        if axis is None:
            raise _unknown(question, space)
        attribute = space.attributes[axis]
        if isinstance(attribute, NumberAttribute):
            _check_number(question, attribute)
        else:
            _check_category(question, attribute)


def literals(question: Question) -> tuple[Literal, ...]:
    if isinstance(question, Compare):
        return (question.literal,)
    if isinstance(question, Between):
        return (question.low, question.high)
    return question.literals if isinstance(question, In) else ()


def _unknown(question: Question, space: Space) -> SelectorError:
    known = f"has {_first_names(list(space.axes))}" if space.axes else "has no attributes"
    name = shorten(question.attribute)
    return SelectorError(
        f"unknown attribute {name}: the topic {known}", question.position, question.attribute
    )


def _check_number(question: Question, attribute: Attribute) -> None:
    if isinstance(question, Like):
        raise SelectorError(
            f"{attribute.name} is a number: LIKE needs a category",
            question.position,
            attribute.name,
        )
    for literal in literals(question):
        if isinstance(literal.value, str):
            raise SelectorError(
                f"{attribute.name} is a number: it cannot be compared with the string "
                f"'{shorten(literal.value)}'",
                literal.position,
                attribute.name,
            )


def _check_category(question: Question, attribute: CategoryAttribute) -> None:
    if isinstance(question, Between) or (
        isinstance(question, Compare) and question.operator not in ("=", "<>")
    ):
        found = "BETWEEN" if isinstance(question, Between) else question.operator
        raise SelectorError(
            f"{attribute.name} is a category: its values have no order, so {found} is not "
            "possible; use =, <>, IN or LIKE",
            question.position,
            attribute.name,
        )
    for literal in literals(question):
        if literal.value not in attribute.positions:
            raise _bad_value(literal, attribute)


def _bad_value(literal: Literal, attribute: CategoryAttribute) -> SelectorError:
    if isinstance(literal.value, str):
        reason = (
            f"unknown value '{shorten(literal.value)}' of {attribute.name}: "
            f"it is one of {_first_names([repr(value) for value in attribute.values])}"
        )
    else:
        reason = (
            f"{attribute.name} is a category: it cannot be compared with the number "
            f"{as_written(literal.value)}; write values in single quotes"
        )
    return SelectorError(reason, literal.position, attribute.name)


def _first_names(names: list[str], limit: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(shorten(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
