"""The genetic operators (Guimarães & Rodrigues 2003, section 4).

A map is a row of channel numbers, one per gene. That is the encoding of Figure 2 turned round: the
genes of a channel, in order, are where its number stands, so a gene is never lost or repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled


def first_population(
    subject: Longs, channels: int, size: int, round_robin: float, rng: Generator
) -> Ints:
    """One flooding map, then maps that deal out subjects in turn, then random ones (section 5.2).

    The first deals out the subjects as they come, the others in an order drawn for each.
    """
    names, of = np.unique(subject, return_inverse=True)
    made = rng.integers(channels, size=(size, len(subject)), dtype=np.int32)
    made[0] = 0
    for k in range(1, 1 + round(round_robin * (size - 1))):
        turn = np.arange(len(names)) if k == 1 else rng.permutation(len(names))
        made[k] = (turn % channels)[of]
    return made


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
def exchange(
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
    b += b >= a
    for gene in range(len(map)):
        if (map[gene] == a or map[gene] == b) and rng.random() < mask:
            map[gene] = a + b - map[gene]
            changed[a] = changed[b] = True


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
            exchange(
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
