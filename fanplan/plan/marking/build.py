"""The marking layer of a plan from what was decided: its table and its figures."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa

from fanplan.evaluation.marking_cost import (
    Bools,
    Counts,
    marking_cost,
    pub_everywhere,
    sub_everywhere,
)
from fanplan.plan.marking.record import MarkingRecord
from fanplan.plan.marking.types import MarkingLayer
from fanplan.problem.marking import MarkingProblem
from fanplan.problem.marking_dataset import MarkingWishes


def marking_layer(
    problem: MarkingProblem, publish: Bools, counts: Counts, wishes: MarkingWishes, version: str
) -> MarkingLayer:
    """Count what a marking costs and put it into a table, by names; ``publish`` has the p-links."""
    record = MarkingRecord(
        **asdict(wishes),
        nodes=len(problem.nodes),
        publishers=int((problem.published > 0).sum()),
        subscribers=int((problem.subscribed > 0).sum()),
        published=int(problem.published.sum()),
        subscribed=int(problem.subscribed.sum()),
        links=problem.size,
        p_links=int(publish.sum()),
        s_links=int((~publish).sum()),
        cost=marking_cost(problem, counts, publish),
        pub_everywhere=pub_everywhere(problem, counts),
        sub_everywhere=sub_everywhere(problem, counts),
    )
    return MarkingLayer(record, mark_table(problem, publish, counts), problem.source, version)


def mark_table(problem: MarkingProblem, publish: Bools, counts: Counts) -> pa.Table:
    # Storing costs the same at all nodes, and so does a descriptor in both roles.
    return pa.table(
        {
            "from_node": problem.nodes.take(pa.array(problem.tail)),
            "to_node": problem.nodes.take(pa.array(problem.head)),
            "mark": pa.array(np.where(publish, "p", "s"), pa.string()),
            "sigma": counts.sigma,
            "tau": counts.tau,
            "price": problem.publication_price,
        }
    )
