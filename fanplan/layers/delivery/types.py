"""What is decided about delivery: by which means each audience class reaches its subscribers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from fanplan.core.arrays import Ints
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.problem.groups import Bools, GroupsProblem


@dataclass(frozen=True, eq=False)
class Delivery:
    """A decision about a delivery problem.

    Channels of ``map`` belong to a multicast domain each, ``domain[j]``; its unicast pairs are the
    last hop from a broker to a subscriber, or the whole way if the class is ``direct``: then the
    broker where it enters sends it to each subscriber by itself. All else travels through brokers:
    ``groups`` has these ways, and ``selected`` which of them are matched only once.
    """

    map: ChannelMap
    domain: Ints
    direct: Bools
    groups: GroupsProblem
    selected: Bools


@dataclass(frozen=True, eq=False)
class DeliveryLayer:
    """The section of a plan that binds channels and groups together, with its tables."""

    record: DeliveryRecord
    tables: dict[str, pa.Table]
    source: str
    seed: int
    version: str
    layer: Literal["delivery"] = "delivery"
