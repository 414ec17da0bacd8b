"""What can be done with a stored plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.engine import EMBEDDED, Engine
from fanplan.api.overlay_stages import (
    make_broker_stages,
    make_client_stages,
    make_covers,
    make_descriptors,
)

if TYPE_CHECKING:
    from fanplan.evaluation.replayed import Replayed
    from fanplan.plan.check import CheckResult


def check(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> CheckResult:
    """Prove that a stored plan does what it must, or name what it does not.

    Spark starts only if the dataset lacks stages that the plan was made from.
    """
    from fanplan.plan.check import check_plan

    make_stages(plan, dataset, engine)
    return check_plan(Path(plan), dataset.path)


def make_stages(plan: PathLike, dataset: Dataset, engine: Engine) -> None:
    """The stages of a dataset that a stored plan was made from, unless they are there."""
    from fanplan.plan.stored import load_plan

    record = load_plan(Path(plan)).record
    overlay = record.overlay
    if record.marking:
        make_descriptors(dataset, engine)
    if record.marking and record.marking.merged:
        make_covers(dataset, engine)
    if overlay is None:
        return
    if overlay.clients == "given":
        make_broker_stages(dataset, overlay.params, overlay.metric == "cover", engine)
    else:
        make_client_stages(dataset, overlay.params, engine)


def replay(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> Replayed:
    """Send every publication of the dataset through a stored plan, on Spark."""
    from fanplan.pipeline.replay import replay_plan

    return replay_plan(engine.session, Path(plan), dataset.path, engine.progress)
