"""Maximum closures by minimum cuts (Picard 1976), with the flow of Dinic (1970).

Gains flow along requirements to losses. A requirement carries any amount. What flows can also flow
back. When no gain is left that could still flow to a loss, exactly the items from which nothing
could flow to a loss are the best closed set, and of all best sets it is the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bools, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.search.requirements import Requirements, distribute, turned_around


class Flow(NamedTuple):
    """A flow under way: ``left`` is the gain (or minus the loss) of each item that is not used up.

    ``starts`` and ``items`` are the relation, ``flow`` what flows along each of its pairs. ``ends``
    and ``pairs`` list for each item the pairs that require it, and ``owners`` who does. ``level``
    is how many steps lead from an item into a loss, ``turn`` which step it tries next.
    """

    left: Longs
    starts: Longs
    items: Longs
    flow: Longs
    ends: Longs
    pairs: Longs
    owners: Longs
    level: Longs
    turn: Longs


def largest_closure(relation: Requirements, gain: Longs, parts: Longs) -> Bools:
    """The items of the largest closed set with the most gain.

    A set is closed if it has all that its items require. Items ``parts[k]:parts[k + 1]`` require
    only each other, and each such part is solved on its own.
    """
    back = turned_around(relation)
    pairs = distribute(back.starts[:-1].copy(), relation.items, np.arange(len(relation.items)))
    flow = Flow(
        gain.copy(),
        relation.starts,
        relation.items,
        np.zeros(len(relation.items), np.int64),
        back.starts,
        pairs,
        back.items,
        np.zeros(len(gain), np.int64),
        np.zeros(len(gain), np.int64),
    )
    solve_parts(flow, parts)
    result: Bools = flow.level == NONE
    return result


@compiled
def solve_parts(flow: Flow, parts: Longs) -> None:
    """The greatest flow in each part; afterwards levels are those of what is left."""
    room = np.diff(parts).max() if len(parts) > 1 else 0
    queue, path = np.empty(room, np.int64), np.empty(room, np.int64)
    for part in range(len(parts) - 1):
        first, last = parts[part], parts[part + 1]
        while set_levels(flow, first, last, queue):
            flow.turn[first:last] = 0
            for item in range(first, last):
                while flow.left[item] > 0 and send_gain(flow, item, path):
                    pass


@compiled
def set_levels(flow: Flow, first: int, last: int, queue: Longs) -> bool:
    """Steps into the nearest loss that is left, breadth first; whether a gain can get there.

    A loss itself is one step away, and its level is 1: no step leads to a level of 0.
    """
    # From the losses backwards: after the last flow the items not reached are the closure.
    flow.level[first:last] = NONE
    found = 0
    for item in range(first, last):
        if flow.left[item] < 0:
            flow.level[item] = 1
            queue[found] = item
            found += 1
    useful = False
    done = 0
    while done < found:
        item = queue[done]
        done += 1
        useful |= flow.left[item] > 0
        for at in range(flow.ends[item], flow.ends[item + 1]):
            other = flow.owners[at]
            if flow.level[other] == NONE:
                flow.level[other] = flow.level[item] + 1
                queue[found] = other
                found += 1
        for pair in range(flow.starts[item], flow.starts[item + 1]):
            other = flow.items[pair]
            if flow.flow[pair] > 0 and flow.level[other] == NONE:
                flow.level[other] = flow.level[item] + 1
                queue[found] = other
                found += 1
    return useful


@compiled
def send_gain(flow: Flow, source: int, path: Longs) -> bool:
    """Send gain from an item along one shortest path; false if none is left at these levels."""
    here, length = source, 0
    while flow.left[here] >= 0:
        there = next_step(flow, here)
        if there != NONE:
            path[length] = here
            length += 1
            here = there
        elif length == 0:
            return False
        else:
            # A dead end is not tried again before levels are set anew.
            length -= 1
            here = path[length]
            flow.turn[here] += 1
    amount = min(flow.left[source], -flow.left[here])
    for i in range(length):
        back = pair_back(flow, path[i])
        if back != NONE:
            amount = min(amount, flow.flow[back])
    for i in range(length):
        back = pair_back(flow, path[i])
        if back != NONE:
            flow.flow[back] -= amount
        else:
            flow.flow[flow.starts[path[i]] + flow.turn[path[i]]] += amount
    flow.left[source] -= amount
    flow.left[here] += amount
    return True


@compiled
def next_step(flow: Flow, here: int) -> int:
    """The next item on a shortest path, along a requirement or back; NONE if there is none."""
    ahead = flow.starts[here + 1] - flow.starts[here]
    steps = ahead + flow.ends[here + 1] - flow.ends[here]
    while flow.turn[here] < steps:
        turn = flow.turn[here]
        if turn < ahead:
            there, open_ = flow.items[flow.starts[here] + turn], True
        else:
            at = flow.ends[here] + turn - ahead
            there, open_ = flow.owners[at], flow.flow[flow.pairs[at]] > 0
        if open_ and flow.level[there] == flow.level[here] - 1:
            result: int = there
            return result
        flow.turn[here] += 1
    return NONE


@compiled
def pair_back(flow: Flow, here: int) -> int:
    """The pair that an item's step goes back along; NONE if it goes along a requirement."""
    ahead = flow.starts[here + 1] - flow.starts[here]
    turn = flow.turn[here]
    return NONE if turn < ahead else flow.pairs[flow.ends[here] + turn - ahead]
