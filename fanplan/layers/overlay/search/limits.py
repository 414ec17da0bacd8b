"""What a tree of brokers must obey, and how far a tree is from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger
from fanplan.network.trees import Tree

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class TreeLimits:
    """Limits of a tree; None and empty mean there is none.

    ``degree`` is for all brokers, ``degrees`` for single ones by position. ``hops`` are (broker,
    broker, most hops between them), by position.
    """

    degree: int | None = None
    degrees: tuple[tuple[int, int], ...] = ()
    diameter: int | None = None
    hops: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        least = min([n for n in (self.degree, self.diameter) if n is not None], default=1)
        least = min([least, *(n for _, n in self.degrees), *(n for _, _, n in self.hops)])
        if least < 1:
            what = f"{least} is no limit that a tree can meet"
            raise InputError(Problem("limits", what, "Use degrees, diameters and hops from 1"))


class Rules(NamedTuple):
    """Limits as a search reads them: a degree for each broker, and pairs with their most hops."""

    degree: Longs
    diameter: int
    near: Ints
    far: Ints
    hops: Ints
    changes: int


def rules_of(limits: TreeLimits, brokers: int, most_changes: int | None = None) -> Rules:
    degree = np.full(brokers, NO_LIMIT if limits.degree is None else limits.degree, dtype=np.int64)
    for broker, most in limits.degrees:
        degree[broker] = most
    pairs = np.array(limits.hops, dtype=np.int32).reshape(-1, 3)
    apart = pairs[pairs[:, 0] != pairs[:, 1]]
    diameter = NO_LIMIT if limits.diameter is None else limits.diameter
    near, far, hops = (np.ascontiguousarray(column) for column in apart.T)
    changes = NO_LIMIT if most_changes is None else most_changes
    return Rules(degree, diameter, near, far, hops, changes)


@dataclass(frozen=True)
class Excess:
    """By how much a tree breaks each rule; 0 where it holds."""

    degree: int
    diameter: int
    hops: int
    bandwidth: int
    """links with more messages than they carry"""
    changes: int = 0

    @property
    def total(self) -> int:
        return self.degree + self.diameter + self.hops + self.bandwidth + self.changes


def excess(
    problem: OverlayProblem,
    tree: Tree,
    rules: Rules,
    ledger: OverlayLedger,
    degrees: Longs,
    changed: int,
) -> Excess:
    """How far a tree is from obeying, given the links that count at each broker.

    O(brokers × pairs).
    """
    return Excess(
        int(np.maximum(degrees - rules.degree, 0).sum()),
        max(0, tree.diameter - rules.diameter) if rules.diameter < NO_LIMIT else 0,
        too_many_hops(tree, rules),
        int((load_of(problem, ledger) > bandwidths(problem, tree) * (1 + 1e-12)).sum()),
        max(0, changed - rules.changes),
    )


def too_many_hops(tree: Tree, rules: Rules) -> int:
    """By how many hops in all pairs are further apart than they may be."""
    pairs = zip(rules.near, rules.far, rules.hops, strict=True)
    return sum(max(0, int(tree.hops(near)[far]) - int(most)) for near, far, most in pairs)


def load_of(problem: OverlayProblem, ledger: OverlayLedger) -> Floats:
    """Messages per second on each link, both ways together."""
    return np.asarray(ledger.link.sum(axis=1) / problem.seconds)


def bandwidths(problem: OverlayProblem, tree: Tree) -> Floats:
    """Messages per second that each link of a tree can carry."""
    links = problem.links
    if links is None:
        return np.full(len(tree.a), np.inf)
    return links.bandwidth[problem.given(tree.edges)]
