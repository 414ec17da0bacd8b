"""Greedy user: move the subscriber whose move lowers the cost most."""

from __future__ import annotations

from fanplan.core.kernels import compiled
from fanplan.layers.channels.published.second_step.served import Delivery


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
