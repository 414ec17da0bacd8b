"""What a run of churn shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.groups.protocol.messages import KINDS, OVERHEAD
from fanplan.layers.groups.protocol.system import System
from fanplan.network.carried import ratio


@dataclass(frozen=True, eq=False)
class ChurnResult:
    """Counts of a run in which every publication was delivered exactly once.

    ``set_up`` are control messages before the first event, ``control`` those since, by kind; what
    is lost on links and sent again is only in ``resent``. Arrays with an entry per broker are as in
    the ledger of groups. Times are in ms: ``held_ms`` of publications held at a root,
    ``accepted_ms`` from asking for an update until it is in force, ``rebuild_ms`` of rebuilds.
    """

    publications: int
    grouped: int
    received: Longs
    matched: Longs
    arrived: Longs
    unwanted: Longs
    delay: Floats
    delay_most_ms: float
    set_up: dict[str, int]
    control: dict[str, int]
    resent: int
    groups: int
    built: int
    kept: int
    evicted: int
    entries: Longs
    entries_most: Longs
    table_entries: int
    held_ms: Floats
    accepted_ms: Floats
    rebuild_ms: Floats
    ended_ms: float

    def summary(self) -> dict[str, Any]:
        """All figures that are one number, and control messages by kind."""
        return {
            "publications": self.publications,
            "deliveries": int(self.arrived.sum()),
            "unwanted": int(self.unwanted.sum()),
            "in_groups": self.grouped,
            "link_messages": int(self.received.sum()),
            "matches": int(self.matched.sum()),
            "matches_most": int(self.matched.max(initial=0)),
            "delay_mean_ms": ratio(float(self.delay.sum()), int(self.arrived.sum())),
            "delay_max_ms": self.delay_most_ms,
            "held": len(self.held_ms),
            **spread("held", self.held_ms),
            "updates": len(self.accepted_ms),
            **spread("accepted", self.accepted_ms),
            "rebuilds": len(self.rebuild_ms),
            **spread("rebuild", self.rebuild_ms),
            "groups": self.groups,
            "groups_built": self.built,
            "groups_kept": self.kept,
            "cells_evicted": self.evicted,
            "entries": int(self.entries.sum()),
            "entries_most": int(self.entries_most.max(initial=0)),
            "table_entries": self.table_entries,
            "overhead": sum(self.control[kind] for kind in OVERHEAD),
            "control_messages": sum(self.control.values()),
            "resent": self.resent,
            "ended_ms": self.ended_ms,
            "set_up": self.set_up,
            "control": self.control,
        }

    def broker_table(self, brokers: pa.Array) -> pa.Table:
        """One row per broker."""
        columns = {
            "broker": brokers,
            "received": self.received,
            "matched": self.matched,
            "arrived": self.arrived,
            "unwanted": self.unwanted,
            "delay_ms": self.delay,
            "entries": self.entries,
            "entries_most": self.entries_most,
        }
        return pa.table(columns)


def spread(name: str, times: Floats) -> dict[str, float]:
    """The mean and the longest of some times, 0 if there are none."""
    mean = ratio(float(times.sum()), len(times))
    return {f"{name}_mean_ms": mean, f"{name}_max_ms": float(times.max(initial=0.0))}


def result_of(system: System) -> ChurnResult:
    """The figures of a system that has come to rest."""
    tally = system.tally
    return ChurnResult(
        publications=tally.entered,
        grouped=tally.grouped,
        received=tally.received,
        matched=tally.matched,
        arrived=tally.arrived,
        unwanted=tally.unwanted,
        delay=tally.delay,
        delay_most_ms=tally.delay_most,
        set_up={kind: tally.set_up[kind] for kind in KINDS.values()},
        control={kind: tally.control[kind] for kind in KINDS.values()},
        resent=system.links.resent,
        groups=sum(len(root.standing) for root in system.roots),
        built=tally.built,
        kept=tally.kept,
        evicted=tally.evicted,
        entries=tally.entries,
        entries_most=tally.entries_most,
        table_entries=system.table_entries,
        held_ms=np.array(tally.held_ms, np.float64),
        accepted_ms=np.array(tally.accepted_ms, np.float64),
        rebuild_ms=np.array(tally.rebuild_ms, np.float64),
        ended_ms=system.links.now,
    )
