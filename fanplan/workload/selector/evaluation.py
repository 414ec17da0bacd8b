"""Is a selector true at a point? Answered from the parse tree, without boxes.

This is the meaning of a selector; what the box compiler produces is tested against it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from fanplan.workload.selector.tree import (
    And,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Node,
    Not,
    Or,
    Question,
)

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_true(node: Node, point: Mapping[str, float | str]) -> bool:
    """The truth of a checked tree at a point that has a value for every attribute."""
    match node:
        case Constant(value):
            return value
        case Not():
            return not is_true(node.items[0], point)
        case And():
            return all(is_true(item, point) for item in node.items)
        case Or():
            return any(is_true(item, point) for item in node.items)
    return _holds(node, point[node.attribute])


def _holds(question: Question, x: Any) -> bool:
    match question:
        case Compare():
            return COMPARISONS[question.operator](x, question.literal.value)
        case Between():
            return bool(question.low.value <= x <= question.high.value)
        case In():
            return any(x == literal.value for literal in question.literals)
        case Like():
            return question.pattern.fullmatch(x) is not None
