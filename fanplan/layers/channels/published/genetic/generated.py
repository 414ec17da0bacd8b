"""Subscription problems of generated workloads, made in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats
from fanplan.core.errors import InputError, Problem
from fanplan.data.build import from_pairs
from fanplan.data.subscription_cells import Boxes, Cells, covered_cells
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem, assemble
from fanplan.workload.generators.generated import Generated
from fanplan.workload.selector import compile_selector
from fanplan.workload.space import Space


def from_generated(
    generated: Generated, seconds: float = 1.0, seed: int | None = None
) -> SubscriptionProblem:
    """The problem of a generated workload with at most one attribute, without Spark.

    A flow is an atomic volume: an interval between end points of the topic's own subscriptions.
    Its messages in ``seconds`` are the topic's rate times its share of the topic's volume; with a
    seed, they are drawn with that mean. Hits are the messages that a subscription covers.
    """
    law = generated.law
    if len(law.axes) > 1 or any(axis.weights is not None for axis in law.axes):
        what = "its traffic is not uniform over one attribute"
        raise InputError(Problem(generated.description.name, what, "Write it and ingest it"))
    space = Space(tuple(axis.attribute for axis in law.axes))
    regions, names = generated_boxes(generated, space)
    cover, cells = elementary(regions, len(law.rates), space, law.rates * seconds)
    if seed is not None:
        drawn = np.random.default_rng(seed).poisson(cells.messages)
        cells = replace(cells, messages=drawn.astype(np.float64))
    covered = covered_cells(cover, cells)
    interest = from_pairs(
        covered.right,
        cover.who[covered.left],
        cells.messages,
        cells.messages * law.message_bytes,
        seconds,
        names,
        "flow",
        generated.description.name,
    )
    wanted = np.bincount(covered.right, minlength=len(cells.topic)) > 0
    hits = np.bincount(covered.left, cells.messages[covered.right], len(regions.owner))
    return assemble(regions, cover, cells, np.floor(hits).astype(np.int64), interest, wanted)


def generated_boxes(generated: Generated, space: Space) -> tuple[Boxes, pa.Array]:
    """One line per box of each subscription, and the names of the subscribers."""
    table, most = generated.tables["subscriptions"], generated.description.limits.max_boxes
    subscriber = table["subscriber"].combine_chunks()
    topic = pc.index_in(table["topic"].combine_chunks().cast(pa.string()), generated.law.topics)
    if topic.null_count:
        what = "a subscription is not to one of its topics by name"
        raise InputError(Problem(generated.description.name, what, "Write it and ingest it"))
    if "filter" not in table.column_names:
        table = table.append_column("filter", pa.nulls(len(table), pa.string()))
    codes = pc.dictionary_encode(table["filter"].combine_chunks(), null_encoding="encode")
    compiled_ = [compile_selector(t, space, most) for t in codes.dictionary.to_pylist()]
    counts = np.array([len(boxes) for boxes in compiled_], dtype=np.int64)
    first = np.concatenate(([0], np.cumsum(counts)))
    code = codes.indices.to_numpy()
    owner = np.repeat(np.arange(len(code)), counts[code])
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts[code]) - counts[code], counts[code])
    line = first[code[owner]] + rank
    ends = [
        np.array([side(b) or (fill,) for boxes in compiled_ for b in boxes], np.float64)[line]
        for side, fill in ((lambda b: b.lo, 0.0), (lambda b: b.hi, 1.0))
    ]
    who = subscriber.indices.to_numpy().astype(np.int64)[owner]
    topics = topic.to_numpy(zero_copy_only=False).astype(np.int64)[owner]
    return Boxes(topics, owner, who, *ends), subscriber.dictionary


def elementary(regions: Boxes, topics: int, space: Space, messages: Floats) -> tuple[Boxes, Cells]:
    """The intervals between all end points of a topic, and the regions in numbers of these."""
    domain = (space.whole().lo or (0.0,), space.whole().hi or (1.0,))
    ends = np.concatenate((np.repeat(domain[0], topics), np.repeat(domain[1], topics)))
    value = np.concatenate((ends, regions.lo[:, 0], regions.hi[:, 0]))
    topic = np.concatenate((np.tile(np.arange(topics), 2), regions.topic, regions.topic))
    pairs, position = np.unique(np.column_stack((topic, value)), axis=0, return_inverse=True)
    position = position.ravel()
    number = position - position[:topics][topic]
    lo, hi = np.split(number[2 * topics :].astype(np.float64)[:, None], 2)
    inner = np.flatnonzero(pairs[:-1, 0] == pairs[1:, 0])
    of = pairs[inner, 0].astype(np.int64)
    volume, volumes = pairs[inner + 1, 1] - pairs[inner, 1], ends[topics:] - ends[:topics]
    cell = (inner - position[:topics][of])[:, None]
    cells = Cells(of, cell, messages[of] * volume / volumes[of], volume, volumes)
    return replace(regions, lo=lo, hi=hi), cells
