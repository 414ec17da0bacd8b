"""The best marking: greedy on a shared tree, exact by minimum cuts on any trees.

While clients come and go a marking is kept right by solving only what changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.ledger import (
    DescriptorCounts,
    cost_of_marks,
    descriptor_counts,
    link_costs,
)
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.requirements import (
    Entangled,
    Requirements,
    by_parts,
    requirements_of,
    untangled,
)

LARGEST = 2**61
"""Gains are scaled so that all of them together stay below this."""


@dataclass(frozen=True, eq=False)
class Marking:
    """Which links are p-links, and what that costs; all others are s-links.

    ``sigma`` and ``tau`` are the descriptors on each link if all are p-links, or all s-links.
    ``part`` numbers the entangled links that had to be decided together; NONE for a link that was
    decided on its own.
    """

    publish: Bools
    sigma: Longs
    tau: Longs
    cost: float
    part: Longs


def shared_marking(problem: MarkingProblem) -> Marking:
    """The best marking of a shared tree, each link on its own. O(links).

    Figure 4 of Ge et al. (2002): a p-link if it costs less as such; ties are s-links. That relies
    on monotonicity, which holds if a descriptor costs the same in both roles.
    """
    if not problem.shared or (problem.publication_price != problem.subscription_price).any():
        what = "links of these trees cannot be decided each on its own"
        raise InputError(Problem("trees", what, "Use the exact marking"))
    counts = descriptor_counts(problem)
    publish = whole_gains(problem, counts) < 0
    return decided_marking(problem, counts, publish, np.full(problem.size, NONE))


def exact_marking(problem: MarkingProblem, counts: DescriptorCounts | None = None) -> Marking:
    """The best marking; of equally good ones that with the most s-links, which is only one.

    ``counts`` are the descriptors that links have in either role; those of the trees if not given.
    Almost all links are decided by what they cost and require. What is left is solved by minimum
    cuts, part by part. Near linear where parts are small.
    """
    counts = counts or descriptor_counts(problem)
    relation = requirements_of(problem)
    gain = np.zeros(relation.size, np.int64)
    gain[: problem.size] = whole_gains(problem, counts)
    publish, knots = best_links(relation, gain)
    part = part_numbers(knots, relation.size)[: problem.size]
    return decided_marking(problem, counts, publish[: problem.size], part)


def best_links(relation: Requirements, gain: Longs) -> tuple[Bools, Entangled]:
    """The p-links of the best marking with the most s-links, and what was entangled."""
    publish, knots = untangled(relation, gain)
    closed = largest_closure(knots.relation, gain[knots.items], knots.starts)
    publish[knots.items] = ~closed
    return publish, knots


def decided_marking(
    problem: MarkingProblem, counts: DescriptorCounts, publish: Bools, part: Longs
) -> Marking:
    return Marking(publish, *counts, cost_of_marks(problem, counts, publish), part)


def part_numbers(knots: Entangled, size: int) -> Longs:
    """The number of the entangled part that each item is in, or NONE."""
    part = np.full(size, NONE, np.int64)
    part[knots.items] = np.repeat(np.arange(len(knots.starts) - 1), np.diff(knots.starts))
    return part


def whole_gains(problem: MarkingProblem, counts: DescriptorCounts) -> Longs:
    """What each link saves as an s-link (the paper's η), as whole numbers.

    Exact if prices are whole numbers. Others are scaled by a power of two, to 60 bits in all.
    """
    as_publication, as_subscription = link_costs(problem, counts)
    return as_whole_numbers(as_publication - as_subscription)


def as_whole_numbers(gain: Floats) -> Longs:
    """Gains as whole numbers, scaled if they are none."""
    if not (gain == np.rint(gain)).all() or np.abs(gain).sum() >= LARGEST:
        gain = np.ldexp(gain, 60 - int(np.frexp(np.abs(gain).sum())[1]))
    return np.rint(gain).astype(np.int64)


# ---- from an earlier marking


def remark(old: MarkingProblem, marking: Marking, new: MarkingProblem) -> Marking:
    """The best marking of a problem, from that of an earlier one over the same nodes.

    The same as the exact marking. Counts and links that are decided on their own are taken anew,
    which is linear. Of the entangled parts those that are as they were keep their marks, and only
    the others are solved. On a shared tree every link is decided on its own.
    """
    if new.shared:
        even = (new.publication_price == new.subscription_price).all()
        return shared_marking(new) if even else exact_marking(new)
    counts, relation = descriptor_counts(new), requirements_of(new)
    gain = whole_gains(new, counts)
    publish, knots = untangled(relation, gain)
    known = known_parts(old, marking)
    changed = np.zeros(new.size, bool)
    for items, print_ in part_prints(new, gain, knots):
        if print_ in known:
            publish[items] = known[print_]
        else:
            changed[items] = True
    left = by_parts(relation, changed)
    publish[left.items] = ~largest_closure(left.relation, gain[left.items], left.starts)
    return decided_marking(new, counts, publish, part_numbers(knots, new.size))


def known_parts(problem: MarkingProblem, marking: Marking) -> dict[bytes, Bools]:
    """The marks of each entangled part that a marking has, by its print."""
    if problem.shared:
        return {}
    gain = whole_gains(problem, DescriptorCounts(marking.sigma, marking.tau))
    _, knots = untangled(requirements_of(problem), gain)
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


def kept_marking(
    problem: MarkingProblem, counts: DescriptorCounts, publish: Bools, known: Bools
) -> Bools:
    """The p-links of the cheapest valid marking among those that change the fewest known marks.

    ``publish`` has the p-links among links whose mark is ``known``; others have none yet. A known
    mark weighs more than all costs together, so that one minimum cut settles both. Costs have 40
    bits with a million links, and less where those are more.
    """
    gain = whole_gains(problem, counts)
    room = LARGEST // (problem.size + 1)
    gain >>= max(0, int(np.abs(gain).sum()).bit_length() - room.bit_length() + 2)
    weight = int(np.abs(gain).sum()) + 1
    gain += weight * np.where(known, np.where(publish, -1, 1), 0)
    relation = requirements_of(problem)
    full = np.concatenate((gain, np.zeros(relation.size - problem.size, np.int64)))
    return best_links(relation, full)[0][: problem.size]
