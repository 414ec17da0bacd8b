"""From a parse tree to disjoint boxes.

A set of points is held axis by axis, in the order of the space's attributes: sorted disjoint
intervals of the first axis, each with the set of points over the other axes that belongs to it.
Touching intervals with equal sets are joined. So there is exactly one way to write a set down,
its boxes are disjoint, and two operations suffice: meet and invert (``a OR b`` is
``NOT (NOT a AND NOT b)``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from fanplan.workload.selector.tree import (
    And,
    Between,
    Compare,
    Constant,
    In,
    Literal,
    Node,
    Not,
    Or,
    Question,
    SelectorError,
    as_written,
    predicates,
)
from fanplan.workload.space import Attribute, Box, CategoryAttribute, Space, just_above

Interval = tuple[float, float]
Ends = tuple[tuple[float, ...], tuple[float, ...]]  # a box: all low ends, all high ends
Part = tuple[tuple[float, float, Any], ...]  # (lo, hi, the Part over the other axes), …
NOTHING: Part = ()
POINT: Part = ((0.0, 0.0, None),)  # the only point of a space without axes

MAX_STEPS = 300_000


def compile_tree(tree: Node, space: Space, max_boxes: int) -> tuple[Box, ...]:
    """The boxes of a checked tree, sorted; no two of them could be one box.

    Raises SelectorError when there is none, or when there are more than ``max_boxes``.
    """
    builder = _Builder(space)
    boxes: list[Ends] = []
    for ends in _paths(builder.part(tree), (), ()):
        if len(boxes) == max_boxes:
            raise SelectorError(
                f"the filter needs more than {max_boxes} boxes: simplify it, or raise "
                "limits.max_boxes in workload.toml",
                1,
            )
        boxes.append(ends)
    if not boxes:
        raise _never_true(tree, space)
    return tuple(Box(lo, hi) for lo, hi in _joined(boxes))


class _Builder:
    """Builds the sets of one filter.

    Work is counted in intervals made; beyond MAX_STEPS (about half a second) the filter is
    refused, so that none can hold up a run.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.steps = 0
        self.whole = [POINT]  # [axis]: every point, over the axes from this one on
        for attribute in reversed(space.attributes):
            self.whole.insert(0, ((attribute.lo, attribute.hi, self.whole[0]),))

    def part(self, node: Node) -> Part:
        """The set of points where a tree is true."""
        match node:
            case And():
                return self._meet_all([self.part(item) for item in node.items])
            case Or():
                outside = [self._invert(self.part(item)) for item in node.items]
                return self._invert(self._meet_all(outside))
            case Not():
                return self._invert(self.part(node.items[0]))
            case Constant():
                return self.whole[0] if node.value else NOTHING
        return self._slab(node)

    def _slab(self, question: Question) -> Part:
        """Points whose coordinate on one axis answers a question."""
        axis = self.space.axes[question.attribute]
        answer = _intervals(question, self.space.attributes[axis])
        part = self._tidy(((lo, hi, self.whole[axis + 1]) for lo, hi in answer), axis)
        if part is NOTHING:
            return NOTHING
        for attribute in reversed(self.space.attributes[:axis]):
            part = ((attribute.lo, attribute.hi, part),)
        return part

    def _meet_all(self, parts: list[Part]) -> Part:
        """Pairwise, as a balanced tree: n small parts cost n log n, not n²."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            last = parts[-1:] if len(parts) % 2 else []
            parts = [self._meet(a, b) for a, b in pairs] + last
        return parts[0]

    def _meet(self, a: Part, b: Part, axis: int = 0) -> Part:
        """Points in both sets."""
        if a is self.whole[axis]:
            return b
        if b is self.whole[axis]:
            return a
        made = []
        i = j = 0
        while i < len(a) and j < len(b):
            a_lo, a_hi, a_rest = a[i]
            b_lo, b_hi, b_rest = b[j]
            lo, hi = max(a_lo, b_lo), min(a_hi, b_hi)
            if lo < hi:
                made.append((lo, hi, self._meet(a_rest, b_rest, axis + 1)))
            if a_hi <= b_hi:
                i += 1
            else:
                j += 1
        return self._tidy(made, axis)

    def _invert(self, a: Part, axis: int = 0) -> Part:
        """Points of the space that are not in a set."""
        if a is NOTHING or a is self.whole[axis]:
            return NOTHING if a else self.whole[axis]
        start, end, everything = self.whole[axis][0]
        made = []
        for lo, hi, rest in a:
            made += [(start, lo, everything), (lo, hi, self._invert(rest, axis + 1))]
            start = hi
        return self._tidy([*made, (start, end, everything)], axis)

    def _tidy(self, intervals: Iterable[tuple[float, float, Part]], axis: int) -> Part:
        """Without empty intervals, and with touching intervals joined where their rests agree."""
        kept: list[tuple[float, float, Part]] = []
        for lo, hi, rest in intervals:
            if lo >= hi or not rest:
                continue
            if kept and kept[-1][1] == lo and kept[-1][2] == rest:
                lo = kept.pop()[0]
            kept.append((lo, hi, rest))
        self.steps += len(kept)
        if self.steps > MAX_STEPS:
            raise SelectorError(
                f"the filter is too intricate (more than {MAX_STEPS} intervals): simplify it", 1
            )
        tidy = tuple(kept)
        return self.whole[axis] if tidy == self.whole[axis] else tidy


def _intervals(question: Question, attribute: Attribute) -> list[Interval]:
    """The coordinates that answer a question: sorted, disjoint, inside the domain."""
    if isinstance(attribute, CategoryAttribute):
        raw = [(float(i), i + 1.0) for i in _positions(question, attribute)]
    else:
        raw = _number_intervals(question)
    clipped = {(max(lo, attribute.lo), min(hi, attribute.hi)) for lo, hi in raw}
    return sorted((lo, hi) for lo, hi in clipped if lo < hi)


def _positions(question: Question, attribute: CategoryAttribute) -> Iterable[int]:
    """Positions of the values of a category that answer a question."""
    if isinstance(question, In):
        return [attribute.positions[str(literal.value)] for literal in question.literals]
    if isinstance(question, Compare):
        named = attribute.positions[str(question.literal.value)]
        if question.operator == "=":
            return [named]
        return [i for i in range(len(attribute.values)) if i != named]
    assert not isinstance(question, Between), "checked: a category has no order"
    return [i for i, value in enumerate(attribute.values) if question.pattern.fullmatch(value)]


def _number_intervals(question: Question) -> list[Interval]:
    """The numbers that answer a question, also outside the domain."""
    if isinstance(question, In):
        return [_closed(literal, literal) for literal in question.literals]
    if isinstance(question, Between):
        return [_closed(question.low, question.high)]
    assert isinstance(question, Compare), "checked: LIKE is for categories"
    at, above = _closed(question.literal, question.literal)
    return {
        "=": [(at, above)],
        "<>": [(-math.inf, at), (above, math.inf)],
        "<": [(-math.inf, at)],
        "<=": [(-math.inf, above)],
        ">": [(above, math.inf)],
        ">=": [(at, math.inf)],
    }[question.operator]


def _closed(low: Literal, high: Literal) -> Interval:
    """``low <= x <= high`` as a half-open interval."""
    return float(low.value), just_above(float(high.value))


def _paths(part: Part, lo: tuple[float, ...], hi: tuple[float, ...]) -> Iterator[Ends]:
    """The boxes of a set, one at a time."""
    if part is POINT:
        yield lo, hi
        return
    for low, high, rest in part:
        yield from _paths(rest, (*lo, low), (*hi, high))


def _joined(boxes: list[Ends]) -> list[Ends]:
    """Join boxes that touch along one axis and agree on the others, until there are none."""
    before = 0
    while len(boxes) != before and len(boxes) > 1:
        before = len(boxes)
        for axis in range(len(boxes[0][0])):
            boxes = _joined_along(axis, boxes)
    return sorted(boxes)


def _joined_along(axis: int, boxes: list[Ends]) -> list[Ends]:
    columns: dict[Ends, list[Ends]] = {}
    for lo, hi in sorted(boxes, key=lambda ends: ends[0][axis]):
        others = (lo[:axis] + lo[axis + 1 :], hi[:axis] + hi[axis + 1 :])
        column = columns.setdefault(others, [])
        if column and column[-1][1][axis] == lo[axis]:
            lo = column.pop()[0]
        column.append((lo, hi))
    return [ends for column in columns.values() for ends in column]


def _never_true(tree: Node, space: Space) -> SelectorError:
    """Names the first part that is empty on its own, if there is one."""
    for question in predicates(tree):
        attribute = space.attributes[space.axes[question.attribute]]
        if not _intervals(question, attribute):
            why = _why_empty(question, attribute)
            return SelectorError(
                f"the filter can never be true: {why}", question.position, attribute.name
            )
    return SelectorError("the filter can never be true: its conditions exclude each other", 1)


def _why_empty(question: Question, attribute: Attribute) -> str:
    if isinstance(attribute, CategoryAttribute):
        return f"no value of {attribute.name} matches the LIKE pattern"
    if isinstance(question, Between) and question.low.value > question.high.value:  # type: ignore[operator]
        low, high = as_written(question.low.value), as_written(question.high.value)
        return f"BETWEEN {low} AND {high} is empty"
    domain = f"from {as_written(attribute.min)} to {as_written(attribute.max)}"
    return f"the domain of {attribute.name} is {domain}"
