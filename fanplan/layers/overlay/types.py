"""What is decided about brokers: where clients are, and which links form which tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from fanplan.data.interest import Floats, Ints, Longs
from fanplan.layers.overlay.record import OverlayRecord


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over the same brokers, as positions; what enters at broker i takes ``of[i]``.

    ``links`` has each link of any tree once, a < b, ascending; ``members[t]`` are the positions of
    the links of tree t.
    """

    links: Ints
    members: tuple[Longs, ...]
    of: Ints


def trees_of(edges: tuple[Ints, ...], of: Ints) -> Trees:
    """Trees from their links, each a row of two positions in any order."""
    size = 1 + max((int(tree.max(initial=0)) for tree in edges), default=0)
    keys = [_keys(tree, size) for tree in edges]
    found = np.unique(np.concatenate(keys))
    links = np.stack((found // size, found % size), axis=1).astype(np.int32)
    members = tuple(np.searchsorted(found, np.sort(tree)) for tree in keys)
    return Trees(links, members, of)


def _keys(tree: Ints, size: int) -> Longs:
    ends = tree.reshape(-1, 2).astype(np.int64)
    return ends.min(axis=1) * size + ends.max(axis=1)


@dataclass(frozen=True, eq=False)
class OverlayLayer:
    """An overlay with its origin and its figures; ``tables`` are those of the plan folder."""

    record: OverlayRecord
    tables: dict[str, pa.Table]
    trees: Trees
    load: Floats
    source: str
    seed: int
    version: str
    layer: Literal["overlay"] = "overlay"
