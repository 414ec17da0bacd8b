"""The check of the trees that groups hang on: are they those that were asked for?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Longs
from fanplan.data.reader import read_manifest, read_stage
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.record import GroupsRecord
from fanplan.network.brokers import Links
from fanplan.network.dataset import read_brokers, read_links
from fanplan.plan.findings import EXAMPLES, Findings
from fanplan.plan.walks import added_up


def check_trees(
    record: GroupsRecord, trees: BrokerTrees, dataset: Path, findings: Findings
) -> None:
    """Links of trees are given ones, and ways are as short as they can be if that was asked."""
    names = read_brokers(dataset).names
    tree, child = np.nonzero(trees.parent >= 0)
    parent = trees.parent[tree, child]
    if record.params.trees == "given":
        check_given(names, trees.root[tree], parent, child, dataset, findings)
        return
    links = read_links(dataset, names)
    if links is None:
        return
    size = len(names)
    known = links.a.astype(np.int64) * size + links.b
    wanted = np.minimum(parent, child).astype(np.int64) * size + np.maximum(parent, child)
    strange = np.flatnonzero(~np.isin(wanted, known))
    findings.violate("trees: no such link", len(strange), named(names, parent, child, strange))
    if record.params.trees == "per-publisher" and not len(strange):
        check_shortest(names, trees, links, findings)


def check_given(
    names: pa.Array,
    root: np.ndarray,
    parent: np.ndarray,
    child: np.ndarray,
    dataset: Path,
    findings: Findings,
) -> None:
    """Links of a tree are those of the table `trees` with this root."""
    if "trees" not in read_manifest(dataset).stages:
        findings.violate("trees", 1, ["the dataset has no table trees"])
        return
    rows = read_stage(dataset, "trees", ("root", "parent", "child")).to_pylist()
    given = {(row["root"], row["parent"], row["child"]) for row in rows}
    name = names.to_pylist()
    own = [(name[r], name[a], name[b]) for r, a, b in zip(root, parent, child, strict=True)]
    strange = np.array([row for row, link in enumerate(own) if link not in given], np.int64)
    findings.violate("trees: not as given", len(strange), named(names, parent, child, strange))
    roots = {link[0] for link in own}
    lacking = [link for link in given - set(own) if link[0] in roots]
    lost = [f"{a!r} to {b!r}" for _, a, b in sorted(lacking)[:EXAMPLES]]
    findings.violate("trees: a given link is missing", len(lacking), lost)


def check_shortest(names: pa.Array, trees: BrokerTrees, links: Links, findings: Findings) -> None:
    """No link offers a shorter way from a root to anybody (Bellman 1958): then none exists."""
    size = len(names)
    key = links.a.astype(np.int64) * size + links.b
    order = np.argsort(key, kind="stable")
    for tree, root in enumerate(trees.root):
        far = far_from_root(trees, tree, key[order], links.latency_ms[order])
        gap = np.abs(far[links.a] - far[links.b]) - links.latency_ms
        shorter = np.flatnonzero(~(gap <= 1e-9 * np.nanmax(far, initial=1.0)))
        what = f"trees: a shorter way from {names[int(root)].as_py()!r}"
        findings.violate(what, len(shorter), named(names, links.a, links.b, shorter))


def far_from_root(trees: BrokerTrees, tree: int, key: Longs, latency: Floats) -> Floats:
    """How far each broker is from the root of its tree; not a number outside of it."""
    parent, size = trees.parent[tree].astype(np.int64), trees.brokers
    child = np.flatnonzero(parent >= 0)
    ends = np.minimum(child, parent[child]) * size + np.maximum(child, parent[child])
    length = np.zeros((1, size))
    length[0, child] = latency[np.searchsorted(key, ends)]
    far: Floats = added_up(trees.parent[tree : tree + 1], length)[0]
    outside = parent < 0
    outside[trees.root[tree]] = False
    far[outside] = np.nan
    return far


def named(names: pa.Array, a: np.ndarray, b: np.ndarray, rows: Longs) -> list[str]:
    ends = ((int(a[row]), int(b[row])) for row in rows[:EXAMPLES])
    return [f"{names[one].as_py()!r} to {names[other].as_py()!r}" for one, other in ends]
