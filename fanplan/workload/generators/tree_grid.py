"""Cells of a content space that leaves of a tree want, after section 5.1 of Zhang & Hu (2005).

The publisher is at the root of a regular tree. How many leaves want a cell, and how many messages
fall into it, is uniform or follows Zipf's law. Which leaves these are is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import Params, option
from fanplan.workload.generators.draws import names, streams, with_mean
from fanplan.workload.generators.generated import Generated, Kind
from fanplan.workload.generators.population import Population, Regions, attributes, tables_of
from fanplan.workload.space import PLAIN, Space, just_above

MOST_BROKERS = 10_000_000


@dataclass(frozen=True)
class TreeGridParams(Params):
    """The paper's sizes, and its scenario uniform-uniform."""

    rate: float = option(50.5, "mean rate of a cell, messages/s", above=0)
    arity: int = option(4, "brokers below each broker of the tree", at_least=1)
    levels: int = option(4, "levels of the tree, the root included", at_least=2)
    cells: int = option(100, "cells of the content space", at_least=1)
    zipf_leaves: int = option(0, "1: leaves per cell follow Zipf's law", at_least=0, at_most=1)
    zipf_messages: int = option(0, "1: messages per cell follow it", at_least=0, at_most=1)
    messages: int = option(100, "most messages of a cell; only ratios matter to tables", at_least=1)
    hop_ms: float = option(1.0, "latency of a link, ms", at_least=0)
    capacity: float = option(10_000.0, "capacity of a broker, messages/s", above=0)

    @property
    def leaves(self) -> int:
        return self.arity ** (self.levels - 1)

    @property
    def brokers(self) -> int:
        return sum(self.arity**level for level in range(self.levels))

    def relations(self) -> Iterator[Problem]:
        if self.arity > 0 and (self.levels > 64 or self.brokers > MOST_BROKERS):
            what = f"{self.levels} levels of arity {self.arity} are too many brokers"
            yield Problem("levels", what, f"Give at most {MOST_BROKERS:,} brokers in all")


@dataclass(frozen=True, eq=False)
class TreeGrid:
    """The world of a seed as arrays. Broker 0 is the root, the last ones are the leaves.

    Cell c is wanted by ``leaves[starts[c]:starts[c + 1]]``, ascending, and gets ``messages[c]``.
    """

    parent: np.ndarray
    starts: np.ndarray
    leaves: np.ndarray
    messages: np.ndarray


def draw(params: TreeGridParams, seed: int) -> TreeGrid:
    """The world of a seed, for those who need no files."""
    counting, choosing, sending = streams(seed, 3)
    rank = np.arange(1, params.cells + 1)
    sizes = draw_counts(counting, rank, params.leaves, params.zipf_leaves)
    messages = draw_counts(sending, rank, params.messages, params.zipf_messages)
    first = params.brokers - params.leaves
    wanted = [np.sort(choosing.choice(params.leaves, many, replace=False)) for many in sizes]
    parent = (np.arange(params.brokers, dtype=np.int32) - 1) // params.arity
    return TreeGrid(
        parent,
        np.concatenate(([0], np.cumsum(sizes))),
        (first + np.concatenate(wanted)).astype(np.int32),
        messages.astype(np.float64),
    )


def draw_counts(rng: np.random.Generator, rank: np.ndarray, most: int, zipf: int) -> np.ndarray:
    """Whole numbers of at least 1: those of Zipf's law, rounded up, or uniform up to the most."""
    return -(-most // rank) if zipf else rng.integers(1, most, len(rank), endpoint=True)


def generate(params: TreeGridParams, seed: int) -> Generated:
    """The world as tables: a subscriber at a leaf for each cell it wants, a publisher per cell."""
    world = draw(params, seed)
    brokers = names("b", params.brokers)
    cell = np.repeat(np.arange(params.cells), np.diff(world.starts))
    population = Population(
        topics=names("world", 1),
        brokers=brokers,
        domain=float(params.cells),
        subscriptions=cell_regions(params, cell, world.leaves),
        advertisements=cell_regions(params, np.arange(params.cells), np.zeros(params.cells, int)),
        rates=with_mean(world.messages, params.rate),
    )
    made = tables_of(population, "tree-grid", params.capacity, params.message_bytes)
    spaces = (PLAIN, Space(attributes(population), (params.cells,)))
    child = np.arange(1, params.brokers)
    ends = {"a": brokers.take(pa.array(world.parent[child])), "b": brokers.take(pa.array(child))}
    links = pa.table(ends | {"latency_ms": pa.array(np.full(len(child), params.hop_ms))})
    description = replace(made.description, spaces=spaces)
    return replace(made, description=description, tables={**made.tables, "links": links})


def cell_regions(params: TreeGridParams, cell: np.ndarray, broker: np.ndarray) -> Regions:
    """One cell, from its number to the next, for each broker; the last holds its upper end too."""
    hi = cell + 1.0
    hi[cell == params.cells - 1] = just_above(float(params.cells))
    return Regions(np.zeros(len(cell), int), cell[:, None] + 0.0, hi[:, None], broker)


KIND = Kind("tree-grid", "a broker tree whose leaves want cells", TreeGridParams, generate)
