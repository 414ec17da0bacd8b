"""What a second step moves as a whole: a flow with all its subscribers, a subscriber with all its
flows, or a single pair of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.data.interest import InterestProblem

FLOW, USER, PAIR = 0, 1, 2


class Items(NamedTuple):
    """Item ``i`` consists of the pairs ``pairs[starts[i]:starts[i + 1]]``."""

    kind: int
    starts: Longs
    pairs: Longs
    weight: Floats
    """Messages needed to send the whole item by unicast (section 4.2)."""


def flow_items(problem: InterestProblem) -> Items:
    """One item per row of the problem: a flow, or all flows of an audience class."""
    weight = problem.messages * problem.audience_sizes
    return Items(FLOW, problem.indptr, np.arange(problem.nnz), weight)


def user_items(problem: InterestProblem) -> Items:
    """One item per subscriber."""
    users = len(problem.subscribers)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    weight = np.bincount(problem.audience, problem.messages[row], users).astype(np.float64)
    counts = np.bincount(problem.audience, minlength=users)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Items(USER, starts, np.argsort(problem.audience, kind="stable"), weight)


def pair_items(problem: InterestProblem) -> Items:
    """One item per (row, interested subscriber)."""
    weight = np.repeat(problem.messages, problem.audience_sizes)
    return Items(PAIR, np.arange(problem.nnz + 1), np.arange(problem.nnz), weight)
