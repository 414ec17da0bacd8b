"""Clients at the brokers of a network, after Ge et al. (2002) and Zhang & Hu (2005).

*transit-stub* (Ge et al., section 4.1): transit nodes are the backbone; small networks, the stubs,
hang at each of them. Publishers and subscribers are nodes of stubs. The counts of their descriptors
are Pareto. A descriptor is a square of a plane, as in Figure 1 of the paper.

*tree-grid* (Zhang & Hu, section 5.1): the publisher is at the root of a regular tree, whose leaves
want cells of a content space. How many leaves want a cell, and how many messages fall into it, is
uniform or follows Zipf's law. Which leaves these are is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.options import option
from fanplan.workload.generators.draws import names, streams, with_mean
from fanplan.workload.generators.generated import (
    Generated,
    GeneratorParams,
    WorkloadKind,
    generated_links,
)
from fanplan.workload.generators.population import Population, Regions, as_workload
from fanplan.workload.space import just_above

MOST_BROKERS = 10_000_000

DRAWS = 1000
"""How often a network is drawn before it is said that it will not hang together."""


@dataclass(frozen=True)
class TransitStubParams(GeneratorParams):
    """The paper's 100 nodes; it says nothing of latencies, nor what regions look like."""

    rate: float = option(1.0, "rate of an advertisement, messages/s", above=0)
    domains: int = option(1, "transit domains", at_least=1)
    transit: int = option(4, "transit nodes of each domain", at_least=1)
    stubs: int = option(3, "stubs at each transit node", at_least=1)
    stub_nodes: int = option(8, "nodes of each stub", at_least=1)
    transit_edge: float = option(0.6, "chance of a link in the backbone", above=0, at_most=1)
    stub_edge: float = option(0.42, "chance of a link in a stub", above=0, at_most=1)
    transit_ms: float = option(20.0, "mean latency of a link in the backbone, ms", at_least=0)
    access_ms: float = option(5.0, "mean latency from a stub to the backbone, ms", at_least=0)
    stub_ms: float = option(2.0, "mean latency of a link in a stub, ms", at_least=0)
    publishers: int = option(10, "nodes that publish", at_least=1)
    subscribers: int = option(10, "nodes that subscribe", at_least=1)
    count_min: int = option(1, "fewest descriptors of a node", at_least=1)
    count_max: int = option(100, "most descriptors of a node", at_least=1)
    count_shape: float = option(1.0, "Pareto shape of the counts", above=0)
    floor: int = option(0, "1: counts are rounded down", at_least=0, at_most=1)
    domain: float = option(1000.0, "the plane is this long and wide", above=0)
    side: float = option(50.0, "side of a region", at_least=0.01)
    capacity: float = option(1000.0, "capacity of a broker, messages/s", above=0)

    @property
    def backbone(self) -> int:
        """Number of transit nodes."""
        return self.domains * self.transit

    @property
    def ends(self) -> int:
        """Number of nodes in stubs."""
        return self.backbone * self.stubs * self.stub_nodes

    def relations(self) -> Iterator[Problem]:
        for name in ("publishers", "subscribers"):
            if getattr(self, name) > self.ends:
                what = f"{getattr(self, name)} do not fit into {self.ends} nodes of stubs"
                yield Problem(name, what, "Give fewer, or more stubs")
        if self.count_min > self.count_max:
            what = f"{self.count_min} is more than count_max, which is {self.count_max}"
            yield Problem("count_min", what, "Give the smaller number first")
        if self.side >= self.domain:
            what = f"{self.side} does not fit into a plane of {self.domain}"
            yield Problem("side", what, "Give a smaller side or a larger plane")


@dataclass(frozen=True, eq=False)
class TransitStub:
    """The network of a seed: links between positions of nodes, and descriptors at each node."""

    nodes: pa.Array
    a: np.ndarray
    b: np.ndarray
    latency_ms: np.ndarray
    published: np.ndarray
    subscribed: np.ndarray


