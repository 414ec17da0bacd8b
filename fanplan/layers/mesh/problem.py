"""The question of a mesh: who wants what. Nodes are subscribers, and each topic has its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from fanplan.core.arrays import Ints, Longs, listed_by
from fanplan.data.reader import read_manifest, read_stage
from fanplan.network.dataset import subscriber_names


class Wants(NamedTuple):
    """Who wants what, from both sides, as compiled code reads it.

    Node u wants ``topic[at[u]:at[u + 1]]``, ascending; topic t is wanted by
    ``node[first[t]:first[t + 1]]``, ascending. ``seat`` is where a node's want stands among the
    members of its topic.
    """

    at: Longs
    topic: Ints
    seat: Longs
    first: Longs
    node: Ints


@dataclass(frozen=True, eq=False)
class MeshProblem:
    """Subscribers by name, and the pairs (topic, subscriber) of those that two or more want.

    ``topics`` are names, or numbers of audience classes as words. ``source`` is the key of the
    dataset.
    """

    subscribers: pa.Array
    topics: list[str]
    wants: Wants
    source: str

    @property
    def nodes(self) -> int:
        """Subscribers, also those that share nothing with anybody."""
        return len(self.subscribers)

    @cached_property
    def sizes(self) -> Longs:
        """How many want each topic."""
        return np.diff(self.wants.first)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """Subscribers × topics: 1 where one wants the other."""
        wants = self.wants
        content = (np.ones(len(wants.topic), np.int32), wants.topic, wants.at)
        return scipy.sparse.csr_array(content, (self.nodes, len(self.topics)))

    def common(self, a: Longs, b: Longs) -> Longs:
        """How many topics each subscriber of ``a`` has in common with the one of ``b``."""
        return np.asarray((self.matrix[a] * self.matrix[b]).sum(axis=1), np.int64)


def wants_of(topic: Longs, node: Longs, topics: int, nodes: int) -> Wants:
    """From pairs; each counts once. O(n log n)."""
    pairs = np.unique(topic.astype(np.int64) * nodes + node)
    topic, node = pairs // nodes, pairs % nodes
    first, _ = listed_by(topic, topics)
    at, seat = listed_by(node, nodes)
    return Wants(at, topic[seat].astype(np.int32), seat, first, node.astype(np.int32))


def load_mesh(dataset: Path, of: str) -> MeshProblem:
    """Read who wants what: each topic, or each flow, whose audience is that of its class.

    A topic or class that one subscriber alone wants asks for no link and is left out.
    """
    names = subscriber_names(dataset)
    known, topic, node = (wanted_topics if of == "topics" else wanted_flows)(dataset)
    pairs = np.unique(topic.astype(np.int64) * max(len(names), 1) + node)
    topic, node = pairs // max(len(names), 1), pairs % max(len(names), 1)
    shared = np.bincount(topic, minlength=len(known)) > 1
    number = np.cumsum(shared) - 1
    kept = shared[topic]
    titles = [title for title, several in zip(known, shared.tolist(), strict=True) if several]
    wants = wants_of(number[topic[kept]], node[kept], len(titles), len(names))
    return MeshProblem(names, titles, wants, read_manifest(dataset).key)


def wanted_topics(dataset: Path) -> tuple[list[str], Longs, Longs]:
    """Names of topics, and pairs of a topic and one who asks for something on it."""
    topics = read_stage(dataset, "topics", ("topic", "topic_id")).sort_by("topic_id")
    rows = read_stage(dataset, "regions", ("topic_id", "subscriber_id"))
    rows = rows.group_by(["topic_id", "subscriber_id"]).aggregate([])
    topic, node = (rows[name].to_numpy() for name in ("topic_id", "subscriber_id"))
    return topics["topic"].to_pylist(), topic.astype(np.int64), node.astype(np.int64)


def wanted_flows(dataset: Path) -> tuple[list[str], Longs, Longs]:
    """Numbers of audience classes, and pairs of a class and one of its subscribers."""
    rows = read_stage(dataset, "classes", ("audience_class", "subscribers"))
    rows = rows.sort_by("audience_class")
    sizes = rows["subscribers"].combine_chunks().value_lengths().to_numpy()
    node = rows["subscribers"].combine_chunks().flatten().to_numpy().astype(np.int64)
    names = [str(number) for number in rows["audience_class"].to_pylist()]
    return names, np.repeat(np.arange(len(names)), sizes), node
