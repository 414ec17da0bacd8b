"""What a layer that binds groups leaves to them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.network.brokers import Routes
from fanplan.plan.drift import LayerNow


class GroupsBound(Protocol):
    """Groups of what channels and direct unicast leave to brokers."""

    def make_stages(self, dataset: Dataset, engine: Engine) -> None:
        """What this traffic is counted from."""

    def routes(self, dataset: Path, trees: BrokerTrees) -> Routes:
        """This traffic."""

    def now(self, dataset: Path) -> LayerNow:
        """What the plan's groups are worth on a dataset that they were not made for."""