def generate_transit_stub(params: TransitStubParams, seed: int) -> Generated:
    """Brokers, links, and a client for each descriptor, as tables; O(links + descriptors)."""
    network = draw_transit_stub(params, seed)
    publishing, subscribing = streams(seed, 7)[5:]
    advertisements = draw_squares(params, publishing, network.published)
    population = Population(
        topics=names("world", 1),
        brokers=network.nodes,
        domain=params.domain,
        subscriptions=draw_squares(params, subscribing, network.subscribed),
        advertisements=advertisements,
        rates=np.full(len(advertisements), params.rate),
    )
    made = as_workload("transit-stub", population, params.capacity, params.message_bytes)
    links = generated_links(network.nodes, network.a, network.b, network.latency_ms)
    return replace(made, tables={**made.tables, "links": links})


def draw_transit_stub(params: TransitStubParams, seed: int) -> TransitStub:
    """The network of a seed as arrays, for those who need no files."""
    linking, timing, placing, publishing, subscribing = streams(seed, 7)[:5]
    kinds = draw_network(params, linking)
    means = np.repeat([params.transit_ms, params.access_ms, params.stub_ms], [*map(len, kinds)])
    a, b = np.concatenate(kinds).T
    size = params.backbone + params.ends
    published, subscribed = np.zeros((2, size), np.int64)
    for counts, many, rng in (
        (published, params.publishers, publishing),
        (subscribed, params.subscribers, subscribing),
    ):
        at = params.backbone + placing.choice(params.ends, many, replace=False)
        counts[at] = draw_pareto(params, rng, many)
    nodes = [*names("t", params.backbone).to_pylist(), *names("s", params.ends).to_pylist()]
    # Whole microseconds; even so, two ways of the same length are rare.
    latency = np.round(means * timing.uniform(0.5, 1.5, len(means)), 3)
    return TransitStub(pa.array(nodes), a, b, latency, published, subscribed)


def draw_network(params: TransitStubParams, rng: np.random.Generator) -> list[np.ndarray]:
    """Links of the backbone, between it and stubs, and in stubs, as rows of two positions."""
    inside = draw_graphs(rng, params.domains, params.transit, params.transit_edge)
    between = draw_graphs(rng, 1, params.domains, params.transit_edge) * params.transit
    between += rng.integers(0, params.transit, between.shape)
    count = params.backbone * params.stubs
    first = params.backbone + np.arange(count) * params.stub_nodes
    gate = first + rng.integers(0, params.stub_nodes, count)
    access = np.stack((np.repeat(np.arange(params.backbone), params.stubs), gate), axis=1)
    stubs = params.backbone + draw_graphs(rng, count, params.stub_nodes, params.stub_edge)
    return [np.concatenate((inside, between)), access, stubs]


def draw_graphs(rng: np.random.Generator, count: int, size: int, chance: float) -> np.ndarray:
    """Links of random graphs, each drawn anew until it hangs together, as rows of two positions.

    Graph i has the nodes i·size to (i + 1)·size − 1, and each pair of them a link with the chance.
    """
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    linked = np.zeros((count, len(pairs)), bool)
    again = np.arange(count)
    for _ in range(DRAWS):
        linked[again] = rng.random((again.size, len(pairs))) < chance
        again = again[~hang_together(linked[again], pairs, size)]
        if not again.size:
            graph, pair = np.nonzero(linked)
            return graph[:, None] * size + pairs[pair]
    what = f"{size} nodes are hardly ever connected if each link has a chance of {chance}"
    raise InputError(Problem("transit_edge, stub_edge", what, "Give a larger chance"))


@compiled
def hang_together(linked: np.ndarray, pairs: np.ndarray, size: int) -> np.ndarray:
    """Which of several graphs are connected; ``linked`` is graphs × pairs.

    Reach spreads from the first node until nothing is added: O(pairs × diameter) for each graph.
    """
    whole = np.empty(len(linked), np.bool_)
    for graph in range(len(linked)):
        reached = np.zeros(size, np.bool_)
        reached[0], found, before = True, 1, 0
        while found > before:
            before = found
            for pair in np.flatnonzero(linked[graph]):
                a, b = pairs[pair]
                if reached[a] != reached[b]:
                    reached[a] = reached[b] = True
                    found += 1
        whole[graph] = found == size
    return whole


