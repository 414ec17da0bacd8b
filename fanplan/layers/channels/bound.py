"""What a layer that binds channels tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fanplan.core.arrays import Longs
from fanplan.layers.channels.check.evidence import ChannelTruth
from fanplan.page.content import Picture
from fanplan.page.material import CurvePoint


class Reach(Protocol):
    """Where channels reach, and what passes them by."""

    def domains(self) -> tuple[str, ...]:
        """The multicast domain of each channel; empty: everywhere."""

    def direct(self, truth: ChannelTruth) -> Longs:
        """Flows that go past the brokers."""

    def fixed(self) -> bool:
        """Whether channels are those of another plan, as the user wished."""


class ChannelsBound(Reach, Protocol):
    """The same, and what a page tells of it and of all layers together."""

    def sites(self) -> Mapping[int, str] | None:
        """The site of each channel; None if channels are not those of sites."""

    def curve(self, name: str, points: Sequence[CurvePoint]) -> Picture:
        """The cost of all layers against the number of channels."""
