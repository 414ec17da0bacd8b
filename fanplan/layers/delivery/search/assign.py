"""Each class chooses channels in every domain, or unicast past the brokers.

What brokers have to carry depends on all domains together, so one domain changes at a time, until
no change helps.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.delivery.search.carry import (
    Desk,
    Network,
    Rates,
    State,
    Wishes,
    all_but,
    direct_price,
    gather,
    near,
    routed_price,
    through,
)

LESS = 1.0 - 1e-12
"""What is cheaper by more than rounding."""


@compiled
def assign(
    wishes: Wishes,
    network: Network,
    rates: Rates,
    state: State,
    sizes: Longs,
    desk: Desk,
) -> None:
    """Let classes choose among no channel, each single one, and one more or one less than today."""
    for c in range(len(state.past)):
        best, better = routed_price(wishes, network, rates, state, sizes, desk, c), True
        while better:
            better = False
            for k in range(wishes.starts[c], wishes.starts[c + 1]):
                if wishes.domain[k] >= 0:
                    price = move(wishes, network, rates, state, sizes, desk, c, k, best)
                    better |= price < best
                    best = price
        past = direct_price(wishes, rates, c)
        state.past[c] = past < best * LESS
        state.price[c] = min(past, best)


@compiled
def move(
    wishes: Wishes,
    network: Network,
    rates: Rates,
    state: State,
    sizes: Longs,
    desk: Desk,
    c: int,
    segment: int,
    best: float,
) -> float:
    """Give a segment the cheapest of its options; the price of its class then.

    What cannot be cheaper, whatever brokers it needs beside those of other segments, is not
    followed through them.
    """
    few, many = network.first[wishes.domain[segment] : wishes.domain[segment] + 2]
    today = state.sets[segment].copy()
    option = np.empty_like(today)
    rest, size, closed = all_but(wishes, rates, state, sizes, desk, c, segment)
    least = rest + through(wishes, network, rates, desk, c, size, closed)
    _, lone = gather(wishes, state.members, segment, today, desk.ends, size)
    people, hits = reached(wishes, state.members, segment, few, many)
    for j in range(few - 1, many):
        for kind in range(3 if j >= few else 1):
            if not propose(today, option, kind, j if j >= few else NONE):
                continue
            alone = people - hits[j - few + 1]
            if kind == 1:
                alone = max(lone - hits[j - few + 1], 0)
            elif kind == 2:
                alone = lone
            if least + wishes.total[c] * near(rates, sizes, option, alone) >= best * LESS:
                continue
            ends, alone = gather(wishes, state.members, segment, option, desk.ends, size)
            desk.closed[closed] = wishes.domain[segment]
            price = rest + wishes.total[c] * near(rates, sizes, option, alone)
            price += through(wishes, network, rates, desk, c, ends, closed + (ends == size))
            if price < best * LESS:
                best = price
                state.sets[segment] = option
    return best


@compiled
def reached(wishes: Wishes, members: Bools, segment: int, few: int, many: int) -> tuple[int, Longs]:
    """How many subscribers a segment has, and how many each channel has; first that of none."""
    first, last = wishes.bounds[wishes.runs[segment]], wishes.bounds[wishes.runs[segment + 1]]
    hits = np.zeros(many - few + 1, np.int64)
    for j in range(few, many):
        own = members[j]
        for h in wishes.people[first:last]:
            hits[j - few + 1] += own[h]
    return last - first, hits


@compiled
def propose(today: Ints, option: Ints, kind: int, channel: int) -> bool:
    """Write an option: the channel alone, or today's with it, or without it; False: there is none.

    NONE alone is no channel at all.
    """
    option[:] = NONE
    if kind == 0:
        option[0] = channel
        return True
    size, there = 0, False
    for j in today:
        if j == channel:
            there = True
        elif j != NONE:
            option[size] = j
            size += 1
    if kind == 1 and not there and 0 < size < len(option):
        option[size] = channel
        return True
    return kind == 2 and there and size > 0
