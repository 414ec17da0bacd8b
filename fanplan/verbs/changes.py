"""Plans beside each other: compare them, go from one to another, see whether one still fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.check import make_stages

if TYPE_CHECKING:
    from fanplan.verbs.compare import Comparison
    from fanplan.verbs.diff import Diff
    from fanplan.verbs.drift import Verdict

STEPS_OF = 100
"""Changes in a step, unless said otherwise."""


def compare(*plans: PathLike) -> Comparison:
    """Stored plans side by side in the words of the ledger, with what differs in parameters."""
    from fanplan.layers.registry import load_plan
    from fanplan.verbs.compare import compare_plans

    return compare_plans([load_plan(Path(plan)) for plan in plans])


def diff(
    old: PathLike,
    new: PathLike,
    dataset: Dataset | None = None,
    *,
    steps_of: int = STEPS_OF,
    engine: Engine = EMBEDDED,
) -> Diff:
    """What must change to go from one stored plan to another, at most ``steps_of`` at a time.

    With the dataset of the new plan every state on the way is held against who wants what and has
    its whole ledger. Spark starts only if the dataset lacks stages that the plan was made from.
    """
    from fanplan.layers.registry import load_plan
    from fanplan.verbs.diff import diff_plans

    if dataset is not None:
        make_stages(new, dataset, engine)
    path = None if dataset is None else dataset.path
    with engine.progress.stage("order and check changes") as stage:
        found = diff_plans(load_plan(Path(old)), load_plan(Path(new)), path, steps_of)
        stage.rows(found.total)
    return found


def apply_check(
    plan: PathLike,
    dataset: Dataset,
    *,
    allow_drift: str | None = None,
    was: Dataset | None = None,
    engine: Engine = EMBEDDED,
) -> Verdict:
    """Whether a stored plan may be applied to a dataset; ``allow_drift`` says why, if it drifted.

    ``was`` is the dataset that it was made for, to count rows that came and went. Spark starts only
    if the dataset lacks stages that the plan was made from.
    """
    from fanplan.layers.registry import load_plan
    from fanplan.verbs.drift import verdict

    make_stages(plan, dataset, engine)
    older = None if was is None else was.path
    return verdict(load_plan(Path(plan)), dataset.path, allow_drift, older)
