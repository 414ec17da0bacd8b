"""Marking plans: on which links advertisements travel, and on which subscriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools
from fanplan.core.version import __version__
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.marking.ledger import (
    DescriptorCounts,
    cost_of_marks,
    link_costs,
    pub_everywhere,
    sub_everywhere,
)
from fanplan.layers.marking.merged import merged_counts
from fanplan.layers.marking.params import OVERLAY, MarkingParams
from fanplan.layers.marking.problem.covers import read_covers
from fanplan.layers.marking.problem.dataset import MarkedOverlay, load_marking, require_markable
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.record import MarkingRecord, MarkingSection, MergedRecord
from fanplan.layers.marking.search.marking import Marking, exact_marking, shared_marking
from fanplan.layers.marking.stages.make import make_descriptors
from fanplan.plan.made import Job, Planned


def plan_marking(job: Job, params: MarkingParams) -> Planned:
    """Mark the links of trees so that descriptors cost least."""
    dataset, engine = job.dataset, job.engine
    require_markable(dataset.path, params)
    make_descriptors(dataset, engine, covers=params.merge)
    with engine.progress.stage(f"mark {params.trees}") as stage:
        problem = load_marking(dataset.path, params)
        found = shared_marking(problem) if problem.shared else exact_marking(problem)
        marks, merging = merged(dataset, problem, found) if params.merge else (found, None)
        stage.rows(problem.size)
    counts = DescriptorCounts(found.sigma, found.tau)
    section = marking_layer(problem, marks.publish, counts, params, __version__, merging)
    return Planned(
        (section,),
        marking_figures(section, marks),
        problem,
        compared=lambda _: compared_markings(problem, marks, merging),
    )


PLANS = {"mark": plan_marking}


def mark_tree(dataset: Dataset, overlay: MarkedOverlay, engine: Engine) -> MarkingSection:
    """Mark the tree of an overlay. Of allocated clients all descriptors count."""
    allocated = overlay.clients is not None
    params = MarkingParams(OVERLAY, raw=allocated)
    make_descriptors(dataset, engine, allocated)
    with engine.progress.stage("mark the overlay") as stage:
        problem = load_marking(dataset.path, params, overlay)
        found = shared_marking(problem)
        stage.rows(problem.size)
    counts = DescriptorCounts(found.sigma, found.tau)
    return marking_layer(problem, found.publish, counts, params, __version__)


def merged(dataset: Dataset, problem: MarkingProblem, plain: Marking) -> tuple[Marking, Merging]:
    """The best marking with merging, in counts without it, and those with it.

    If the marks that are best without merging are best with it too, they stay.
    """
    counts = merged_counts(problem, read_covers(dataset.path, problem.nodes))
    best = exact_marking(problem, counts)
    if cost_of_marks(problem, counts, plain.publish) == best.cost:
        return plain, Merging(counts, plain.publish)
    cost = cost_of_marks(problem, DescriptorCounts(plain.sigma, plain.tau), best.publish)
    found = replace(best, sigma=plain.sigma, tau=plain.tau, cost=cost)
    return found, Merging(counts, plain.publish)


def marking_figures(layer: MarkingSection, marking: Marking) -> dict[str, Any]:
    """What was decided, what it costs, and how many links had to be decided together."""
    parts = np.bincount(marking.part[marking.part >= 0])
    return layer.record.model_dump() | {
        "entangled": int(parts.sum()),
        "parts": len(parts),
        "largest_part": int(parts.max(initial=0)),
    }


def compared_markings(
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
    counts = DescriptorCounts(marking.sigma, marking.tau)
    if merging:
        marks["best merged"] = marking.publish
    rows = [
        {"marking": name, "cost": cost_of_marks(problem, counts, publish)}
        | on_links(problem, merging.counts if merging else counts, publish, merging is not None)
        for name, publish in marks.items()
    ]
    return sorted(rows, key=lambda row: -row.get("merged", row["cost"]))


def on_links(
    problem: MarkingProblem, counts: DescriptorCounts, publish: Bools, merge: bool
) -> dict[str, float]:
    cost = np.where(publish, *link_costs(problem, counts))
    total = {"merged": float(cost.sum())} if merge else {}
    return total | {
        "per_link": float(cost.sum() / max(problem.size, 1)),
        "largest_link": float(cost.max(initial=0.0)),
    }


# ---- the layer of a plan: its table and its figures


class Merging(NamedTuple):
    """Merged counts of links, and the p-links of the marking that is best without merging."""

    counts: DescriptorCounts
    plain: Bools


def marking_layer(
    problem: MarkingProblem,
    publish: Bools,
    counts: DescriptorCounts,
    params: MarkingParams,
    version: str,
    merging: Merging | None = None,
) -> MarkingSection:
    """Count what a marking costs and put it into a table, by names; ``publish`` has the p-links."""
    record = MarkingRecord(
        params=params,
        nodes=len(problem.nodes),
        publishers=int((problem.published > 0).sum()),
        subscribers=int((problem.subscribed > 0).sum()),
        published=int(problem.published.sum()),
        subscribed=int(problem.subscribed.sum()),
        links=problem.size,
        p_links=int(publish.sum()),
        s_links=int((~publish).sum()),
        cost=cost_of_marks(problem, counts, publish),
        pub_everywhere=pub_everywhere(problem, counts),
        sub_everywhere=sub_everywhere(problem, counts),
        merged=merged_record(problem, publish, counts, merging) if merging else None,
    )
    marks = mark_table(problem, publish, counts, merging)
    return MarkingSection(record, marks, problem.source, version)


def merged_record(
    problem: MarkingProblem, publish: Bools, counts: DescriptorCounts, merging: Merging
) -> MergedRecord:
    return MergedRecord(
        cost=cost_of_marks(problem, merging.counts, publish),
        plain=cost_of_marks(problem, counts, merging.plain),
        plain_merged=cost_of_marks(problem, merging.counts, merging.plain),
        pub_everywhere=pub_everywhere(problem, merging.counts),
        sub_everywhere=sub_everywhere(problem, merging.counts),
    )


def mark_table(
    problem: MarkingProblem, publish: Bools, counts: DescriptorCounts, merging: Merging | None
) -> pa.Table:
    # Storing costs the same at all nodes, and so does a descriptor in both roles.
    nothing = pa.nulls(problem.size, pa.int64())
    return pa.table(
        {
            "from_node": problem.nodes.take(pa.array(problem.tail)),
            "to_node": problem.nodes.take(pa.array(problem.head)),
            "mark": pa.array(np.where(publish, "p", "s"), pa.string()),
            "sigma": counts.sigma,
            "tau": counts.tau,
            "price": problem.publication_price,
            "merged_sigma": merging.counts.sigma if merging else nothing,
            "merged_tau": merging.counts.tau if merging else nothing,
        }
    )
