"""The quality metric C(map) (Guimarães & Rodrigues 2003, section 3.6), compiled.

C_g(map) is the sum, over the members of a channel, of the weight of what is sent on the channel and
the member does not want. An atomic volume is sent on every channel with a gene that covers it. Sets
are rows of bits.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.kernels import compiled
from fanplan.layers.channels.bits import popcount


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
def update_costs(
    population: Ints,
    changed: Bools,
    costs: Floats,
    members: Words,
    audience: Words,
    weight: Floats,
    starts: Longs,
    words: Longs,
    masks: Words,
) -> None:
    """C_g of the channels that changed, for every map; the others keep their cost."""
    channels = costs.shape[1]
    joined = np.empty((channels, members.shape[1]), dtype=np.uint64)
    carried = np.empty((channels, (len(weight) + 63) >> 6), dtype=np.uint64)
    for k in range(len(population)):
        joined[:], carried[:] = 0, 0
        for gene in range(population.shape[1]):
            channel = population[k, gene]
            if changed[k, channel]:
                for word in range(members.shape[1]):
                    joined[channel, word] |= members[gene, word]
                for at in range(starts[gene], starts[gene + 1]):
                    carried[channel, words[at]] |= masks[at]
        for channel in range(channels):
            if changed[k, channel]:
                costs[k, channel] = channel_cost(
                    joined[channel], carried[channel], audience, weight
                )


@compiled
def channel_cost(joined: Words, carried: Words, audience: Words, weight: Floats) -> float:
    """Σ over rows of the weight times the members that do not want the row."""
    cost = 0.0
    for word in range(len(carried)):
        if carried[word]:
            for row in range(64 * word, min(64 * word + 64, len(weight))):
                if (carried[word] >> np.uint64(row & 63)) & np.uint64(1):
                    cost += weight[row] * strangers(joined, audience[row])
    return cost


@compiled
def strangers(joined: Words, wanted: Words) -> np.uint64:
    """How many members do not want it."""
    count = np.uint64(0)
    for word in range(len(joined)):
        count += popcount(joined[word] & ~wanted[word])  # type: ignore[call-arg]
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
