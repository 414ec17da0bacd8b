"""Greedy pair: move the single (flow, subscriber) pair whose move lowers the cost most."""

from __future__ import annotations

from fanplan.core.kernels import compiled
from fanplan.layers.channels.published.second_step.served import BY_UNICAST, Delivery


@compiled
def pair_change(state: Delivery, pair: int) -> float:
    """What moving a pair to unicast adds to the cost (Eq. 1), less than 0 if it pays. O(1).

    It can pay only if the subscriber then leaves the channel or the row does.
    """
    e = state.entry[pair]
    if e == BY_UNICAST:
        return 0.0
    j, rate = state.channel[e], state.rate[state.row[pair]]
    change = state.unicast * rate
    members = state.sizes[j]
    if state.needs[state.subscriber[pair], j] == 1:
        change -= state.received * state.loads[j]
        members -= 1
    if state.receivers[e] == 1:
        change -= rate * (state.sent + state.received * members)
    return change


@compiled
def flow_change(state: Delivery, row: int) -> float:
    """What moving a row to unicast adds to the cost (Eq. 1), less than 0 if it pays.

    The members of its channels no longer receive it, and those who needed nothing else leave.
    O(channels of the row).
    """
    rate = state.rate[row]
    change = 0.0
    for e in range(state.entries[row], state.entries[row + 1]):
        if state.receivers[e] > 0:
            j = state.channel[e]
            change += state.unicast * rate * state.receivers[e]
            change -= rate * (state.sent + state.received * state.sizes[j])
            change -= state.received * state.lone[e] * (state.loads[j] - rate)
    return change


@compiled
def user_change(state: Delivery, subscriber: int) -> float:
    """What moving a subscriber to unicast adds to the cost (Eq. 1), less than 0 if it pays.

    The subscriber leaves all channels, and rows that nobody else gets there leave them too.
    O(channels).
    """
    change = state.unicast * state.carried[subscriber]
    for j in range(len(state.sizes)):
        if state.needs[subscriber, j] > 0:
            others = state.sizes[j] - 1
            change -= state.received * state.loads[j]
            change -= state.sole[subscriber, j] * (state.sent + state.received * others)
    return change
