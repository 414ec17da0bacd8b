"""Marking plans: on which links advertisements travel, and on which subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.engine import EMBEDDED, Engine
from fanplan.api.overlay_stages import make_descriptors

if TYPE_CHECKING:
    from fanplan.plan.marking.types import MarkingLayer
    from fanplan.planners.marking.marking import Marking
    from fanplan.problem.marking import MarkingProblem
    from fanplan.problem.marking_dataset import Sending


@dataclass(frozen=True)
class MarkingPlan:
    """A marking together with the dataset it is for, and the problem it solves."""

    layer: MarkingLayer
    dataset: Dataset
    problem: MarkingProblem
    marking: Marking

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        from fanplan.api.marking_figures import figures

        return figures(self.layer, self.marking)

    def compared(self) -> list[dict[str, Any]]:
        """The plan beside both ways of broadcasting, dearest first."""
        from fanplan.api.marking_figures import compared

        return compared(self.problem, self.marking)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.plan.store import save_plan

        return save_plan(self.layer, self.dataset.path, Path(out), replace).folder


def mark(
    dataset: Dataset,
    trees: str,
    *,
    raw: bool = False,
    sending: Sending = "one",
    storing: float = 0.0,
    engine: Engine = EMBEDDED,
) -> MarkingPlan:
    """Mark the links of trees so that descriptors cost least.

    ``trees`` is ``shared:CORE``, ``per-source`` or ``given``, which are those of the table `trees`.
    ``raw`` counts regions that others at their broker cover too. A descriptor on a link costs one,
    or the link's latency or cost, by ``sending``, and ``storing`` where it is kept.
    """
    from fanplan import __version__
    from fanplan.evaluation.marking_cost import Counts
    from fanplan.plan.marking.build import marking_layer
    from fanplan.planners.marking.marking import exact_marking, shared_marking
    from fanplan.problem.marking_dataset import MarkingWishes, load_marking

    wishes = MarkingWishes(trees, raw, sending, storing)
    make_descriptors(dataset, engine)
    with engine.progress.stage(f"mark {trees}") as stage:
        problem = load_marking(dataset.path, wishes)
        found = shared_marking(problem) if problem.shared else exact_marking(problem)
        stage.rows(problem.size)
    counts = Counts(found.sigma, found.tau)
    layer = marking_layer(problem, found.publish, counts, wishes, __version__)
    return MarkingPlan(layer, dataset, problem, found)