def draw_pareto(params: TransitStubParams, rng: np.random.Generator, many: int) -> np.ndarray:
    """Bounded Pareto numbers, by the inverse of their law, as whole numbers."""
    shape = params.count_shape
    low, high = params.count_min**-shape, params.count_max**-shape
    value = (low - rng.random(many) * (low - high)) ** (-1 / shape)
    result: np.ndarray = (np.floor(value) if params.floor else np.rint(value)).astype(np.int64)
    return result


def draw_squares(
    params: TransitStubParams, rng: np.random.Generator, counts: np.ndarray
) -> Regions:
    """As many squares at each node as it has descriptors.

    All have the same size and lie wholly in the plane, so none covers another: descriptors that
    are covered at their node may be left out, and these counts would change.
    """
    broker = np.repeat(np.arange(counts.size), counts)
    lo = np.round(rng.uniform(0.0, params.domain - params.side, (broker.size, 2)), 3)
    return Regions(np.zeros(broker.size, np.int64), lo, np.round(lo + params.side, 3), broker)


# ---- tree-grid


@dataclass(frozen=True)
class TreeGridParams(GeneratorParams):
    """The paper's sizes, and its scenario uniform-uniform."""

    rate: float = option(50.5, "mean rate of a cell, messages/s", above=0)
    arity: int = option(4, "brokers below each broker of the tree", at_least=1)
    levels: int = option(4, "levels of the tree, the root included", at_least=2)
    cells: int = option(100, "cells of the content space", at_least=1)
    zipf_leaves: int = option(0, "1: leaves per cell follow Zipf's law", at_least=0, at_most=1)
    zipf_messages: int = option(0, "1: messages per cell follow Zipf's law", at_least=0, at_most=1)
    messages: int = option(100, "most messages of a cell; only ratios matter to tables", at_least=1)
    hop_ms: float = option(1.0, "latency of a link, ms", at_least=0)
    capacity: float = option(10_000.0, "capacity of a broker, messages/s", above=0)

    @property
    def leaves(self) -> int:
        result: int = self.arity ** (self.levels - 1)
        return result

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


def generate_tree_grid(params: TreeGridParams, seed: int) -> Generated:
    """The world as tables: a subscriber at a leaf for each cell it wants, a publisher per cell."""
    world = draw_tree_grid(params, seed)
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
    made = as_workload("tree-grid", population, params.capacity, params.message_bytes, params.cells)
    child = np.arange(1, params.brokers)
    links = generated_links(brokers, world.parent[child], child, np.full(len(child), params.hop_ms))
    return replace(made, tables={**made.tables, "links": links})


def draw_tree_grid(params: TreeGridParams, seed: int) -> TreeGrid:
    """The world of a seed, for those who need no files."""
    counting, choosing, sending = streams(seed, 3)
    rank = np.arange(1, params.cells + 1)
    sizes = draw_cell_counts(counting, rank, params.leaves, params.zipf_leaves)
    messages = draw_cell_counts(sending, rank, params.messages, params.zipf_messages)
    first = params.brokers - params.leaves
    wanted = [np.sort(choosing.choice(params.leaves, many, replace=False)) for many in sizes]
    parent = (np.arange(params.brokers, dtype=np.int32) - 1) // params.arity
    return TreeGrid(
        parent,
        starts_of(sizes),
        (first + np.concatenate(wanted)).astype(np.int32),
        messages.astype(np.float64),
    )


def draw_cell_counts(
    rng: np.random.Generator, rank: np.ndarray, most: int, zipf: int
) -> np.ndarray:
    """Whole numbers of at least 1: those of Zipf's law, rounded up, or uniform up to the most."""
    return -(-most // rank) if zipf else rng.integers(1, most, len(rank), endpoint=True)


def cell_regions(params: TreeGridParams, cell: np.ndarray, broker: np.ndarray) -> Regions:
    """One cell, from its number to the next, for each broker; the last holds its upper end too."""
    hi = cell + 1.0
    hi[cell == params.cells - 1] = just_above(float(params.cells))
    return Regions(np.zeros(len(cell), int), cell[:, None] + 0.0, hi[:, None], broker)


TRANSIT_STUB = WorkloadKind(
    "transit-stub", "clients in a transit-stub network", TransitStubParams, generate_transit_stub
)
TREE_GRID = WorkloadKind(
    "tree-grid", "a broker tree whose leaves want cells", TreeGridParams, generate_tree_grid
)
