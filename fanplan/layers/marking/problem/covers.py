"""Descriptors that one of another node covers: where both travel on a link, one is enough."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_stage

REGIONS = 300_000
"""The most regions of one topic, advertised or subscribed to, that are compared: about a minute."""

PAIRS = 20_000_000
"""The most pairs of a region and another node that covers it, in a topic and in all."""

PLAIN = "Mark without merging"


class Covers(NamedTuple):
    """Descriptors that other nodes cover: ``many[k]`` at node ``home[k]`` have the same coverers.

    Those are ``nodes[starts[k]:starts[k + 1]]``. Of equal descriptors at several nodes the first
    covers the others. A descriptor that no other node covers is not there.
    """

    home: Longs
    many: Longs
    starts: Longs
    nodes: Longs


class BothCovers(NamedTuple):
    """Covers among advertised regions, and among regions subscribed to."""

    published: Covers
    subscribed: Covers


def read_covers(dataset: Path, nodes: pa.Array) -> BothCovers:
    """Covers from the stage `descriptor_covers`; an error if there are too many."""
    table = read_stage(dataset, "descriptor_covers", ("publishes", "broker", "coverers", "regions"))
    require_compared(table)
    role = table["publishes"]
    return BothCovers(*(covers_of(table.filter(one), nodes) for one in (role, pc.invert(role))))


def require_compared(table: pa.Table) -> None:
    beyond = table.filter(pc.is_null(table["broker"]))["regions"]
    if len(beyond):
        many = f"{pc.max(beyond).as_py():,} regions"
        limit = f"more than {REGIONS:,} regions or {PAIRS:,} covers are not compared"
        raise InputError(Problem("merge", f"a topic has {many}; {limit}", PLAIN))
    pairs = pc.sum(pc.list_value_length(table["coverers"])).as_py() or 0
    if pairs > PAIRS:
        what = f"{pairs:,} pairs of a region and a node that covers it are more than {PAIRS:,}"
        raise InputError(Problem("merge", what, PLAIN))


def covers_of(table: pa.Table, nodes: pa.Array) -> Covers:
    """Rows of one role as positions of nodes."""
    lists = table["coverers"].combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    home, covering = (
        pc.index_in(names, nodes).to_numpy(zero_copy_only=False).astype(np.int64)
        for names in (table["broker"], lists.flatten())
    )
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Covers(home, table["regions"].to_numpy().astype(np.int64), starts, covering)
