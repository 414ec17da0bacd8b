"""Filters over topics that lack some of their attributes.

A pattern may reach topics of several spaces. Where a topic has no such attribute the value is NULL,
a question about it is neither true nor false, and the filter holds only if the rest of it suffices:
the three-valued logic of SQL-92 and JMS.
"""

from __future__ import annotations

from collections.abc import Set

from fanplan.workload.selector.tree import And, Compound, Constant, Node, Not, Or


def settle(node: Node, absent: Set[str], negated: bool = False) -> Node:
    """The tree without questions about absent attributes, true at the same points.

    NOT is moved down to the questions first. What is left above them can only grow with them, so
    a question that is neither true nor false may be taken as false.
    """
    if isinstance(node, Not):
        return settle(node.items[0], absent, not negated)
    if isinstance(node, Compound):
        turned = Or if isinstance(node, And) == negated else And
        items = tuple(settle(item, absent, negated) for item in node.items)
        return turned(items, 1 + max(item.depth for item in items))
    if isinstance(node, Constant):
        return Constant(node.value != negated)
    if node.attribute in absent:
        return Constant(False)
    return Not((node,), 2) if negated else node
