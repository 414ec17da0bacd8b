"""Marking plans: on which links advertisements travel, and on which subscriptions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.core.arrays import Bools
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.marking.build import Merging
from fanplan.layers.marking.ledger import Counts, link_costs, marking_cost
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.record import MarkingSection
from fanplan.layers.marking.search.marking import Marking
from fanplan.layers.marking.stages.make import (
    make_client_descriptors,
    make_covers,
    make_descriptors,
)

if TYPE_CHECKING:
    from fanplan.layers.marking.build import Merging
    from fanplan.layers.marking.params import Sending
    from fanplan.layers.marking.problem.dataset import MarkedOverlay
    from fanplan.layers.marking.problem.marking import MarkingProblem
    from fanplan.layers.marking.record import MarkingSection
    from fanplan.layers.marking.search.marking import Marking


@dataclass(frozen=True)
class MarkingPlan:
    """A marking together with the dataset it is for, and the problem it solves.

    ``marking`` counts descriptors without merging, ``merging`` has the counts with it.
    """

    layer: MarkingSection
    dataset: Dataset
    problem: MarkingProblem
    marking: Marking
    merging: Merging | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""

        return figures(self.layer, self.marking)

    def compared(self) -> list[dict[str, Any]]:
        """The plan beside both ways of broadcasting, dearest first."""

        return compared(self.problem, self.marking, self.merging)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_plan

        return save_plan(self.layer, self.dataset.path, Path(out), replace).folder


def mark(
    dataset: Dataset,
    trees: str,
    *,
    raw: bool = False,
    sending: Sending = "one",
    storing: float = 0.0,
    merge: bool = False,
    engine: Engine = EMBEDDED,
) -> MarkingPlan:
    """Mark the links of trees so that descriptors cost least.

    ``trees`` is ``shared:CORE``, ``per-source``, ``given``, which are those of the table `trees`,
    or ``given-shared``, which is its one tree, used by all in both directions. ``raw`` counts
    regions that others at their broker cover too. A descriptor on a link costs one, or the link's
    latency or cost, by ``sending``, and ``storing`` where it is kept. ``merge`` finds the marks
    that are best if a descriptor that another one on the same link covers does not travel there.
    """
    from fanplan.core.version import __version__
    from fanplan.layers.marking.build import marking_layer
    from fanplan.layers.marking.ledger import Counts
    from fanplan.layers.marking.params import MarkingWishes
    from fanplan.layers.marking.problem.dataset import load_marking, require_markable
    from fanplan.layers.marking.search.marking import exact_marking, shared_marking

    wishes = MarkingWishes(trees, raw, sending, storing, merge)
    require_markable(dataset.path, wishes)
    make_descriptors(dataset, engine)
    if merge:
        make_covers(dataset, engine)
    with engine.progress.stage(f"mark {trees}") as stage:
        problem = load_marking(dataset.path, wishes)
        found = shared_marking(problem) if problem.shared else exact_marking(problem)
        marks, merging = merged(dataset, problem, found) if merge else (found, None)
        stage.rows(problem.size)
    counts = Counts(found.sigma, found.tau)
    layer = marking_layer(problem, marks.publish, counts, wishes, __version__, merging)
    return MarkingPlan(layer, dataset, problem, marks, merging)


def mark_tree(dataset: Dataset, overlay: MarkedOverlay, engine: Engine) -> MarkingSection:
    """Mark the tree of an overlay. Of allocated clients all descriptors count."""
    from fanplan.core.version import __version__
    from fanplan.layers.marking.build import marking_layer
    from fanplan.layers.marking.ledger import Counts
    from fanplan.layers.marking.params import OVERLAY, MarkingWishes
    from fanplan.layers.marking.problem.dataset import load_marking
    from fanplan.layers.marking.search.marking import shared_marking

    allocated = overlay.clients is not None
    wishes = MarkingWishes(OVERLAY, raw=allocated)
    (make_client_descriptors if allocated else make_descriptors)(dataset, engine)
    with engine.progress.stage("mark the overlay") as stage:
        problem = load_marking(dataset.path, wishes, overlay)
        found = shared_marking(problem)
        stage.rows(problem.size)
    counts = Counts(found.sigma, found.tau)
    return marking_layer(problem, found.publish, counts, wishes, __version__)


def merged(dataset: Dataset, problem: MarkingProblem, plain: Marking) -> tuple[Marking, Merging]:
    """The best marking with merging, in counts without it, and those with it.

    If the marks that are best without merging are best with it too, they stay.
    """
    from fanplan.layers.marking.build import Merging
    from fanplan.layers.marking.ledger import Counts, marking_cost
    from fanplan.layers.marking.merged import merged_counts
    from fanplan.layers.marking.problem.covers import read_covers
    from fanplan.layers.marking.search.marking import exact_marking

    counts = merged_counts(problem, read_covers(dataset.path, problem.nodes))
    best = exact_marking(problem, counts)
    if marking_cost(problem, counts, plain.publish) == best.cost:
        return plain, Merging(counts, plain.publish)
    cost = marking_cost(problem, Counts(plain.sigma, plain.tau), best.publish)
    found = replace(best, sigma=plain.sigma, tau=plain.tau, cost=cost)
    return found, Merging(counts, plain.publish)


def figures(layer: MarkingSection, marking: Marking) -> dict[str, Any]:
    """What was decided, what it costs, and how many links had to be decided together."""
    parts = np.bincount(marking.part[marking.part >= 0])
    return layer.record.model_dump() | {
        "entangled": int(parts.sum()),
        "parts": len(parts),
        "largest_part": int(parts.max(initial=0)),
    }


def compared(
    problem: MarkingProblem, marking: Marking, merging: Merging | None
) -> list[dict[str, Any]]:
    """What links cost in total, on average and at most, if all are marked alike and as best.

    With merging the total is given with and without it; other figures are then those with it.
    """
    everywhere = np.ones(problem.size, bool)
    marks = {
        "publications everywhere": everywhere,
        "subscriptions everywhere": ~everywhere,
        "best": merging.plain if merging else marking.publish,
    }
    counts = Counts(marking.sigma, marking.tau)
    if merging:
        marks["best merged"] = marking.publish
    rows = [
        {"marking": name, "cost": marking_cost(problem, counts, publish)}
        | on_links(problem, merging.counts if merging else counts, publish, merging is not None)
        for name, publish in marks.items()
    ]
    return sorted(rows, key=lambda row: -row.get("merged", row["cost"]))


def on_links(
    problem: MarkingProblem, counts: Counts, publish: Bools, merge: bool
) -> dict[str, float]:
    cost = np.where(publish, *link_costs(problem, counts))
    total = {"merged": float(cost.sum())} if merge else {}
    return total | {
        "per_link": float(cost.sum() / max(problem.size, 1)),
        "largest_link": float(cost.max(initial=0.0)),
    }
