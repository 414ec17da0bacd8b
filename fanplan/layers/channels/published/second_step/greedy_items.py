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
