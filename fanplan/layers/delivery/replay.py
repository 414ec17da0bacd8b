"""All publications through a stored design."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived

if TYPE_CHECKING:
    from fanplan.layers.delivery.replayed import ReplayedDelivery


def replay_design(plan: PathLike, dataset: Dataset, engine: Engine) -> ReplayedDelivery:
    """What all layers of a plan do together with the publications of a dataset, and its marks."""
    from fanplan.layers.delivery.stages.replay import replay_delivery
    from fanplan.layers.marking.record import MarkingRecord
    from fanplan.layers.marking.replayed import replay_marks
    from fanplan.layers.registry import load_plan

    # Spark's own processes may have another working directory than this one.
    stored = load_plan(Path(plan).absolute())
    found = replay_delivery(derived(dataset, engine), stored)
    if not stored.has(MarkingRecord):
        return found
    return replace(found, marks=replay_marks(plan, dataset, engine=engine))
