"""The subscription problem: which filters there are, who has them, and what traffic they cover.

It is loaded from a dataset, or made in memory for a generated workload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.build import equal_audiences, from_pairs, group_sums
from fanplan.data.interest import InterestProblem, load_interest, take_audiences
from fanplan.data.reader import INGEST_AGAIN, read_manifest, read_stage
from fanplan.data.subscription_cells import (
    Boxes,
    TrafficCells,
    covered_cells,
    read_boxes,
    read_hits,
    read_traffic_cells,
)
from fanplan.network.dataset import multicast_domains
from fanplan.workload.generators.generated import Generated
from fanplan.workload.selector import compile_selector
from fanplan.workload.space import Space


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of numbers one after the other: list ``i`` is ``values[starts[i]:starts[i + 1]]``."""

    starts: Longs
    values: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Ints:
        return self.values[self.starts[i] : self.starts[i + 1]]

    def take(self, which: Longs) -> Lists:
        """The lists at these positions."""
        sizes = np.diff(self.starts)[which]
        return Lists(
            starts_of(sizes),
            take_audiences(self.starts, self.values, which),
        )


def lists(left: Any, right: Any, size: int) -> Lists:
    """From pairs (list, value) in any order; a pair given twice counts once."""
    keys = np.unique((np.asarray(left, dtype=np.int64) << 32) | np.asarray(right, dtype=np.int64))
    counts = np.bincount(keys >> 32, minlength=size)
    return Lists(starts_of(counts), (keys & 0xFFFFFFFF).astype(np.int32))


@dataclass(frozen=True, eq=False)
class SubscriptionProblem:
    """The different filters on each topic, each with all its subscribers.

    Subscription ``s`` is to ``topic[s]``; its disjoint boxes are the lines ``boxes[s]`` of ``lo``
    and ``hi`` (axes a topic lacks are [0, 1)). It covers ``rows[s]`` of ``interest``, whose rows
    are flows. ``hits`` counts the publications it asked for, 0 if none were counted. Per row:
    ``row_topic``, ``row_volume``. Per topic, over the window: ``topic_messages`` in its whole space
    of ``topic_volume``, and ``root_hits`` in the smallest box that holds all subscriptions to it.
    ``place`` says where each subscriber is, −1 if that is not known; None if nobody's place is.
    """

    topic: Ints
    boxes: Lists
    lo: Floats
    hi: Floats
    subscribers: Lists
    rows: Lists
    hits: Longs
    interest: InterestProblem
    row_topic: Longs
    row_volume: Floats
    topic_messages: Floats
    topic_volume: Floats
    root_hits: Floats
    place: Longs | None = None

    @property
    def size(self) -> int:
        """Number of subscriptions."""
        return len(self.topic)

    @property
    def content_based(self) -> bool:
        """Whether some subscriptions to a topic differ."""
        return len(np.unique(self.topic)) < self.size


def load_subscriptions(dataset: Path) -> SubscriptionProblem:
    """The subscription problem of a dataset; a pattern counts once for each topic it means.

    Time: a sort of the boxes, and for each box the cells that it meets on the first axis.
    """
    manifest = read_manifest(dataset)
    manifest.require_places("method genetic")
    interest = load_interest(dataset, "flow")
    flows = read_stage(dataset, "flows", ("topic_id", "cell", "messages", "audience_class"))
    cells = read_traffic_cells(dataset, flows, manifest.dimensions)
    wanted = flows["audience_class"].to_numpy() >= 0
    width = max(manifest.dimensions, 1)
    regions, cover = (read_boxes(dataset, stage, width) for stage in ("regions", manifest.boxes))
    hits = read_hits(dataset, regions) if manifest.rates == "measured" else None
    made = assemble(regions, cover, cells, hits, interest, wanted)
    return replace(made, place=read_places(dataset, len(interest.subscribers)))


def read_places(dataset: Path, subscribers: int) -> Longs | None:
    """Where each subscriber is: the multicast domain of its broker, or the broker if it has none.

    Of a subscriber with several brokers, that of the last subscription counts.
    """
    table = read_stage(dataset, "subscriptions", ("subscriber_id", "broker"))
    known = table.filter(pc.is_valid(table["broker"]))
    if not len(known):
        return None
    brokers = pc.unique(known["broker"].combine_chunks())
    domain, names = multicast_domains(dataset, brokers)
    own = np.where(domain >= 0, domain, len(names) + np.arange(len(brokers)))
    place = np.full(subscribers, -1)
    at = pc.index_in(known["broker"].combine_chunks(), brokers).to_numpy()
    place[known["subscriber_id"].to_numpy()] = np.unique(own, return_inverse=True)[1][at]
    return place


