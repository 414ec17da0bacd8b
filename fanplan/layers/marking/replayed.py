"""The marks of a stored plan on a dataset: do they still hold, and what do they cost?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.marking.stages.make import make_marking_stages

if TYPE_CHECKING:
    from fanplan.layers.marking.ledger import DescriptorCounts
    from fanplan.layers.marking.problem.marking import MarkingProblem
    from fanplan.plan.stored import StoredPlan


def replay_marks(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> ReplayedMarks:
    """Hold the marks of a plan against a dataset, also one of other clients than it was made for.

    Descriptors are counted, and trees built, as the plan says.
    """
    from fanplan.layers.marking.ledger import cost_of_marks, violations
    from fanplan.layers.marking.params import OVERLAY
    from fanplan.layers.marking.problem.dataset import require_markable
    from fanplan.layers.marking.read import stored_marking
    from fanplan.layers.marking.record import MarkingRecord
    from fanplan.layers.marking.search.marking import exact_marking, kept_marking
    from fanplan.layers.registry import load_plan

    stored = load_plan(Path(plan))
    record = stored.section(MarkingRecord)
    if record.params.trees != OVERLAY:
        require_markable(dataset.path, record.params)
    make_marking_stages(stored, dataset, engine)
    with engine.progress.stage("replay marks") as told:
        problem = stored_marking(stored, dataset.path)
        counts = counts_of(dataset, problem, record.merged is not None)
        publish, known, unused = known_marks(stored, problem)
        kept, best = kept_marking(problem, counts, publish, known), exact_marking(problem, counts)
        told.rows(problem.size)
    return ReplayedMarks(
        links=problem.size,
        unmarked=int((~known).sum()),
        unused=unused,
        broken=len(violations(problem, np.where(known, publish, kept))),
        repaired=int((known & (kept != publish)).sum()),
        changed=int((known & (best.publish != publish)).sum()),
        planned=record.merged.cost if record.merged else record.cost,
        cost=cost_of_marks(problem, counts, kept),
        best=best.cost,
    )


def counts_of(dataset: Dataset, problem: MarkingProblem, merge: bool) -> DescriptorCounts:
    """Descriptors on links, merged if the plan's are."""
    from fanplan.layers.marking.ledger import descriptor_counts
    from fanplan.layers.marking.merged import merged_counts
    from fanplan.layers.marking.problem.covers import read_covers

    if merge:
        return merged_counts(problem, read_covers(dataset.path, problem.nodes))
    return descriptor_counts(problem)


def known_marks(plan: StoredPlan, problem: MarkingProblem) -> tuple[Bools, Bools, int]:
    """Which links the plan has as p-links, which it has at all, and how many are in no tree."""
    marks = plan.read("marks", ("from_node", "to_node", "mark"))
    ends = [
        pc.fill_null(pc.index_in(marks[name], problem.nodes), -1).to_numpy().astype(np.int64)
        for name in ("from_node", "to_node")
    ]
    stated = np.where(np.minimum(*ends) < 0, -1, ends[0] * len(problem.nodes) + ends[1])
    own = problem.tail.astype(np.int64) * len(problem.nodes) + problem.head
    row = pc.index_in(pa.array(own), pa.array(stated))
    known = row.is_valid().to_numpy(False)
    is_p = pc.equal(marks["mark"], "p").combine_chunks().take(row).fill_null(False)
    return is_p.to_numpy(False), known, len(marks) - int(known.sum())


@dataclass(frozen=True, repr=False)
class ReplayedMarks(Result):
    """The marks of a plan on the trees of a dataset, beside the best ones.

    Of the ``links`` of the trees ``unmarked`` have no mark in the plan; ``unused`` marks are of
    links that are in no tree now. ``broken`` links are p-links behind an s-link: there both sides
    no longer meet. ``repaired`` is how many marks must change at least so that they do. ``cost`` is
    that of the marks after this, with new links marked as best suits them; ``planned`` was that of
    the plan, and ``best`` is that of the best marks now, for which ``changed`` marks must change.
    """

    links: int
    unmarked: int
    unused: int
    broken: int
    repaired: int
    changed: int
    planned: float
    cost: float
    best: float

    drawn = ("planned", "cost", "best")

    @property
    def ok(self) -> bool:
        """Every link has a mark, and both sides meet everywhere."""
        return self.unmarked == 0 and self.broken == 0

    @property
    def excess_percent(self) -> float:
        """How far the cost lies above the best."""
        return 100.0 * (self.cost / self.best - 1.0) if self.best else 0.0

    def json(self) -> dict[str, Any]:
        return {"ok": self.ok} | asdict(self) | {"excess_percent": self.excess_percent}

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        return {
            "directed links in trees": self.links,
            "links without a mark": self.unmarked,
            "marks of links in no tree": self.unused,
            "p-links behind an s-link": self.broken,
            "marks that must change": self.repaired,
            "marks that the best has otherwise": self.changed,
            "cost as planned": self.planned,
            "cost now": self.cost,
            "best cost now": self.best,
            "above the best, percent": self.excess_percent,
            "marks": "hold" if self.ok else "do not hold: mark again",
        }
