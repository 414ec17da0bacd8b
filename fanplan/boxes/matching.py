"""Which boxes hold a point, and what to ask about it, at any number of attributes.

``index_boxes`` makes the index; every question goes to the grid or to the sieve of a point's topic.
All answers are exact: a box holds what is at or above its low end and below its high end on all
axes of its topic. A coordinate that is no number is in no box.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.boxes.gridded import (
    count_grid_hits,
    count_listed,
    find_grid_audiences,
    find_grid_boxes,
    grid_wants,
)
from fanplan.boxes.index import BoxIndex, index_boxes, sifted_topics
from fanplan.boxes.rows import sum_lists
from fanplan.boxes.sifted import (
    count_sifted_hits,
    distinct_values,
    find_sifted,
)
from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled

__all__ = [
    "BoxIndex",
    "count_candidates",
    "count_hits",
    "find_audiences",
    "find_boxes",
    "index_boxes",
    "sum_lists",
    "wants",
]

Rows = tuple[Longs, Longs, Ints]
"""Compressed rows of points: the point of each row, where rows start, their values."""

Finder = Callable[[BoxIndex, Longs, Floats], Rows]

PROBES = 1024
"""Points that tell how many boxes hold the others, in topics with a sieve."""


def find_boxes(index: BoxIndex, topic_id: Longs, x: Floats) -> Rows:
    """The boxes that hold each point, ascending: (order, offsets, boxes).

    Row i is about point ``order[i]`` and has ``boxes[offsets[i]:offsets[i + 1]]``: places in the
    arrays of the index, such as ``index.subscription``, or ``index.given`` for those given to it.
    """
    return _find(index, topic_id, x, find_grid_boxes, _sifted_boxes)


def find_audiences(index: BoxIndex, topic_id: Longs, x: Floats) -> Rows:
    """The sorted distinct owners that want each point: (order, offsets, owners)."""
    return _find(index, topic_id, x, find_grid_audiences, _sifted_audiences)


@compiled
def _sifted_boxes(index: BoxIndex, topic_id: Longs, x: Floats) -> Rows:
    return find_sifted(index.sieve, sifted_topics(index, topic_id), x)


def _sifted_audiences(index: BoxIndex, topic_id: Longs, x: Floats) -> Rows:
    order, offsets, boxes = _sifted_boxes(index, topic_id, x)
    offsets, owners = distinct_values(offsets, boxes, index.owner, len(index.owners))
    return order, offsets, index.owners[owners].astype(np.int32)


def _find(index: BoxIndex, topic_id: Longs, x: Floats, grid: Finder, sieve: Finder) -> Rows:
    """Rows from the grid, then rows from the sieve."""
    if not index.first_sifted and len(index.dimensions):
        return sieve(index, topic_id, x)
    points = _divided(index, topic_id)
    if not len(points[1]):
        return grid(index, topic_id, x)
    if not len(points[0]):
        return sieve(index, topic_id, x)
    found = [
        ask(index, topic_id[part], x[part]) for ask, part in zip((grid, sieve), points, strict=True)
    ]
    (left, left_offsets, left_values), (right, right_offsets, right_values) = found
    return (
        np.concatenate((points[0][left], points[1][right])),
        np.concatenate((left_offsets, left_offsets[-1] + right_offsets[1:])),
        np.concatenate((left_values, right_values)),
    )


def _divided(index: BoxIndex, topic_id: Longs) -> tuple[Longs, Longs]:
    """Points of topics with a grid, or with no boxes at all; and points of topics with a sieve."""
    if index.first_sifted == len(index.dimensions):
        return np.arange(len(topic_id)), np.empty(0, np.int64)
    sifted = sifted_topics(index, topic_id) >= 0
    return np.flatnonzero(~sifted), np.flatnonzero(sifted)


def count_hits(index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, hits: Floats) -> None:
    """Add to ``hits`` the weight of the points that each box holds."""
    if index.first_sifted > 0:
        count_grid_hits(index, topic_id, x, weight, hits)
    if index.first_sifted < len(index.dimensions):
        count_sifted_hits(index.sieve, sifted_topics(index, topic_id), x, weight, hits)


def count_candidates(index: BoxIndex, topic_id: Longs, x: Floats) -> Longs:
    """About how many boxes may hold each point, for those who must bound the memory of answers.

    With a grid, all boxes that its cell lists. With a sieve, the most that any point of the topic
    has in a sample.
    """
    listed, (_, sifted) = count_listed(index, topic_id, x), _divided(index, topic_id)
    if len(sifted):
        topics = sifted_topics(index, topic_id)
        sample = sifted[:: len(sifted) // PROBES + 1]
        order, offsets, _ = find_sifted(index.sieve, topics[sample], x[sample])
        counts, own = np.diff(offsets), topics[sample[order]]
        most = np.zeros(len(index.sieve.lines), np.int64)
        np.maximum.at(most, own, counts)
        most[np.setdiff1d(topics[sifted], own)] = counts.max()
        listed[sifted] = most[topics[sifted]]
    return listed


def wants(
    index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, key: Longs, keys: int
) -> tuple[Longs, Longs, Floats]:
    """Weight of the points of each key that each owner wants: returns (key, owner, weight).

    Keys run from 0 to ``keys`` − 1, and come in this order. An owner whose boxes overlap counts a
    point once.
    """
    _, sifted = _divided(index, topic_id)
    if not len(sifted):
        return grid_wants(index, topic_id, x, weight, key, keys)
    order, offsets, owners = find_audiences(index, topic_id, x)
    return sum_lists(
        key[order],
        keys,
        offsets,
        owners.astype(np.int64),
        np.repeat(weight[order], np.diff(offsets)),
    )
