"""The marking layer of a plan from what was decided: its table and its figures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools
from fanplan.layers.marking.ledger import (
    DescriptorCounts,
    cost_of_marks,
    pub_everywhere,
    sub_everywhere,
)
from fanplan.layers.marking.params import MarkingParams
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.record import MarkingRecord, MarkingSection, MergedRecord


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
