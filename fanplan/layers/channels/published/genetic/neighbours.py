"""A first map by the neighbourhood of subscribers (Guimarães & Rodrigues 2003, section 4).

The paper means geography, which decides on what is subscribed to (section 5.3). A dataset does not
say where a subscriber is, so neighbours are here those who want the same traffic.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.kernels import compiled


def neighbour_map(
    members: Words, audience: Words, weight: Floats, channels: int, rng: Generator
) -> Ints:
    """Each gene to the channel of the neighbourhood where most of its members are.

    ``members`` are bits per gene, ``audience`` bits per row. Neighbourhoods are around subscribers
    drawn at random, one per channel. O(rows · channels · subscribers).
    """
    users = np.flatnonzero(joined_users(members))
    centres = rng.permutation(users)[:channels]
    return most_members(members, neighbourhoods(audience, weight, centres, rng), channels)


def joined_users(members: Words) -> Ints:
    """Whether each subscriber is a member for some gene, as 0 or 1."""
    union = np.bitwise_or.reduce(members, axis=0).astype("<u8")
    return np.unpackbits(union.view(np.uint8), bitorder="little").astype(np.int32)


def neighbourhoods(audience: Words, weight: Floats, centres: Longs, rng: Generator) -> Longs:
    """The centre that each subscriber has most traffic in common with; if none, one at random."""
    shared = shared_traffic(audience, weight, centres)
    home = rng.integers(len(centres), size=len(shared))
    home = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), home)
    home[centres] = np.arange(len(centres))
    return home


@compiled
def holds(bits: Words, user: int) -> bool:
    """Whether the bit of a subscriber is set."""
    return bool((bits[user >> 6] >> np.uint64(user & 63)) & np.uint64(1))


@compiled
def shared_traffic(audience: Words, weight: Floats, centres: Longs) -> Floats:
    """The weight of the rows that each subscriber and each centre both want."""
    users = 64 * audience.shape[1]
    shared = np.zeros((users, len(centres)))
    for row in range(len(audience)):
        for i in range(len(centres)):
            if holds(audience[row], centres[i]):
                for user in range(users):
                    if holds(audience[row], user):
                        shared[user, i] += weight[row]
    return shared


@compiled
def most_members(members: Words, home: Longs, channels: int) -> Ints:
    """The neighbourhood with most members of each gene; of equals the first."""
    made = np.empty(len(members), dtype=np.int32)
    for gene in range(len(members)):
        count = np.zeros(channels, dtype=np.int64)
        for user in range(len(home)):
            if holds(members[gene], user):
                count[home[user]] += 1
        made[gene] = np.argmax(count)
    return made
