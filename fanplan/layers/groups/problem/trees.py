"""Where the trees of brokers come from that groups hang on: links, shortest paths, or a table.

What is wrong with links and tables is found before anybody knows where traffic enters. Trees are
hung there afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Ints
from fanplan.core.errors import NAMED, InputError, Problem
from fanplan.data.reader import read_manifest, read_stage, require_understood
from fanplan.layers.groups.params import Grouping
from fanplan.layers.groups.problem.groups import BrokerTrees, first_astray
from fanplan.network.brokers import Links
from fanplan.network.dataset import read_brokers, read_links
from fanplan.network.paths import shortest_tree, ways_of
from fanplan.network.trees import breadth_first, hang, near_of
from fanplan.workload.tables import TREES

READ = ("links", "per-publisher", "given")
"""Kinds that a dataset has by itself."""
OTHER_TREES = (
    "Add --trees per-publisher, name a plan of `fanplan overlay` (--overlay), or remove links"
)


class TreeSource(Protocol):
    """Trees that can be hung at brokers where traffic enters."""

    def hung(self, roots: Ints) -> BrokerTrees:
        """A tree for each of the roots, as far as there is one."""


@dataclass(frozen=True, eq=False)
class SharedTrees:
    """Trees of links over all brokers; what enters at broker i takes the tree ``of[i]``."""

    edges: tuple[Ints, ...]
    of: Ints

    def hung(self, roots: Ints) -> BrokerTrees:
        brokers = len(self.of)
        parent = np.full((len(roots), brokers), NONE, np.int32)
        for tree in np.unique(self.of[roots]):
            mine = np.flatnonzero(self.of[roots] == tree)
            parent[mine] = hung_at(self.edges[tree], roots[mine], brokers).parent
        return BrokerTrees(np.asarray(roots, np.int32), parent)


@dataclass(frozen=True, eq=False)
class PartTrees:
    """Trees over some of the brokers, which are ``used``; their links have positions among these.

    What enters at broker ``used[i]`` takes the tree ``of[i]``.
    """

    edges: tuple[Ints, ...]
    of: Ints
    used: Ints
    brokers: int

    def hung(self, roots: Ints) -> BrokerTrees:
        at = np.full(self.brokers, NONE, np.int32)
        at[self.used] = np.arange(len(self.used))
        own = SharedTrees(self.edges, self.of).hung(at[roots])
        parent = np.full((len(roots), self.brokers), NONE, np.int32)
        parent[:, self.used] = np.where(own.parent >= 0, self.used[own.parent], NONE)
        return BrokerTrees(np.asarray(roots, np.int32), parent)


@dataclass(frozen=True, eq=False)
class ShortestPaths:
    """Links that each root takes its shortest paths over, by latency (Zhang & Hu, section 2.4)."""

    links: Links
    brokers: int

    def hung(self, roots: Ints) -> BrokerTrees:
        latency = np.tile(self.links.latency_ms, 2)
        ways = ways_of(*self.links.both_ways(), latency, self.brokers)
        parent = np.empty((len(roots), self.brokers), np.int32)
        for tree, root in enumerate(roots):
            parent[tree] = shortest_tree(int(root), ways, np.ones(self.brokers, bool)).parent
        return BrokerTrees(np.asarray(roots, np.int32), parent)


@dataclass(frozen=True, eq=False)
class GivenTrees:
    """Trees of a table; those of roots where nothing enters are not used."""

    trees: BrokerTrees

    def hung(self, roots: Ints) -> BrokerTrees:
        used = np.flatnonzero(np.isin(self.trees.root, roots))
        return BrokerTrees(self.trees.root[used], self.trees.parent[used])

    def silent(self, roots: Ints) -> Ints:
        """Roots of trees at which nothing enters."""
        return self.trees.root[~np.isin(self.trees.root, roots)]


def read_tree_source(dataset: Path, kind: str) -> TreeSource:
    """The trees of a kind that a dataset has by itself."""
    if kind not in READ:
        remedy = f"Use one of: {', '.join(READ)}"
        raise InputError(Problem("kind of trees", f"{kind!r} is unknown", remedy))
    names = read_brokers(dataset).names
    used = ("trees",) if kind == "given" else ("links",)
    require_understood(dataset, read_manifest(dataset), used)
    if kind == "given":
        return GivenTrees(read_given_trees(dataset, names))
    links = read_links(dataset, names)
    if links is None:
        what = "there is no table links in the workload"
        raise InputError(Problem("links", what, "Add it, or use trees that are given"))
    if kind == "links":
        require_acyclic(links, names)
        edges = np.stack((links.a, links.b), axis=1)
        return SharedTrees((edges,), np.zeros(len(names), np.int32))
    require_brokers_joined(links, names)
    return ShortestPaths(links, len(names))


def sources_of(dataset: Path, grouping: Grouping) -> Ints:
    """Brokers where traffic enters, after the pipeline made the stages of this grouping."""
    stage = "routes" if grouping.cells is None else "group_routes"
    return np.unique(read_stage(dataset, stage, ("source",))["source"].to_numpy().astype(np.int32))


# ---- links


def require_brokers_joined(links: Links, names: pa.Array) -> Ints:
    """Links must join all brokers; the broker before each on a way from the first."""
    tree = hang(np.stack((links.a, links.b), axis=1), 0, len(names))
    apart = np.flatnonzero(tree.depth == NONE)
    if len(apart):
        first, few = names[0].as_py(), ", ".join(repr(names[int(b)].as_py()) for b in apart[:NAMED])
        what = f"they do not join {first!r} with {few}{' …' if len(apart) > NAMED else ''}"
        raise InputError(Problem("links", what, "Add links that lead there"))
    return tree.parent


def require_acyclic(links: Links, names: pa.Array) -> None:
    """Links must join all brokers without a cycle."""
    before = require_brokers_joined(links, names)
    for a, b in zip(links.a.tolist(), links.b.tolist(), strict=True):
        if before[a] != b and before[b] != a:
            one, other = names[a].as_py(), names[b].as_py()
            what = f"they are no tree: {one!r} to {other!r} closes a cycle"
            raise InputError(Problem("links", what, OTHER_TREES))


# ---- the table of trees


def read_given_trees(dataset: Path, names: pa.Array) -> BrokerTrees:
    """The table `trees`, in positions of brokers."""
    if "trees" not in read_manifest(dataset).stages:
        what = "there is no table trees in the workload"
        raise InputError(Problem("trees", what, "Add it, or use trees of links"))
    table = read_stage(dataset, "trees", TREES.required)
    root, parent, child = (broker_positions(table[name], name, names) for name in TREES.required)
    for row in np.flatnonzero(root == child)[:1]:
        what = f"the root {names[int(root[row])].as_py()!r} has a parent"
        raise InputError(Problem("trees", what, "Remove the link to the root"))
    require_ways(root, parent, child, names)
    return given_trees(root, parent, child, len(names))


def broker_positions(column: pa.ChunkedArray, role: str, names: pa.Array) -> Ints:
    found = pc.index_in(column, names)
    if found.null_count:
        unknown = column.filter(pc.is_null(found)).unique().to_pylist()[:NAMED]
        remedy = "Name a broker of the workload"
        raise InputError(Problem("trees", f"{role} {n!r} is not a broker", remedy) for n in unknown)
    result: Ints = found.to_numpy().astype(np.int32)
    return result


def require_ways(root: Ints, parent: Ints, child: Ints, names: pa.Array) -> None:
    """Every broker of a tree is below its root, once; errors have names."""
    for own in np.unique(root):
        rows = np.flatnonzero(root == own)
        above = np.full(len(names), NONE, np.int32)
        above[child[rows]] = parent[rows]
        _, times = np.unique(child[rows], return_counts=True)
        lost = first_astray(int(own), above)
        if lost != NONE or (times > 1).any():
            twice = np.unique(child[rows])[times > 1]
            broker = names[int(twice[0] if len(twice) else lost)].as_py()
            what = f"that of {names[int(own)].as_py()!r} has not just one way to {broker!r}"
            remedy = "Give links that form one tree, without a cycle"
            raise InputError(Problem("trees", what, remedy))


def hung_at(links: Ints, roots: Ints, brokers: int) -> BrokerTrees:
    """One tree of links, hung at each of the roots: a delivery tree per publisher (section 2.4).

    Row l of ``links`` has two positions of brokers. Memory O(roots × brokers).
    """
    links = np.asarray(links).reshape(-1, 2)
    if len(links) != brokers - 1:
        what = f"{len(links)} links are no tree of {brokers} brokers"
        raise InputError(Problem("links", what, "Give one link less than there are brokers"))
    near = near_of(links, brokers)
    parent = np.empty((len(roots), brokers), np.int32)
    for tree, root in enumerate(roots):
        hung = breadth_first(near, root)
        if len(hung.order) < brokers:
            what = f"they join only {len(hung.order)} of {brokers} brokers with broker {root}"
            remedy = "Give links that form one tree, without a cycle"
            raise InputError(Problem("links", what, remedy))
        parent[tree] = hung.parent
    return BrokerTrees(np.asarray(roots, np.int32), parent)


def given_trees(root: Ints, parent: Ints, child: Ints, brokers: int) -> BrokerTrees:
    """Trees from a table of links with a root each; a broker without a link is in no tree."""
    roots, tree = np.unique(root, return_inverse=True)
    above = np.full((len(roots), brokers), NONE, np.int32)
    above[tree, child] = parent
    return BrokerTrees(roots.astype(np.int32), above)
