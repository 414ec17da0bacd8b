"""Selectors: SQL-92 / JMS style filters over the attributes of a topic.

See docs/selectors.md for the language and docs/decisions/0002-selectors.md for the choices.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from fanplan.workload.selector.boxes import compile_tree
from fanplan.workload.selector.parse import parse
from fanplan.workload.selector.tree import SelectorError, check_tree, predicates, without_absent
from fanplan.workload.space import Box, Space

__all__ = ["Meaning", "SelectorError", "attributes_of", "compile_selector", "meaning_of"]


def compile_selector(
    text: str | None, space: Space, max_boxes: int, absent: Set[str] = frozenset()
) -> tuple[Box, ...]:
    """The disjoint boxes in which a filter is true, sorted by their low ends.

    Filters that mean the same give the same boxes, and no two boxes could be one. No filter, or a
    blank one, means everything. Attributes in ``absent`` are known, but this space lacks them.
    Raises SelectorError.
    """
    tree = without_absent(parse(text), absent) if absent else parse(text)
    check_tree(tree, space)
    return compile_tree(tree, space, max_boxes)


def attributes_of(text: str | None) -> frozenset[str]:
    """Names of the attributes that a filter uses. Raises SelectorError on a syntax error."""
    return frozenset(question.attribute for question in predicates(parse(text)))


class Meaning(NamedTuple):
    """What a filter means in one space: its boxes, or why there are none.

    It *applies* to a space that has all its attributes; None if it cannot be read. A pattern may
    reach other spaces too; there it has the boxes, if any, where it holds without the missing
    attributes.
    """

    applies: bool | None = None
    boxes: tuple[Box, ...] | None = None
    error: str | None = None


def meaning_of(text: str | None, space: Space, max_boxes: int, known: Set[str]) -> Meaning:
    """The meaning of a filter in a space; ``known`` are the attributes of all spaces."""
    try:
        missing = attributes_of(text) - space.axes.keys()
    except SelectorError as unreadable:
        return Meaning(error=str(unreadable))
    boxes, error = _boxes_or_error(text, space, max_boxes)
    if missing and missing <= known:
        boxes, _ = _boxes_or_error(text, space, max_boxes, missing)
    return Meaning(not missing, boxes, error)


def _boxes_or_error(
    text: str | None, space: Space, max_boxes: int, absent: Set[str] = frozenset()
) -> tuple[tuple[Box, ...] | None, str | None]:
    try:
        return compile_selector(text, space, max_boxes, absent), None
    except SelectorError as error:
        return None, str(error)
