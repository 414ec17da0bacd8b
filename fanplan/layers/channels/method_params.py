"""What kmodes can be told, checked once on construction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap


@dataclass(frozen=True)
class MethodParams:
    """How many channels there are, and what messages cost. A method with more adds fields."""

    channels: int
    weights: Weights = field(default_factory=Weights)

    def __post_init__(self) -> None:
        if self.channels < 1:
            what = f"{self.channels} channels cannot carry a flow"
            raise InputError(Problem("channels", what, "Use at least 1, or the method unicast"))

    def recorded(self) -> dict[str, Any]:
        """The parameters as a plan stores them; weights have a place of their own there."""
        return {name: value for name, value in asdict(self).items() if name != "weights"}


@dataclass(frozen=True)
class UnicastParams(MethodParams):
    """Unicast needs no channels, so there may be none."""

    channels: int = 0

    def __post_init__(self) -> None:
        if self.channels < 0:
            what = f"{self.channels} is not a number of channels"
            raise InputError(Problem("channels", what, "Use 0 or more"))


@dataclass(frozen=True)
class KmodesParams(MethodParams):
    """Effort, limits and the map to start from. A limit of None does not apply.

    Rows are positions in the problem; messages are totals over its window.
    """

    starts: int = 1
    """Independent searches; the best one is kept."""
    passes: int = 10
    """Most passes of each Lloyd alternation."""
    swaps: int = 64
    """Most swaps tried in a search; 0 leaves only what Lloyd and single moves find."""
    exact: bool = True
    """Whether a problem so small that all plans can be looked at is solved that way."""
    heavy: float = 0.2
    """Part of the rows, by traffic times audience, that swaps look at if there are many rows."""
    multiple: bool = True
    """Whether a row may go to several channels."""
    unicast_limit: float | None = None
    """Most of the messages sent that may go by unicast although several want them, 0 to 1."""
    lone: bool = False
    """Whether a channel may have one member, and all unicast counts, as in the papers."""
    max_channels_per_subscriber: int | Sequence[int] | None = None
    """One number for all subscribers, or one for each."""
    max_channel_rate: float | None = None
    """Most messages on a channel over the window."""
    pinned: tuple[int, ...] = ()
    """Rows that must reach all their audience by multicast."""
    off_multicast: tuple[int, ...] = ()
    """Rows that must go by unicast alone."""
    start: ChannelMap | None = None
    """The map to begin with, over the same rows, subscribers and channels."""
    change_price: float = 0.0
    """What each (row, channel) and (channel, subscriber) pair that differs from start costs."""
    max_changes: int | None = None
    """Most such pairs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        problems = [*self._numbers(), *self._relations()]
        if problems:
            raise InputError(problems)

    @property
    def multicast_only(self) -> bool:
        return self.unicast_limit == 0

    def recorded(self) -> dict[str, Any]:
        """The parameters as a plan stores them: of the start, only whether there was one."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        del values["weights"]
        values["start"] = self.start is not None
        for name in ("pinned", "off_multicast"):
            values[name] = [int(row) for row in values[name]]
        limits = self.max_channels_per_subscriber
        if limits is not None and not isinstance(limits, int):
            values["max_channels_per_subscriber"] = [int(limit) for limit in limits]
        return values

    def _numbers(self) -> Iterator[Problem]:
        for name, least in (("starts", 1), ("passes", 1), ("swaps", 0), ("max_changes", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                yield Problem(name, f"{value} is too few", f"Use {least} or more")
        for name in ("unicast_limit", "heavy"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                yield Problem(name, f"{value} is not a fraction", "Use a number from 0 to 1")
        for name in ("max_channel_rate", "change_price"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                yield Problem(name, f"{value} is not allowed", "Use a finite number from 0")
        limits = self.max_channels_per_subscriber
        if limits is not None and np.any(np.asarray(limits) < 0):
            what = "a subscriber cannot join fewer than 0 channels"
            yield Problem("max_channels_per_subscriber", what, "Use 0 or more")

    def _relations(self) -> Iterator[Problem]:
        both = sorted(set(self.pinned) & set(self.off_multicast))
        if both:
            what = f"row {both[0]} must go by multicast and must not"
            yield Problem("pinned", what, "Take it out of one of the two lists")
        if self.multicast_only and self.off_multicast:
            what = f"row {min(self.off_multicast)} must go by unicast, but no unicast is allowed"
            yield Problem("off_multicast", what, "Leave it out, or raise the unicast limit")
        if self.start is None and (self.change_price or self.max_changes is not None):
            yield Problem("start", "changes of what? No map is given", "Give the map to start from")
        if self.start is not None and self.start.channels > self.channels:
            what = f"it has {self.start.channels} channels, {self.channels} are allowed"
            yield Problem("start", what, "Allow as many, or start from another map")


def require_traffic(problem: InterestProblem) -> None:
    """There must be something to plan."""
    if problem.flow_count == 0:
        what = "no flow has an audience, so there is nothing to plan"
        raise InputError(Problem("dataset", what, "Check subscriptions, topics and the quarantine"))
    if not problem.messages.any():
        what = "all rates of flows that somebody wants are 0, so there is nothing to plan"
        raise InputError(Problem("dataset", what, "Check publications, or advertised rates"))


def require_enough_flows(problem: InterestProblem, channels: int) -> None:
    """A method that fills every channel needs a flow for each."""
    if channels > problem.flow_count:
        what = f"{channels} channels are more than the {problem.flow_count} flows"
        raise InputError(Problem("channels", what, f"Use at most {problem.flow_count}"))
