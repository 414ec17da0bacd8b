"""Options that the kinds with brokers share: the ranges of regions, and what a broker can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fanplan.core.errors import Problem
from fanplan.core.options import Params, option
from fanplan.workload.generators.population import RangeShape


@dataclass(frozen=True)
class RangedParams(Params):
    """What Tables 5.1 and 6.2 of Tajuddin (2011) have in common."""

    domain: float = option(1000.0, "attribute values run from 0 to this", above=0)
    range_min: float = option(10.0, "smallest range", at_least=0.01)
    range_skew: float = option(0.8, "Zipf exponent of the ranges", at_least=0)
    capacity: float = option(1000.0, "capacity of a broker, messages/s", above=0)

    @property
    def shape(self) -> RangeShape:
        """The law of a range."""
        return RangeShape(self.domain, self.range_min, self.range_skew)

    def relations(self) -> Iterator[Problem]:
        if self.range_min > self.domain:
            what = f"{self.range_min} does not fit into a domain of {self.domain}"
            yield Problem("range_min", what, "Give a smaller range or a larger domain")
