"""The search (Guimarães & Rodrigues 2003, Figure 1), as a state that can be carried on anywhere.

Islands are states of their own: advance each, let the best migrate, advance again.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.published.genetic.genes import Genes
from fanplan.layers.channels.published.genetic.operators import breed, wheel
from fanplan.layers.channels.published.genetic.params import EvolutionParams
from fanplan.layers.channels.published.genetic.quality import used_channels

NO_SECTORS = np.empty(0)
DIGITS = 12
"""Costs that differ by rounding alone are ties; they are compared to so many digits."""


@dataclass(frozen=True, eq=False)
class State:
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


def start(genes: Genes, params: EvolutionParams, seed: int, island: int = 0) -> State:
    """The first population of an island."""
    rng = np.random.default_rng([seed, island])
    drawn = genes.first(params, rng)
    costs = np.zeros((params.population, params.channels))
    genes.evaluate(drawn, np.ones(costs.shape, dtype=np.bool_), costs, params, rng)
    order = ranked(genes, drawn, costs)
    drawn, costs = drawn[order], costs[order]
    cost = float(costs[0].sum())
    return State(genes, params, rng, drawn, costs, drawn[0], cost, cost)


def advance(state: State, iterations: int, stop: Stop = never) -> State:
    """The state after so many iterations, or fewer if a stop rule holds. The given one stays."""
    state = replace(state, rng=deepcopy(state.rng))
    for _ in range(iterations):
        if state.finished or stop(state.best_cost):
            break
        state = generation(state)
    return state


def generation(state: State) -> State:
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


def accept(state: State, children: Ints, costs: Floats) -> State:
    """The best maps of the old population live on, with the best children (*Acceptance*)."""
    elite = state.params.elitism
    order = ranked(state.genes, children, costs)[: len(children) - elite]
    population = np.concatenate((state.population[:elite], children[order]))
    costs = np.concatenate((state.costs[:elite], costs[order]))
    return settled(state, population, costs, state.iteration + 1)


def settled(state: State, population: Ints, costs: Floats, iteration: int) -> State:
    """The state with that population in order, and the best map seen."""
    order = ranked(state.genes, population, costs)
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


def ranked(genes: Genes, population: Ints, costs: Floats) -> Longs:
    """Positions of the maps, cheapest first; a tie goes to the one with fewer channels."""
    cost = np.round(costs.sum(axis=1) / genes.unit, DIGITS)
    return np.lexsort((used_channels(population, costs.shape[1]), cost))


def precedes(genes: Genes, map: Ints, cost: float, other: Ints, other_cost: float) -> bool:
    """Whether a map is better than another in that order."""
    a, b = (round(c / genes.unit, DIGITS) for c in (cost, other_cost))
    return a < b or (a == b and len(np.unique(map)) < len(np.unique(other)))


def migrate(states: list[State]) -> list[State]:
    """Each island's best map takes the place of the worst on the next island, in a ring."""
    if len(states) < 2:
        return states
    return [welcome(state, states[i - 1]) for i, state in enumerate(states)]


def welcome(state: State, guest: State) -> State:
    population, costs = state.population.copy(), state.costs.copy()
    population[-1], costs[-1] = guest.population[0], guest.costs[0]
    return settled(state, population, costs, state.iteration)


def best(states: list[State]) -> State:
    """The state with the best map; of equals the first."""
    winner = states[0]
    for state in states[1:]:
        if precedes(state.genes, state.best, state.best_cost, winner.best, winner.best_cost):
            winner = state
    return winner
