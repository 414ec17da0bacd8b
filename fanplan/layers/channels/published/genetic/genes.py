"""What is mapped to channels, and what a map of it costs: subscriptions, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.layers.channels.bits import set_bits
from fanplan.layers.channels.published.genetic.neighbours import neighbour_map
from fanplan.layers.channels.published.genetic.operators import first_population
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem
from fanplan.layers.channels.published.genetic.quality import update_costs, word_masks


class Genes(Protocol):
    """What the search needs to know. A map is a row of channel numbers, one per gene.

    ``chosen`` are the positions of the genes in their problem; ``unit`` is above the cost of any
    channel. ``evaluate`` writes the cost of the channels that changed, and may improve the maps.
    """

    @property
    def chosen(self) -> Longs: ...

    @property
    def unit(self) -> float: ...

    def first(self, params: Any, rng: Generator) -> Ints: ...

    def evaluate(
        self, population: Ints, changed: Bools, costs: Floats, params: Any, rng: Generator
    ) -> None: ...


@dataclass(frozen=True, eq=False)
class SubscriptionGenes:
    """Subscriptions as genes. Gene ``i`` is subscription ``chosen[i]``, to ``subject[i]``.

    ``members`` has who joins for each gene, ``audience`` who wants each row of ``weight``, as rows
    of bits. The rows that a gene covers are ``masks`` on the words ``words`` of such a row set,
    from ``starts[i]`` on. Memory: (genes + rows) × subscribers / 8 bytes, and the rows covered.
    """

    chosen: Longs
    subject: Longs
    members: Words
    audience: Words
    weight: Floats
    starts: Longs
    words: Longs
    masks: Words

    @property
    def unit(self) -> float:
        return float(self.weight.sum()) * 64 * self.audience.shape[1] or 1.0

    def first(self, params: Any, rng: Generator) -> Ints:
        """The first population of section 5.2; those by neighbourhood replace random maps."""
        others, channels = params.population - 1, params.channels
        made = first_population(self.subject, channels, others + 1, params.round_robin, rng)
        begin = 1 + round(params.round_robin * others)
        for map in made[begin : begin + round(params.neighbours * others)]:
            map[:] = neighbour_map(self.members, self.audience, self.weight, channels, rng)
        return made

    def evaluate(
        self, population: Ints, changed: Bools, costs: Floats, params: Any, rng: Generator
    ) -> None:
        sets = (self.members, self.audience, self.weight, self.starts, self.words, self.masks)
        update_costs(population, changed, costs, *sets)


def subscription_genes(
    problem: SubscriptionProblem, which: Longs, weight: Floats
) -> SubscriptionGenes:
    """The chosen subscriptions as genes; ``weight`` is that of each row."""
    users, interest = len(problem.interest.subscribers), problem.interest
    covered = problem.rows.take(which)
    return SubscriptionGenes(
        which,
        problem.topic[which].astype(np.int64),
        bits_of(problem.subscribers.take(which), users),
        bits_of(Lists(interest.indptr, interest.audience), users),
        weight,
        *word_masks(covered.starts, covered.values),
    )


def bits_of(sets: Lists, size: int) -> Words:
    """Sets as rows of bits."""
    bits = np.zeros((len(sets), (size + 63) // 64), dtype=np.uint64)
    set_bits(sets.starts, sets.values, bits)
    return bits


def map_costs(genes: SubscriptionGenes, population: Ints, channels: int) -> Floats:
    """C_g of every channel of every map; the cost of a map is the sum of its line."""
    costs = np.zeros((len(population), channels))
    sets = (genes.members, genes.audience, genes.weight, genes.starts, genes.words, genes.masks)
    update_costs(population, np.ones(costs.shape, dtype=np.bool_), costs, *sets)
    return costs
