"""Greedy flow: move the flow whose move lowers the cost most."""

from __future__ import annotations

from fanplan.core.kernels import compiled
from fanplan.layers.channels.published.second_step.served import Delivery


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
