"""Marks that are kept when publishers and subscribers come and go."""

from __future__ import annotations

import numpy as np

from fanplan.layers.marking.ledger import Bools, Counts
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.entangled import untangled
from fanplan.layers.marking.search.marking import LARGEST, gains
from fanplan.layers.marking.search.relation import relation_of


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
