"""An index over the boxes of all topics: grids for topics with few axes, a sieve for others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.grid import Grid, make_grid
from fanplan.boxes.sieve import Sieve, make_sieve
from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled

# Where a grid is quicker than a sieve, from trials with 100 to a million boxes and 1 to 8 axes.
GRID_AXES, GRID_AXES_OF_FEW, GRID_AXES_OF_MANY = 4, 7, 2
FEW, MANY, VERY_MANY = 256, 50_000, 500_000


class BoxIndex(NamedTuple):
    """Boxes sorted by topic, and what finds them.

    Owners and subscriptions are held as positions in their sorted lists of distinct ids, and
    ``given`` has the positions at which boxes were given. Topics with boxes have rows, found by
    ``row_of_topic`` (−1 for the others): from ``first_sifted`` on they are in the sieve.
    The boxes of a topic with a grid are sorted by owner.
    """

    row_of_topic: Ints
    dimensions: Ints
    lo: Floats
    hi: Floats
    owner: Ints
    owners: Longs
    subscription: Ints
    subscriptions: Longs
    given: Longs
    grid: Grid
    first_sifted: int
    sieve: Sieve


def index_boxes(
    topic_id: Longs, dimensions: Ints, lo: Floats, hi: Floats, owner: Longs, subscription: Longs
) -> BoxIndex:
    """Index boxes given as rows of ``lo`` and ``hi``, of which the first ``dimensions`` axes count.

    A box holds what is at or above ``lo`` and below ``hi`` on all of its axes. Empty boxes hold no
    point and are left out. All boxes of a topic have the same axes.
    """
    topics, topic, boxes = np.unique(topic_id, return_inverse=True, return_counts=True)
    axes = np.zeros(len(topics), np.int64)
    axes[topic] = dimensions
    open_axes = _open_axes(topic, len(topics), lo, hi) - (lo.shape[1] - axes)
    sifted = suits_sieve(boxes, axes, axes - open_axes)[topic]
    return _index(topic_id, dimensions, lo, hi, owner, subscription, sifted)


def suits_sieve(boxes: Longs, axes: Longs, bounded: Floats) -> Bools:
    """Which topics get a sieve: by their boxes, their axes, and how many of these a box bounds.

    A grid is best for few axes; for some more if there are few boxes, with which the blocks of a
    sieve are hardly filled; for fewer if there are very many, or many that leave axes open and are
    listed in cell after cell.
    """
    listed = (boxes >= MANY) & (bounded < axes - 0.5)
    most = np.where(boxes < FEW, GRID_AXES_OF_FEW, GRID_AXES)
    most[listed | (boxes >= VERY_MANY)] = GRID_AXES_OF_MANY
    result: Bools = axes > most
    return result


def _open_axes(topic: Longs, topics: int, lo: Floats, hi: Floats) -> Floats:
    """On how many axes a box of each topic reaches as far as any, on average."""
    total = np.zeros(topics)
    for axis in range(lo.shape[1]):
        least, most = np.full(topics, np.inf), np.full(topics, -np.inf)
        np.minimum.at(least, topic, lo[:, axis])
        np.maximum.at(most, topic, hi[:, axis])
        reaching = (lo[:, axis] <= least[topic]) & (hi[:, axis] >= most[topic])
        total += np.bincount(topic, reaching, topics)
    return total / np.maximum(np.bincount(topic, minlength=topics), 1)


def grid_boxes(
    topic_id: Longs, dimensions: Ints, lo: Floats, hi: Floats, owner: Longs, subscription: Longs
) -> BoxIndex:
    """An index with grids alone, for those who look into its cells."""
    return _index(topic_id, dimensions, lo, hi, owner, subscription, np.zeros(len(lo), np.bool_))


def _index(
    topic_id: Longs,
    dimensions: Ints,
    lo: Floats,
    hi: Floats,
    owner: Longs,
    subscription: Longs,
    sifted: Bools,
) -> BoxIndex:
    axes = np.arange(lo.shape[1])[None, :] < dimensions[:, None]
    kept = np.flatnonzero(((lo < hi) | ~axes).all(axis=1))
    kept = kept[np.lexsort((subscription[kept], owner[kept], topic_id[kept], sifted[kept]))]
    first_box = np.flatnonzero(np.diff(topic_id[kept], prepend=-1))
    bounds, sizes = np.append(first_box, len(kept)), dimensions[kept[first_box]].astype(np.int32)
    gridded = int(np.searchsorted(sifted[kept[first_box]], True))
    at = int(bounds[gridded])
    sieve, order = make_sieve(lo[kept[at:]], hi[kept[at:]], bounds[gridded:] - at, sizes[gridded:])
    kept[at:] = kept[at:][order]
    lo, hi = lo[kept], hi[kept]
    within = np.zeros((len(kept), sieve.within.shape[1]), np.uint64)
    within[at:] = sieve.within
    sieve = sieve._replace(lo=lo, hi=hi, within=within, first_box=sieve.first_box + at)
    owners, owner_rank = np.unique(owner[kept], return_inverse=True)
    subscriptions, subscription_rank = np.unique(subscription[kept], return_inverse=True)
    return BoxIndex(
        _rows_of_topics(topic_id[kept[first_box]]), sizes, lo, hi,
        owner_rank.astype(np.int32), owners.astype(np.int64),
        subscription_rank.astype(np.int32), subscriptions.astype(np.int64), kept,
        make_grid(lo[:at], hi[:at], bounds[: gridded + 1], sizes[:gridded]), gridded, sieve,
    )  # fmt: skip


def _rows_of_topics(topics: Longs) -> Ints:
    """Table from topic number to its place among the topics with boxes."""
    rows = np.full(topics.max() + 1 if len(topics) else 0, -1, np.int32)
    rows[topics] = np.arange(len(topics))
    return rows


@compiled
def sifted_topics(index: BoxIndex, topic_id: Longs) -> Longs:
    """Number of each point's topic in the sieve, −1 if it is not there."""
    topics = np.full(len(topic_id), -1, np.int64)
    for i in range(len(topic_id)):
        if 0 <= topic_id[i] < len(index.row_of_topic):
            topics[i] = max(index.row_of_topic[topic_id[i]] - index.first_sifted, -1)
    return topics
