"""The search (Guimarães & Rodrigues 2003, Figure 1), as a state that can be carried on anywhere.

Islands are states of their own: advance each, let the best migrate, advance again. A map is a row
of channel numbers, one per gene. That is the encoding of Figure 2 turned round: the genes of a
channel, in order, are where its number stands, so a gene is never lost or repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.published.genetic.genes import Genes, used_channels
from fanplan.layers.channels.published.genetic.params import EvolutionParams

NO_SECTORS = np.empty(0)
DIGITS = 12
"""Costs that differ by rounding alone are ties; they are compared to so many digits."""


@dataclass(frozen=True, eq=False)
class Generation:
    """A population, best map first, and all that is needed to go on. It can be pickled.

    ``costs`` are per map and channel; ``best`` is the best map seen, ``first_cost`` the least cost
    of the first population; ``stale`` counts iterations since the last improvement.
    """

    genes: Genes
    params: EvolutionParams
    rng: Generator
    population: Ints
    costs: Floats
    best: Ints
    best_cost: float
    first_cost: float
    iteration: int = 0
    stale: int = 0

    @property
    def finished(self) -> bool:
        """The stop rules of section 4, *Test*."""
        params = self.params
        tired = params.patience is not None and self.stale >= params.patience
        saved = self.first_cost - self.best_cost
        enough = params.improvement is not None and saved >= params.improvement * self.first_cost
        return self.iteration >= params.iterations or tired or (enough and saved > 0)


def start(genes: Genes, params: EvolutionParams, seed: int, island: int = 0) -> Generation:
    """The first population of an island."""
    rng = np.random.default_rng([seed, island])
    drawn = genes.first(params, rng)
    costs = np.zeros((params.population, params.channels))
    genes.evaluate(drawn, np.ones(costs.shape, dtype=np.bool_), costs, params, rng)
    order = rank_maps(genes, drawn, costs)
    drawn, costs = drawn[order], costs[order]
    cost = float(costs[0].sum())
    return Generation(genes, params, rng, drawn, costs, drawn[0], cost, cost)


def advance(state: Generation, iterations: int, stop: Stop = never) -> Generation:
    """The state after so many iterations, or fewer if a stop rule holds. The given one stays."""
    state = replace(state, rng=deepcopy(state.rng))
    for _ in range(iterations):
        if state.finished or stop(state.best_cost):
            break
        state = next_generation(state)
    return state


def next_generation(state: Generation) -> Generation:
    """Steps 15 and 12 to 13 of Figure 1: a new population, its fitness, and who is accepted."""
    params, genes = state.params, state.genes
    at = state.iteration
    by_roulette = at >= params.tournament * params.iterations
    children, costs, changed = breed(
        state.population,
        state.costs,
        wheel(state.costs.sum(axis=1)) if by_roulette else NO_SECTORS,
        params.better,
        params.crossover,
        params.points,
        at < params.permutation * params.iterations,
        params.mutation,
        params.mask,
        state.rng,
    )
    genes.evaluate(children, changed, costs, params, state.rng)
    return accept(state, children, costs)


@compiled
def breed(
    population: Ints,
    costs: Floats,
    sectors: Floats,
    better: float,
    crossover: float,
    points: int,
    permute: bool,
    mutation: float,
    mask: float,
    rng: Generator,
) -> tuple[Ints, Floats, Bools]:
    """As many children as there are maps, their parents' costs, and the channels that changed.

    Without sectors, parents are selected by tournament.
    """
    size, genes, channels = len(population), population.shape[1], costs.shape[1]
    children, inherited = np.empty_like(population), np.empty_like(costs)
    changed = np.zeros(costs.shape, dtype=np.bool_)
    same = np.arange(channels)
    parents = np.empty(2, dtype=np.int64)
    for k in range(0, size, 2):
        for i in range(2):
            drawn = roulette(sectors, rng) if len(sectors) else tournament(better, size, rng)
            parents[i] = drawn
        count = points if rng.random() < crossover else 0
        cuts = crossover_points(count, genes, rng)
        for i in range(min(2, size - k)):
            mine, other = parents[i], parents[1 - i]
            to = rng.permutation(channels) if permute else same
            inherited[k + i] = costs[mine]
            cross_over(
                population[mine],
                population[other],
                cuts,
                to,
                children[k + i],
                changed[k + i],
            )
            if rng.random() < mutation:
                mutate(children[k + i], channels, mask, rng, changed[k + i])
    return children, inherited, changed


def wheel(costs: Floats) -> Floats:
    """Ends of the roulette's sectors: as wide as a map is cheaper than the worst.

    The worst keeps a sector too, the mean width divided by the number of maps.
    """
    gain = costs.max() - costs
    least = gain.mean() / len(costs)
    return np.cumsum(gain + (least if least > 0 else 1.0))


@compiled
def tournament(better: float, size: int, rng: Generator) -> int:
    """Two at random; maps are ordered best first, and the better one wins mostly."""
    a, b = rng.integers(0, size), rng.integers(0, size)
    won = min(a, b) if rng.random() < better else max(a, b)
    return int(won)


@compiled
def roulette(sectors: Floats, rng: Generator) -> int:
    """The sector that a random point falls into."""
    at = np.searchsorted(sectors, rng.random() * sectors[-1], side="right")
    return int(min(at, len(sectors) - 1))


@compiled
def cross_over(
    mine: Ints, other: Ints, points: Longs, to: Longs, child: Ints, changed: Bools
) -> None:
    """A child of one parent, but for every second part between points, which is the other's.

    The points ascend. A part has the genes at both of its points; one without a second point goes
    on to the end. Channel g of the other's parts becomes ``to[g]``.
    """
    child[:] = mine
    for i in range(0, len(points), 2):
        end = points[i + 1] + 1 if i + 1 < len(points) else len(mine)
        for gene in range(points[i], end):
            channel = to[other[gene]]
            if channel != mine[gene]:
                child[gene] = channel
                changed[channel] = changed[mine[gene]] = True


@compiled
def crossover_points(count: int, genes: int, rng: Generator) -> Longs:
    """So many genes at random, ascending; one may be drawn twice."""
    points = np.empty(count, dtype=np.int64)
    for i in range(count):
        points[i] = rng.integers(0, genes)
    return np.sort(points)


@compiled
def mutate(map: Ints, channels: int, mask: float, rng: Generator, changed: Bools) -> None:
    """Two channels exchange the genes that a random mask selects."""
    if channels < 2:
        return
    a, b = rng.integers(0, channels), rng.integers(0, channels - 1)
    b += b >= a  # two different channels, all pairs equally likely
    for gene in range(len(map)):
        if (map[gene] == a or map[gene] == b) and rng.random() < mask:
            map[gene] = a + b - map[gene]
            changed[a] = changed[b] = True


def accept(state: Generation, children: Ints, costs: Floats) -> Generation:
    """The best maps of the old population live on, with the best children (*Acceptance*)."""
    elite = state.params.elitism
    order = rank_maps(state.genes, children, costs)[: len(children) - elite]
    population = np.concatenate((state.population[:elite], children[order]))
    costs = np.concatenate((state.costs[:elite], costs[order]))
    return ranked_generation(state, population, costs, state.iteration + 1)


def ranked_generation(
    state: Generation, population: Ints, costs: Floats, iteration: int
) -> Generation:
    """The state with that population in order, and the best map seen."""
    order = rank_maps(state.genes, population, costs)
    population, costs = population[order], costs[order]
    cost = float(costs[0].sum())
    better = precedes(state.genes, population[0], cost, state.best, state.best_cost)
    return replace(
        state,
        population=population,
        costs=costs,
        best=population[0] if better else state.best,
        best_cost=cost if better else state.best_cost,
        iteration=iteration,
        stale=0 if better else state.stale + iteration - state.iteration,
    )


def rank_maps(genes: Genes, population: Ints, costs: Floats) -> Longs:
    """Positions of the maps, cheapest first; a tie goes to the one with fewer channels."""
    cost = np.round(costs.sum(axis=1) / genes.unit, DIGITS)
    return np.lexsort((used_channels(population, costs.shape[1]), cost))


def precedes(genes: Genes, map: Ints, cost: float, other: Ints, other_cost: float) -> bool:
    """Whether a map is better than another in that order."""
    a, b = (round(c / genes.unit, DIGITS) for c in (cost, other_cost))
    return a < b or (a == b and len(np.unique(map)) < len(np.unique(other)))


def migrate(states: list[Generation]) -> list[Generation]:
    """Each island's best map takes the place of the worst on the next island, in a ring."""
    if len(states) < 2:
        return states
    return [welcome(state, states[i - 1]) for i, state in enumerate(states)]


def welcome(state: Generation, guest: Generation) -> Generation:
    population, costs = state.population.copy(), state.costs.copy()
    population[-1], costs[-1] = guest.population[0], guest.costs[0]
    return ranked_generation(state, population, costs, state.iteration)


def best_generation(states: Iterable[Generation]) -> Generation:
    """The state with the best map; of equals the first."""

    def better(winner: Generation, state: Generation) -> Generation:
        won = precedes(state.genes, state.best, state.best_cost, winner.best, winner.best_cost)
        return state if won else winner

    return reduce(better, states)
