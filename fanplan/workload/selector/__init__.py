"""Selectors: SQL-92 / JMS style filters over the attributes of a topic.

See docs/selectors.md for the language and docs/decisions/0002-selectors.md for the choices.
"""

from __future__ import annotations

from collections.abc import Set

from fanplan.workload.selector.boxes import compile_tree
from fanplan.workload.selector.parse import parse
from fanplan.workload.selector.tree import SelectorError, check_tree, predicates, without_absent
from fanplan.workload.space import Box, Space

__all__ = ["SelectorError", "attributes_of", "compile_selector"]


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
