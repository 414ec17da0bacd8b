"""The delivery section of a plan from what was decided: its tables and its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.layers.delivery.ledger import DeliveryLedger
from fanplan.layers.delivery.params import DesignParams
from fanplan.layers.delivery.record import (
    Delivery,
    DeliveryRecord,
    DeliverySection,
    StepRecord,
)


@dataclass(frozen=True)
class Settled:
    """What was asked for and what came of it, as the plan records it.

    ``channels`` are the most of a multicast domain. ``steps`` are systems on the way from the
    naive one to the plan: names, and parts of the cost.
    """

    params: DesignParams
    channels: int
    domains: tuple[str, ...]
    layered: float
    bound: float
    steps: tuple[tuple[str, dict[str, float]], ...]
    warnings: tuple[str, ...]


def delivery_layer(
    delivery: Delivery,
    ledger: DeliveryLedger,
    settled: Settled,
    source: str,
    seed: int,
    version: str,
) -> DeliverySection:
    parts = ledger.parts(settled.params.prices)
    record = DeliveryRecord(
        params=settled.params,
        channels=settled.channels,
        domains=settled.domains,
        classes=len(delivery.direct),
        direct=int(delivery.direct.sum()),
        unicast_fraction=ledger.unicast_fraction,
        parts=parts,
        cost=sum(parts.values()),
        layered=settled.layered,
        bound=settled.bound,
        steps=tuple(
            StepRecord(name=name, cost=sum(parts.values()), parts=parts)
            for name, parts in settled.steps
        ),
        warnings=settled.warnings,
    )
    names = pa.array(settled.domains, pa.string())
    tables = {
        "channel_domains": pa.table(
            {
                "channel": np.arange(delivery.map.channels),
                "domain": names.take(pa.array(delivery.domain)),
            }
        ),
        "direct_classes": pa.table({"audience_class": np.flatnonzero(delivery.direct)}),
    }
    return DeliverySection(record, tables, source, seed, version)
