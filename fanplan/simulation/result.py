"""What a simulation shows: all metrics of Tajuddin (2011), sections 5.2 and 6.4.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.evaluation.overlay_ledger import ratio
from fanplan.problem.interest import Floats, Ints, Longs

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Counts per broker, per link and per arrival of a run.

    An arrival is a publication at a broker with a subscriber who wants it, the source included.
    ``processed`` counts publications that a broker took up, ``peak`` the most messages in one
    window, control messages included, ``waited_ms`` the time they spent there for congestion.
    ``link[l]`` has the publications that crossed link l from its first end to its second, and
    back; ``control`` the same of control messages. ``delays_ms`` is in the order of arrival.
    ``brokers_max`` is the most brokers that one publication visited.
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
    def link_messages(self) -> int:
        """Copies of publications on all links."""
        return int(self.link.sum())

    @property
    def arrivals(self) -> int:
        return len(self.delays_ms)

    @property
    def messages_per_publication(self) -> float:
        """Message count as section 6.4.3 defines it: link messages ÷ publications."""
        return ratio(self.link_messages, self.publications)

    @property
    def messages_per_arrival(self) -> float:
        """Message count as Table 5.2 shows it: link messages ÷ destination brokers."""
        return ratio(self.link_messages, self.arrivals)

    @property
    def brokers_per_publication(self) -> float:
        """How many brokers a publication visits, its source included (Figure 5.6b)."""
        return ratio(int(self.processed.sum()), self.publications)

    @property
    def delay_mean_ms(self) -> float:
        """Message latency: from entry to the broker of a subscriber."""
        return ratio(float(self.delays_ms.sum()), self.arrivals)

    @property
    def forwarded(self) -> Longs:
        """Publications that a broker took up though none of its own subscribers wants them."""
        return self.processed - self.arrived

    @property
    def forwarding_ratio(self) -> float:
        """Pure forwarding message ratio: the mean of forwarded ÷ processed over busy brokers."""
        busy = self.processed > 0
        shares = self.forwarded[busy] / self.processed[busy]
        return ratio(float(shares.sum()), int(busy.sum()))

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
        if not self.arrivals:
            return {f"delay_p{percent}_ms": 0.0 for percent in PERCENTILES}
        values = np.percentile(self.delays_ms, PERCENTILES, method="inverted_cdf")
        return {f"delay_p{p}_ms": float(v) for p, v in zip(PERCENTILES, values, strict=True)}

    def summary(self) -> dict[str, float]:
        """All figures that are one number."""
        return {
            "events": self.events,
            "ended_ms": self.ended_ms,
            "publications": self.publications,
            "arrivals": self.arrivals,
            "link_messages": self.link_messages,
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
