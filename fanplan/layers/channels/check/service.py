"""Who is served by a plan, and what that costs: the check's own count.

Written apart from the cost model on purpose: sorted lists and binary search here, bitmaps there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.check.evidence import Decisions, Truth
from fanplan.plan.findings import EXAMPLES

UNWANTED, NEEDED, DOUBLE = 0, 1, 2


@dataclass(frozen=True)
class Service:
    """Who is served. ``reached`` is per flow; the flags stand beside the plan's own pairs."""

    reached: Longs
    unserved: Longs
    """the first (flow, subscriber) pairs that nothing serves"""
    useful_channels: Bytes
    """per (flow, channel): 1 if a member wants the flow"""
    useful_members: Bytes
    """per (channel, subscriber): 1 if the member wants something on the channel"""
    unicast_use: Bytes
    """per (flow, subscriber): unwanted, needed, or a double of what a channel brings"""


def find_service(truth: Truth, decisions: Decisions) -> Service:
    """Look up every interested subscriber of every flow in the channels and in unicast."""
    service = Service(
        reached=np.zeros(len(truth.messages), dtype=np.int64),
        unserved=np.full((EXAMPLES, 2), -1, dtype=np.int64),
        useful_channels=np.zeros(len(decisions.channels.right), dtype=np.uint8),
        useful_members=np.zeros(len(decisions.members.right), dtype=np.uint8),
        unicast_use=np.full(len(decisions.unicast.right), UNWANTED, dtype=np.uint8),
    )
    serve(
        (truth.classes, truth.audience_starts, truth.audience),
        (decisions.channels.starts, decisions.channels.right),
        (decisions.members.starts, decisions.members.right),
        (decisions.unicast.starts, decisions.unicast.right),
        (service.reached, service.unserved),
        (service.useful_channels, service.useful_members, service.unicast_use),
    )
    return service


@compiled
def serve(
    interest: tuple[Ints, Longs, Ints],
    carried: tuple[Longs, Ints],
    joined: tuple[Longs, Ints],
    direct: tuple[Longs, Ints],
    result: tuple[Longs, Longs],
    flags: tuple[Bytes, Bytes, Bytes],
) -> None:
    """Fill ``result`` and ``flags``; time is the audiences times channels per flow times log."""
    classes, audience_starts, audience = interest
    reached, unserved = result
    named = 0
    for flow in range(len(classes)):
        start, end = audience_starts[classes[flow]], audience_starts[classes[flow] + 1]
        for subscriber in audience[start:end]:
            by_channel = serve_by_channel(flow, subscriber, carried, joined, flags)
            at = find(direct[1], direct[0][flow], direct[0][flow + 1], subscriber)
            if at >= 0:
                flags[2][at] = DOUBLE if by_channel else NEEDED
            if by_channel or at >= 0:
                reached[flow] += 1
            elif named < len(unserved):
                unserved[named, 0] = flow
                unserved[named, 1] = subscriber
                named += 1


@compiled
def serve_by_channel(
    flow: int,
    subscriber: int,
    carried: tuple[Longs, Ints],
    joined: tuple[Longs, Ints],
    flags: tuple[Bytes, Bytes, Bytes],
) -> bool:
    """Whether the subscriber joined a channel that carries the flow; flags all such channels."""
    served = False
    for i in range(carried[0][flow], carried[0][flow + 1]):
        channel = carried[1][i]
        at = find(joined[1], joined[0][channel], joined[0][channel + 1], subscriber)
        if at >= 0:
            flags[0][i] = 1
            flags[1][at] = 1
            served = True
    return served


@compiled
def find(values: Ints, start: int, end: int, value: int) -> int:
    """Position of a value in the ascending part from ``start`` to ``end``, or −1."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] < value:
            start = middle + 1
        elif values[middle] > value:
            end = middle
        else:
            return middle
    return -1


def count_ledger(truth: Truth, decisions: Decisions, service: Service) -> dict[str, float]:
    """The ledger's entries, counted flow by flow."""
    channels = np.diff(decisions.channels.starts)
    unicast = np.diff(decisions.unicast.starts)
    members = np.diff(decisions.members.starts)[decisions.channels.right]
    copies = np.diff(np.append(0, np.cumsum(members))[decisions.channels.starts]) + unicast
    wanted = np.diff(truth.audience_starts)[truth.classes]
    return {
        "sent_multicast": times(truth.messages, channels),
        "sent_unicast": times(truth.messages, unicast),
        "received_wanted": times(truth.messages, service.reached),
        "received_unwanted": times(truth.messages, copies - service.reached),
        "missed": times(truth.messages, wanted - service.reached),
        "sent_bytes": times(truth.bytes, channels + unicast),
        "received_bytes": times(truth.bytes, copies),
    }


def times(amount: Floats, count: Longs) -> float:
    return float((amount * count).sum())
