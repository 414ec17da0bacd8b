"""Names and types: does a parse tree make sense in a content space?"""

from __future__ import annotations

from fanplan.workload.selector.tree import (
    Between,
    Compare,
    In,
    Like,
    Literal,
    Node,
    Question,
    SelectorError,
    as_written,
    predicates,
    shorten,
)
from fanplan.workload.space import Attribute, CategoryAttribute, NumberAttribute, Space


def check(tree: Node, space: Space) -> None:
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
    known = f"has {_listed(list(space.axes))}" if space.axes else "has no attributes"
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
            f"it is one of {_listed([repr(value) for value in attribute.values])}"
        )
    else:
        reason = (
            f"{attribute.name} is a category: it cannot be compared with the number "
            f"{as_written(literal.value)}; write values in single quotes"
        )
    return SelectorError(reason, literal.position, attribute.name)


def _listed(names: list[str], limit: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(shorten(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
