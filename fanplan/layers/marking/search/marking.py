"""The best marking: greedy on a shared tree, exact by minimum cuts on any trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.ledger import Counts, descriptor_counts, link_costs, marking_cost
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.entangled import Entangled, untangled
from fanplan.layers.marking.search.relation import Relation, relation_of

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
    publish = gains(problem, counts) < 0
    return decided(problem, counts, publish, np.full(problem.size, NONE))


def exact_marking(problem: MarkingProblem, counts: Counts | None = None) -> Marking:
    """The best marking; of equally good ones that with the most s-links, which is only one.

    ``counts`` are the descriptors that links have in either role; those of the trees if not given.
    Almost all links are decided by what they cost and require. What is left is solved by minimum
    cuts, part by part. Near linear where parts are small.
    """
    counts = counts or descriptor_counts(problem)
    relation = relation_of(problem)
    gain = np.zeros(relation.size, np.int64)
    gain[: problem.size] = gains(problem, counts)
    publish, knots = best_links(relation, gain)
    part = parts(knots, relation.size)[: problem.size]
    return decided(problem, counts, publish[: problem.size], part)


def best_links(relation: Relation, gain: Longs) -> tuple[Bools, Entangled]:
    """The p-links of the best marking with the most s-links, and what was entangled."""
    publish, knots = untangled(relation, gain)
    closed = largest_closure(knots.relation, gain[knots.items], knots.starts)
    publish[knots.items] = ~closed
    return publish, knots


def decided(problem: MarkingProblem, counts: Counts, publish: Bools, part: Longs) -> Marking:
    return Marking(publish, *counts, marking_cost(problem, counts, publish), part)


def parts(knots: Entangled, size: int) -> Longs:
    """The number of the entangled part that each item is in, or NONE."""
    part = np.full(size, NONE, np.int64)
    part[knots.items] = np.repeat(np.arange(len(knots.starts) - 1), np.diff(knots.starts))
    return part


def gains(problem: MarkingProblem, counts: Counts) -> Longs:
    """What each link saves as an s-link (the paper's η), as whole numbers.

    Exact if prices are whole numbers. Others are scaled by a power of two, to 60 bits in all.
    """
    as_publication, as_subscription = link_costs(problem, counts)
    return whole(as_publication - as_subscription)


def whole(gain: Floats) -> Longs:
    """Gains as whole numbers, scaled if they are none."""
    if not (gain == np.rint(gain)).all() or np.abs(gain).sum() >= LARGEST:
        gain = np.ldexp(gain, 60 - int(np.frexp(np.abs(gain).sum())[1]))
    return np.rint(gain).astype(np.int64)
