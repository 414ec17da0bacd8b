"""What a simulation shows beside what a ledger predicts: loads, congestion, every delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.network.carried import Counts, ratio

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, eq=False)
class SimulationResult(Counts):
    """Counts per broker, per link and per arrival of a run.

    ``peak`` is the most messages of a broker in one window, control messages included,
    ``waited_ms`` the time they spent there for congestion. ``control`` has control messages as
    ``link`` has publications. ``delays_ms`` is in the order of arrival. ``brokers_max`` is the most
    brokers that one publication visited.
    """

    links: Ints
    events: int
    ended_ms: float
    publications: int
    brokers_max: int
    processed: Longs
    arrived: Longs
    peak: Longs
    waited_ms: Floats
    link: Longs
    control: Longs
    delays_ms: Floats

    @property
    def delay_mean_ms(self) -> float:
        """Message latency: from entry to the broker of a subscriber."""
        return ratio(float(self.delays_ms.sum()), self.arrivals)

    @property
    def peak_mean(self) -> float:
        """Average peak load, over all brokers, in messages per window."""
        return float(self.peak.mean())

    @property
    def processing_delay_ms(self) -> float:
        """Average processing delay: what congestion costs a publication at a broker it visits."""
        return ratio(float(self.waited_ms.sum()), int(self.processed.sum()))

    @property
    def degree(self) -> Longs:
        """Number of links of each broker."""
        return np.bincount(self.links.ravel(), minlength=len(self.processed))

    def percentiles_ms(self) -> dict[str, float]:
        """Delays that 50, 90 and 99 of a hundred arrivals do not exceed; 0 without arrivals."""
        if not len(self.delays_ms):
            return {f"delay_p{percent}_ms": 0.0 for percent in PERCENTILES}
        values = np.percentile(self.delays_ms, PERCENTILES, method="inverted_cdf")
        return {f"delay_p{p}_ms": float(v) for p, v in zip(PERCENTILES, values, strict=True)}

    def summary(self) -> dict[str, float]:
        """All figures that are one number."""
        return {
            "events": self.events,
            "ended_ms": self.ended_ms,
            "publications": self.publications,
            "arrivals": len(self.delays_ms),
            "link_messages": int(self.link.sum()),
            "control_messages": int(self.control.sum()),
            "messages_per_publication": self.messages_per_publication,
            "messages_per_arrival": self.messages_per_arrival,
            "brokers_per_publication": self.brokers_per_publication,
            "brokers_max": self.brokers_max,
            "delay_mean_ms": self.delay_mean_ms,
            **self.percentiles_ms(),
            "delay_max_ms": float(self.delays_ms.max(initial=0.0)),
            "processed_mean": float(self.processed.mean()),
            "processed_max": int(self.processed.max()),
            "degree_max": int(self.degree.max()),
            "forwarding_ratio": self.forwarding_ratio,
            "peak_mean": self.peak_mean,
            "processing_delay_ms": self.processing_delay_ms,
        }

    def broker_table(self, brokers: pa.Array) -> pa.Table:
        """One row per broker."""
        columns = {
            "broker": brokers,
            "degree": self.degree,
            "processed": self.processed,
            "arrived": self.arrived,
            "forwarded": self.forwarded,
            "peak": self.peak,
            "waited_ms": self.waited_ms,
        }
        return pa.table(columns)

    def link_table(self, brokers: pa.Array) -> pa.Table:
        """One row per link, with the messages in each direction."""
        columns = {
            "a": brokers.take(pa.array(self.links[:, 0])),
            "b": brokers.take(pa.array(self.links[:, 1])),
            "a_to_b": self.link[:, 0],
            "b_to_a": self.link[:, 1],
            "control_a_to_b": self.control[:, 0],
            "control_b_to_a": self.control[:, 1],
        }
        return pa.table(columns)
