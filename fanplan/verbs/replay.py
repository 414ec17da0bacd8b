"""What can be done with a stored plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.delivery.replay import replay_design
from fanplan.layers.groups.replayed import replay_groups

if TYPE_CHECKING:
    from fanplan.layers.delivery.replayed import ReplayedDelivery
    from fanplan.layers.groups.replayed import ReplayedGroups
    from fanplan.plan.replayed import Replayed


def replay(
    plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED
) -> Replayed | ReplayedGroups | ReplayedDelivery:
    """Send every publication of the dataset through a stored plan, on Spark.

    Channels are replayed on the dataset they were made for; groups on any with the same brokers; a
    plan with all layers on any whose cells are the same parts of spaces.
    """
    from fanplan.layers.channels.record import ChannelsRecord
    from fanplan.layers.channels.stages.replay import replay_plan
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.layers.registry import load_plan

    stored = load_plan(Path(plan))
    if stored.has(DeliveryRecord):
        return replay_design(plan, dataset, engine)
    if stored.has(GroupsRecord) and not stored.has(ChannelsRecord):
        return replay_groups(plan, dataset, engine)
    return replay_plan(engine.session, Path(plan), dataset.path, engine.progress)
