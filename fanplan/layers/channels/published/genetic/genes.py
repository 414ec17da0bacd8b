"""What is mapped to channels, and what a map of it costs: subscriptions, or atomic volumes.

Subscriptions, as in the paper: the quality metric C_g(map) of Guimarães & Rodrigues (2003), section
3.6, is the sum, over the members of a channel, of the weight of what is sent on the channel and the
member does not want. An atomic volume is sent on every channel with a gene that covers it. Sets are
rows of bits.

First maps may go by the neighbourhood of subscribers (section 4). The paper means geography, which
decides on what is subscribed to (section 5.3). Where subscribers have brokers, neighbours may be
those in the same place; otherwise they are those who want the same traffic.

Atomic volumes: each goes to one channel, and a child settles before it is judged. With one channel
per volume C_g(map) is members × weight − what is wanted, and what a move changes is known at once.
So each child makes passes of the best single moves (K-means on the true cost, Tock et al. 2005):
the search is among settled maps, and crossover need not find every detail.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.bits import bits_of_lists, has_bit, pairs_of_bits, popcount
from fanplan.core.kernels import compiled
from fanplan.data.build import group_sums
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem
from fanplan.layers.channels.published.tock import (
    NOWHERE,
    Assignment,
    nothing_assigned,
    put_row,
    reassign,
)

FIRST_PASSES = 5
"""Passes in which maps of atomic volumes settle at first."""


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


class SubscriptionGenes(NamedTuple):
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
    place: Longs
    """Where each subscriber is, −1 if that is not known; empty if nobody's place is."""

    @property
    def unit(self) -> float:
        return float(self.weight.sum()) * 64 * self.audience.shape[1] or 1.0

    def first(self, params: Any, rng: Generator) -> Ints:
        """The first population of section 5.2; those by neighbourhood replace random maps."""
        others, channels = params.population - 1, params.channels
        made = first_population(self.subject, channels, others + 1, params.round_robin, rng)
        begin = 1 + round(params.round_robin * others)
        for map in made[begin : begin + round(params.neighbours * others)]:
            by_place = params.near == "place"
            map[:] = (
                place_map(self, channels, rng) if by_place else neighbour_map(self, channels, rng)
            )
        return made

    def evaluate(
        self, population: Ints, changed: Bools, costs: Floats, _params: Any, _rng: Generator
    ) -> None:
        update_costs(self, population, changed, costs)


def subscription_genes(
    problem: SubscriptionProblem, which: Longs, weight: Floats
) -> SubscriptionGenes:
    """The chosen subscriptions as genes; ``weight`` is that of each row."""
    users, interest = len(problem.interest.subscribers), problem.interest
    covered, subscribers = problem.rows.take(which), problem.subscribers.take(which)
    return SubscriptionGenes(
        which,
        problem.topic[which].astype(np.int64),
        bits_of_lists(subscribers.starts, subscribers.values, users),
        bits_of_lists(interest.indptr, interest.audience, users),
        weight,
        *word_masks(covered.starts, covered.values),
        np.empty(0, dtype=np.int64) if problem.place is None else problem.place,
    )


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


def place_map(genes: SubscriptionGenes, channels: int, rng: Generator) -> Ints:
    """Each gene to the channel of the places where most of its members are.

    Places are dealt to channels in an order drawn at random; who has none gets any channel.
    """
    turn = rng.permutation(int(genes.place.max(initial=-1)) + 1) % channels
    anywhere = rng.integers(channels, size=len(genes.place))
    home = np.where(genes.place >= 0, turn[np.maximum(genes.place, 0)], anywhere)
    return most_members(genes.members, home, channels)


def neighbour_map(genes: SubscriptionGenes, channels: int, rng: Generator) -> Ints:
    """Each gene to the channel of the neighbourhood where most of its members are.

    Neighbourhoods are around subscribers drawn at random, one per channel. O(rows · channels ·
    subscribers).
    """
    users = np.unique(pairs_of_bits(genes.members)[1])
    centres = rng.permutation(users)[:channels]
    home = neighbourhoods(genes.audience, genes.weight, centres, rng)
    return most_members(genes.members, home, channels)


def neighbourhoods(audience: Words, weight: Floats, centres: Longs, rng: Generator) -> Longs:
    """The centre that each subscriber has most traffic in common with; if none, one at random."""
    shared = shared_traffic(audience, weight, centres)
    home = rng.integers(len(centres), size=len(shared))
    home = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), home)
    home[centres] = np.arange(len(centres))
    return home


@compiled
def shared_traffic(audience: Words, weight: Floats, centres: Longs) -> Floats:
    """The weight of the rows that each subscriber and each centre both want."""
    users = 64 * audience.shape[1]
    shared = np.zeros((users, len(centres)))
    for row in range(len(audience)):
        for i in range(len(centres)):
            if has_bit(audience[row], centres[i]):
                for user in range(users):
                    if has_bit(audience[row], user):
                        shared[user, i] += weight[row]
    return shared


@compiled
def most_members(members: Words, home: Longs, channels: int) -> Ints:
    """The neighbourhood with most members of each gene; of equals the first."""
    made = np.empty(len(members), dtype=np.int32)
    for gene in range(len(members)):
        count = np.zeros(channels, dtype=np.int64)
        for user in range(len(home)):
            if has_bit(members[gene], user):
                count[home[user]] += 1
        made[gene] = np.argmax(count)
    return made


