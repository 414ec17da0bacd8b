"""Atomic volumes as genes: each goes to one channel, and a child settles before it is judged.

With one channel per volume C_g(map) is members × weight − what is wanted, and what a move changes
is known at once. So each child makes passes of the best single moves (K-means on the true cost,
Tock et al. 2005): the search is among settled maps, and crossover need not find every detail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.data.build import group_sums
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.published.genetic.problem import Lists
from fanplan.layers.channels.published.tock import NOWHERE, Assignment, put_row, reassign

FIRST_PASSES = 5


@dataclass(frozen=True, eq=False)
class RowGenes:
    """Rows of an interest problem as genes, with their audiences and rates.

    Rows with equal audiences are one gene, which loses nothing: both are best where the fewest
    would receive them. Row ``chosen[i]`` belongs to gene ``gene[i]``.
    """

    chosen: Longs
    gene: Longs
    audiences: Lists
    rate: Floats
    subscribers: int

    @property
    def unit(self) -> float:
        return float(self.rate.sum()) * self.subscribers or 1.0

    def first(self, params: Any, rng: Generator) -> Ints:
        """One flooding map; then volumes are placed one by one, in an order drawn for each map."""
        maps = np.full((params.population, len(self.rate)), NOWHERE, dtype=np.int32)
        costs = np.empty((params.population, params.channels))
        self.settle(maps[1:], costs[1:], FIRST_PASSES, rng)
        maps[0] = 0
        return maps

    def evaluate(
        self, population: Ints, _changed: Bools, costs: Floats, params: Any, rng: Generator
    ) -> None:
        self.settle(population, costs, params.passes, rng)

    def settle(self, population: Ints, costs: Floats, passes: int, rng: Generator) -> None:
        lists = self.audiences.starts, self.audiences.values
        settle_maps(population, costs, *lists, self.rate, self.subscribers, passes, rng)


def row_genes(problem: InterestProblem, which: Longs) -> RowGenes:
    """The chosen rows as genes."""
    _, first, gene = np.unique(problem.classes[which], return_index=True, return_inverse=True)
    return RowGenes(
        which,
        gene,
        Lists(problem.indptr, problem.audience).take(which[first]),
        group_sums(gene, problem.rates[which], len(first)),
        len(problem.subscribers),
    )


@compiled
def settle_maps(
    population: Ints,
    costs: Floats,
    indptr: Longs,
    audience: Ints,
    rate: Floats,
    subscribers: int,
    passes: int,
    rng: Generator,
) -> None:
    """Settle each map in place and write its costs. O(passes · audiences · channels) per map."""
    channels = costs.shape[1]
    for k in range(len(population)):
        state = Assignment(
            indptr,
            audience,
            rate,
            np.full(len(rate), NOWHERE, dtype=np.int32),
            np.zeros((subscribers, channels), dtype=np.int32),
            np.zeros((subscribers, channels), dtype=np.uint8),
            np.zeros(channels, dtype=np.int64),
            np.zeros(channels, dtype=np.float64),
        )
        for row in range(len(rate)):
            if population[k, row] != NOWHERE:
                put_row(state, row, population[k, row])
        for _ in range(passes):
            if reassign(state, rng.permutation(len(rate))) == 0:
                break
        population[k] = state.channel
        unwanted(state, costs[k])


@compiled
def unwanted(state: Assignment, costs: Floats) -> None:
    """What each channel's members receive and do not want; loads are summed afresh."""
    costs[:] = 0.0
    for row in range(len(state.rate)):
        channel = state.channel[row]
        strangers = state.sizes[channel] - (state.indptr[row + 1] - state.indptr[row])
        costs[channel] += state.rate[row] * strangers
