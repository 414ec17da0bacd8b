"""What every channel planner is told, and what it is checked against."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.weights import Weights
from fanplan.data.interest import InterestProblem


@dataclass(frozen=True)
class ChannelParams:
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
class UnicastParams(ChannelParams):
    """Unicast needs no channels, so there may be none."""

    channels: int = 0

    def __post_init__(self) -> None:
        if self.channels < 0:
            what = f"{self.channels} is not a number of channels"
            raise InputError(Problem("channels", what, "Use 0 or more"))


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
