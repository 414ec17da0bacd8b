"""What can be done with a stored plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.engine import EMBEDDED, Engine

if TYPE_CHECKING:
    from fanplan.evaluation.replayed import Replayed
    from fanplan.plan.check import CheckResult


def check(plan: PathLike, dataset: Dataset) -> CheckResult:
    """Prove that a stored plan serves every interested subscriber, or name those it does not."""
    from fanplan.plan.check import check_plan

    return check_plan(Path(plan), dataset.path)


def replay(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> Replayed:
    """Send every publication of the dataset through a stored plan, on Spark."""
    from fanplan.pipeline.replay import replay_plan

    return replay_plan(engine.session, Path(plan), dataset.path, engine.progress)