def assemble(
    regions: Boxes,
    cover: Boxes,
    cells: TrafficCells,
    hits: Longs | None,
    interest: InterestProblem,
    wanted: np.ndarray,
) -> SubscriptionProblem:
    """Merge equal filters on a topic, and number cells as rows of the interest problem.

    ``hits`` belongs to the lines of the regions; ``wanted`` says which cells are rows.
    """
    parts, boxes = merge_equal(regions, len(cells.volumes))
    covered = covered_cells(cover, cells)
    part = parts.find(cover)[covered.left]
    if not wanted[covered.right].all():
        what = "a subscription covers a flow without an audience"
        raise InputError(Problem("flows", what, INGEST_AGAIN))
    row = (np.cumsum(wanted) - 1)[covered.right]
    rows = lists(parts.group[part], row, parts.groups)
    line = parts.first_line
    return SubscriptionProblem(
        topic=regions.topic[line].astype(np.int32),
        boxes=boxes,
        lo=regions.lo,
        hi=regions.hi,
        subscribers=lists(parts.group[parts.of_line], regions.who, parts.groups),
        rows=rows,
        hits=part_hits(parts, hits, rows, interest.messages),
        interest=interest,
        row_topic=cells.topic[wanted],
        row_volume=cells.volume[wanted],
        topic_messages=group_sums(cells.topic, cells.messages, len(cells.volumes)),
        topic_volume=cells.volumes,
        root_hits=messages_in_root(cover, cells),
    )


@dataclass(frozen=True, eq=False)
class Parts:
    """A part is what one subscription asks of one topic; parts with equal boxes are a group.

    ``keys`` are (owner, topic) of each part, ``of_line`` the part of each line of the regions,
    ``group`` the group of each part, ``first_line`` a line of each group.
    """

    owners: Longs
    topics: int
    keys: Longs
    of_line: Longs
    group: Longs
    first_line: Longs

    @property
    def groups(self) -> int:
        return len(self.first_line)

    def find(self, boxes: Boxes) -> Longs:
        """The part that each box belongs to."""
        return np.searchsorted(self.keys, part_keys(self.owners, boxes, self.topics))


def part_keys(owners: Longs, boxes: Boxes, topics: int) -> Longs:
    return np.searchsorted(owners, boxes.owner) * topics + boxes.topic


def merge_equal(regions: Boxes, topics: int) -> tuple[Parts, Lists]:
    """Group the parts with equal boxes, in the order of topics and boxes; their lines."""
    owners = np.unique(regions.owner)
    keys, of_line = np.unique(part_keys(owners, regions, topics), return_inverse=True)
    table = np.column_stack((regions.topic, regions.lo, regions.hi))
    box = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    made = lists(of_line, box, len(keys))
    first, group = equal_audiences(made.starts, made.values, np.arange(len(keys)))
    order = np.argsort(made.values[made.starts[first]], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lines = lists(of_line, np.arange(len(of_line)), len(keys)).take(first[order])
    parts = Parts(
        owners, topics, keys, of_line, rank[group], lines.values[lines.starts[:-1]].astype(np.int64)
    )
    return parts, lines


def part_hits(parts: Parts, hits: Longs | None, rows: Lists, messages: Floats) -> Longs:
    """Counted hits; those of a pattern are for all its topics, so messages stand for them there."""
    result = np.zeros(parts.groups, dtype=np.int64)
    if hits is None:
        return result
    covered = np.add.reduceat(np.append(messages[rows.values], 0.0), rows.starts[:-1])
    covered[np.diff(rows.starts) == 0] = 0.0
    per_owner = np.bincount(parts.keys // parts.topics)
    single = per_owner[parts.keys // parts.topics][parts.of_line] == 1
    group = parts.group[parts.of_line]
    counted = np.where(single, hits, np.floor(covered[group]).astype(np.int64))
    np.maximum.at(result, group, counted)
    return result


def messages_in_root(cover: Boxes, cells: TrafficCells) -> Floats:
    """Traffic of each topic in the smallest box of cells that holds all that is covered."""
    topics, width = len(cells.volumes), cells.cell.shape[1]
    low, high = np.full((topics, width), np.inf), np.full((topics, width), -np.inf)
    np.minimum.at(low, cover.topic, cover.lo)
    np.maximum.at(high, cover.topic, cover.hi)
    inside = (low[cells.topic] <= cells.cell) & (cells.cell < high[cells.topic])
    return group_sums(cells.topic, cells.messages * inside.all(axis=1), topics)


def one_per_subscriber(problem: SubscriptionProblem) -> SubscriptionProblem:
    """The same with a subscription of its own for each subscriber: the relation of section 3.1."""
    which = np.repeat(np.arange(problem.size), np.diff(problem.subscribers.starts))
    single = np.arange(len(which) + 1, dtype=np.int64)
    return replace(
        problem,
        topic=problem.topic[which],
        boxes=problem.boxes.take(which),
        subscribers=Lists(single, problem.subscribers.values),
        rows=problem.rows.take(which),
        hits=problem.hits[which],
    )


def generated_subscriptions(
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
    first = starts_of(counts)
    code = codes.indices.to_numpy()
    owner = np.repeat(np.arange(len(code)), counts[code])
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts[code]) - counts[code], counts[code])
    line = first[code[owner]] + rank
    each = [box for boxes in compiled_ for box in boxes]
    lo = np.array([box.lo or (0.0,) for box in each], np.float64)[line]
    hi = np.array([box.hi or (1.0,) for box in each], np.float64)[line]
    who = subscriber.indices.to_numpy().astype(np.int64)[owner]
    topics = topic.to_numpy(zero_copy_only=False).astype(np.int64)[owner]
    return Boxes(topics, owner, who, lo, hi), subscriber.dictionary


def elementary(
    regions: Boxes, topics: int, space: Space, messages: Floats
) -> tuple[Boxes, TrafficCells]:
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
    cells = TrafficCells(of, cell, messages[of] * volume / volumes[of], volume, volumes)
    return replace(regions, lo=lo, hi=hi), cells
