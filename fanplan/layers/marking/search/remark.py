"""A marking kept right while clients come and go: only what changed is solved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fanplan.core.arrays import Bools, Longs
from fanplan.layers.marking.ledger import Counts, descriptor_counts
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.entangled import Entangled, in_parts, untangled
from fanplan.layers.marking.search.marking import (
    LARGEST,
    Marking,
    decided,
    exact_marking,
    gains,
    parts,
    shared_marking,
)
from fanplan.layers.marking.search.relation import relation_of


def remark(old: MarkingProblem, marking: Marking, new: MarkingProblem) -> Marking:
    """The best marking of a problem, from that of an earlier one over the same nodes.

    The same as the exact marking. Counts and links that are decided on their own are taken anew,
    which is linear. Of the entangled parts those that are as they were keep their marks, and only
    the others are solved. On a shared tree every link is decided on its own.
    """
    if new.shared:
        even = (new.publication_price == new.subscription_price).all()
        return shared_marking(new) if even else exact_marking(new)
    counts, relation = descriptor_counts(new), relation_of(new)
    gain = gains(new, counts)
    publish, knots = untangled(relation, gain)
    known = known_parts(old, marking)
    changed = np.zeros(new.size, bool)
    for items, print_ in part_prints(new, gain, knots):
        if print_ in known:
            publish[items] = known[print_]
        else:
            changed[items] = True
    left = in_parts(relation, changed)
    publish[left.items] = ~largest_closure(left.relation, gain[left.items], left.starts)
    return decided(new, counts, publish, parts(knots, new.size))


def known_parts(problem: MarkingProblem, marking: Marking) -> dict[bytes, Bools]:
    """The marks of each entangled part that a marking has, by its print."""
    if problem.shared:
        return {}
    gain = gains(problem, Counts(marking.sigma, marking.tau))
    _, knots = untangled(relation_of(problem), gain)
    return {p: marking.publish[items] for items, p in part_prints(problem, gain, knots)}


def part_prints(
    problem: MarkingProblem, gain: Longs, knots: Entangled
) -> Iterator[tuple[Longs, bytes]]:
    """The links of each part in the order of their ends, and all that its marks follow from.

    That is: the ends of the links, their gains, and who requires whom.
    """
    ends = problem.tail.astype(np.int64) * len(problem.nodes) + problem.head
    relation = knots.relation
    for start, end in zip(knots.starts[:-1].tolist(), knots.starts[1:].tolist(), strict=True):
        order = start + np.argsort(ends[knots.items[start:end]])
        place = np.empty(end - start, np.int64)
        place[order - start] = np.arange(end - start)
        pairs = slice(relation.starts[start], relation.starts[end])
        owner = np.repeat(place, np.diff(relation.starts[start : end + 1]))
        required = np.sort(owner * (end - start) + place[relation.items[pairs] - start])
        items = knots.items[order]
        yield items, b"".join(a.tobytes() for a in (ends[items], gain[items], required))


def kept_marking(problem: MarkingProblem, counts: Counts, publish: Bools, known: Bools) -> Bools:
    """The p-links of the cheapest valid marking among those that change the fewest known marks.

    ``publish`` has the p-links among links whose mark is ``known``; others have none yet. A known
    mark weighs more than all costs together, so that one minimum cut settles both. Costs have 40
    bits with a million links, and less where those are more.
    """
    gain = gains(problem, counts)
    room = LARGEST // (problem.size + 1)
    gain >>= max(0, int(np.abs(gain).sum()).bit_length() - room.bit_length() + 2)
    weight = int(np.abs(gain).sum()) + 1
    gain += weight * np.where(known, np.where(publish, -1, 1), 0)
    relation = relation_of(problem)
    full = np.concatenate((gain, np.zeros(relation.size - problem.size, np.int64)))
    found, knots = untangled(relation, full)
    closed = largest_closure(knots.relation, full[knots.items], knots.starts)
    found[knots.items] = ~closed
    return found[: problem.size]
