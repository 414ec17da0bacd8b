"""The section of plan.json on the marking."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from fanplan.plan.record import Count
from fanplan.problem.marking_dataset import MarkingWishes, Sending

Price = Annotated[FiniteFloat, Field(ge=0)]


class MarkingRecord(BaseModel):
    """Which trees were marked, how descriptors were counted and weighed, and what that costs.

    ``publishers`` and ``subscribers`` are nodes that have descriptors, ``published`` and
    ``subscribed`` count those. ``pub_everywhere`` and ``sub_everywhere`` are the costs if all links
    are p-links, or all s-links.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trees: str
    raw: bool
    sending: Sending
    storing: Price
    nodes: Count
    publishers: Count
    subscribers: Count
    published: Count
    subscribed: Count
    links: Count
    p_links: Count
    s_links: Count
    cost: Price
    pub_everywhere: Price
    sub_everywhere: Price

    @property
    def wishes(self) -> MarkingWishes:
        """What was asked for."""
        return MarkingWishes(self.trees, self.raw, self.sending, self.storing)