def map_costs(genes: SubscriptionGenes, population: Ints, channels: int) -> Floats:
    """C_g of every channel of every map; the cost of a map is the sum of its line."""
    costs = np.zeros((len(population), channels))
    update_costs(genes, population, np.ones(costs.shape, dtype=np.bool_), costs)
    return costs


@compiled
def word_masks(starts: Longs, rows: Ints) -> tuple[Longs, Longs, Words]:
    """Ascending lists of rows as masks on words: consecutive rows share one."""
    first = np.zeros(len(starts), dtype=np.int64)
    words, masks = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.uint64)
    end = 0
    for i in range(len(starts) - 1):
        for row in rows[starts[i] : starts[i + 1]]:
            if end == first[i] or words[end - 1] != row >> 6:
                words[end] = row >> 6
                end += 1
            masks[end - 1] |= np.uint64(1) << np.uint64(row & 63)
        first[i + 1] = end
    return first, words[:end].copy(), masks[:end].copy()


@compiled
def update_costs(genes: SubscriptionGenes, population: Ints, changed: Bools, costs: Floats) -> None:
    """C_g of the channels that changed, for every map; the others keep their cost."""
    channels, width = costs.shape[1], genes.members.shape[1]
    joined = np.empty((channels, width), dtype=np.uint64)
    carried = np.empty((channels, (len(genes.weight) + 63) >> 6), dtype=np.uint64)
    for k in range(len(population)):
        joined[:], carried[:] = 0, 0
        for gene in range(population.shape[1]):
            channel = population[k, gene]
            if changed[k, channel]:
                for word in range(width):
                    joined[channel, word] |= genes.members[gene, word]
                for at in range(genes.starts[gene], genes.starts[gene + 1]):
                    carried[channel, genes.words[at]] |= genes.masks[at]
        for channel in range(channels):
            if changed[k, channel]:
                costs[k, channel] = channel_cost(genes, joined[channel], carried[channel])


@compiled
def channel_cost(genes: SubscriptionGenes, joined: Words, carried: Words) -> float:
    """Σ over rows of the weight times the members that do not want the row."""
    cost = 0.0
    for word in range(len(carried)):
        if carried[word]:
            for row in range(64 * word, min(64 * word + 64, len(genes.weight))):
                if has_bit(carried, row):
                    cost += genes.weight[row] * strangers(joined, genes.audience[row])
    return cost


@compiled
def strangers(joined: Words, wanted: Words) -> np.uint64:
    """How many members do not want it."""
    count = np.uint64(0)
    for word in range(len(joined)):
        count += popcount(joined[word] & ~wanted[word])
    return count


@compiled
def used_channels(population: Ints, channels: int) -> Longs:
    """How many channels each map uses."""
    used = np.zeros(len(population), dtype=np.int64)
    seen = np.zeros(channels, dtype=np.int64)
    for k in range(len(population)):
        for channel in population[k]:
            if seen[channel] <= k:
                seen[channel] = k + 1
                used[k] += 1
    return used


# ---- atomic volumes


class RowGenes(NamedTuple):
    """Rows of an interest problem as genes, with their audiences and rates.

    Rows with equal audiences are one gene, which loses nothing: both are best where the fewest
    would receive them. Row ``chosen[i]`` belongs to gene ``gene[i]``.
    """

    chosen: Longs
    gene: Longs
    indptr: Longs
    audience: Ints
    rate: Floats
    subscribers: int

    @property
    def unit(self) -> float:
        return float(self.rate.sum()) * self.subscribers or 1.0

    def first(self, params: Any, rng: Generator) -> Ints:
        """One flooding map; then volumes are placed one by one, in an order drawn for each map."""
        maps = np.full((params.population, len(self.rate)), NOWHERE, dtype=np.int32)
        costs = np.empty((params.population, params.channels))
        settle_maps(self, maps[1:], costs[1:], FIRST_PASSES, rng)
        maps[0] = 0
        return maps

    def evaluate(
        self, population: Ints, _changed: Bools, costs: Floats, params: Any, rng: Generator
    ) -> None:
        settle_maps(self, population, costs, params.passes, rng)


def row_genes(problem: InterestProblem, which: Longs) -> RowGenes:
    """The chosen rows as genes."""
    _, first, gene = np.unique(problem.classes[which], return_index=True, return_inverse=True)
    audiences = Lists(problem.indptr, problem.audience).take(which[first])
    rate = group_sums(gene, problem.rates[which], len(first))
    subscribers = len(problem.subscribers)
    return RowGenes(which, gene, audiences.starts, audiences.values, rate, subscribers)


@compiled
def settle_maps(
    genes: RowGenes, population: Ints, costs: Floats, passes: int, rng: Generator
) -> None:
    """Settle each map in place and write its costs. O(passes · audiences · channels) per map."""
    rows, channels = len(genes.rate), costs.shape[1]
    for k in range(len(population)):
        state = nothing_assigned(
            genes.indptr, genes.audience, genes.rate, genes.subscribers, channels
        )
        for row in range(rows):
            if population[k, row] != NOWHERE:
                put_row(state, row, population[k, row])
        for _ in range(passes):
            if reassign(state, rng.permutation(rows)) == 0:
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
