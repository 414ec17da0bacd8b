"""The check of a mesh: links are walked in each topic, and counted again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from fanplan.core.arrays import Longs
from fanplan.layers.mesh.problem import MeshProblem, load_mesh
from fanplan.layers.mesh.record import MeshRecord
from fanplan.plan.axis import Axis
from fanplan.plan.findings import EXAMPLES, Findings, Missed, require_close
from fanplan.plan.stored import StoredPlan

ROUNDING = 1e-6
"""What may be too much in a sum of fractions."""


class Ends(NamedTuple):
    """Links whose ends are known, as positions of subscribers."""

    a: Longs
    b: Longs


def check_mesh(plan: StoredPlan, dataset: Path, findings: Findings) -> Missed:
    """Each topic is connected by links between those who want it, and figures are as stated."""
    record = plan.section(MeshRecord)
    problem = load_mesh(dataset, record.params.connect)
    rows = plan.read("mesh_links", ("a", "b", "topics"))
    ends = known_ends(problem, rows, findings)
    missed = apart_in_topics(problem, ends)
    findings.violate(
        "mesh: subscribers apart from others that want the same",
        missed.count,
        [f"{subscriber} in {topic}" for topic, subscriber in missed.first],
    )
    check_counts(record, problem, ends, findings)
    return missed


def known_ends(problem: MeshProblem, rows: pa.Table, findings: Findings) -> Ends:
    """The ends of links; each link is there once, between two that have a topic in common."""
    a, b = (Axis(end, problem.subscribers).number(rows).astype(np.int64) for end in ("a", "b"))
    names = [
        f"{one}–{other}" for one, other in zip(*map(to_list, (rows["a"], rows["b"])), strict=True)
    ]
    known = (a >= 0) & (b >= 0)
    violate_some(findings, "mesh: links of unknown subscribers", ~known, names)
    violate_some(findings, "mesh: links not in the order of names", known & (a >= b), names)
    _, first = np.unique(a * problem.nodes + b, return_index=True)
    again = known.copy()
    again[first] = False
    violate_some(findings, "mesh: links that are there twice", again, names)
    common = np.zeros(len(rows), np.int64)
    common[known] = problem.common(a[known], b[known])
    violate_some(findings, "mesh: links that join nothing", known & (common == 0), names)
    wrong = known & (common != rows["topics"].to_numpy())
    violate_some(findings, "mesh: wrong numbers of common topics", wrong, names)
    return Ends(a[known], b[known])


def to_list(column: pa.ChunkedArray) -> list[str]:
    names: list[str] = column.to_pylist()
    return names


def violate_some(findings: Findings, what: str, wrong: np.ndarray, names: list[str]) -> None:
    at = np.flatnonzero(wrong)
    findings.violate(what, len(at), [names[i] for i in at[:EXAMPLES]])


def apart_in_topics(problem: MeshProblem, ends: Ends) -> Missed:
    """Subscribers outside the largest connected part of a topic that they want."""
    wants, matrix = problem.wants, problem.matrix
    both = (matrix[ends.a] * matrix[ends.b]).tocoo()
    topic = np.repeat(np.arange(len(problem.topics)), problem.sizes)
    keys = topic * problem.nodes + wants.node
    one, other = (
        np.searchsorted(keys, both.col.astype(np.int64) * problem.nodes + end[both.row])
        for end in ends
    )
    size = len(keys)
    graph = scipy.sparse.coo_array((np.ones(len(one)), (one, other)), (size, size))
    count, part = connected_components(graph, directed=False)
    sizes = np.bincount(part, minlength=count)
    # The largest part of each topic, of equal ones that of the first by name.
    order = np.lexsort((np.arange(size), -sizes[part], topic))
    largest = part[order[np.searchsorted(topic[order], topic)]]
    away = np.flatnonzero(part != largest)
    first = [
        (problem.topics[topic[seat]], problem.subscribers[int(wants.node[seat])].as_py())
        for seat in away[:EXAMPLES].tolist()
    ]
    return Missed(len(away), tuple(first))


def check_counts(record: MeshRecord, problem: MeshProblem, ends: Ends, findings: Findings) -> None:
    """Counts, degrees, the limit that was asked for, and the bounds."""
    degree = np.bincount(np.concatenate(ends), minlength=problem.nodes)
    nodes = int((np.diff(problem.wants.at) > 0).sum())
    least, lowest = proved_bounds(problem)
    own = {
        "nodes": nodes,
        "topics": len(problem.topics),
        "wants": int(problem.sizes.sum()),
        "links": len(ends.a),
        "separate": int((problem.sizes - 1).sum()),
        "degree_max": int(degree.max(initial=0)),
        "degree_mean": float(degree.sum() / nodes) if nodes else 0.0,
        "bound": least,
        "degree_bound": lowest,
    }
    for name, counted in own.items():
        require_close(f"mesh: {name}", getattr(record, name), counted, counted, findings)
    most = record.params.degree
    over = np.flatnonzero(degree > most) if most is not None else np.empty(0, np.int64)
    names = [problem.subscribers[int(node)].as_py() for node in over[:EXAMPLES]]
    findings.violate(f"mesh: subscribers with more than {most} links", len(over), names)


def proved_bounds(problem: MeshProblem) -> tuple[int, int]:
    """Links that every mesh has, and that somebody has in it; the proof is in `bound`.

    Counted node by node: with whom it has how many topics in common, and the most in each topic.
    """
    wants, nodes = problem.wants, problem.nodes
    need, spared = np.zeros(nodes), np.zeros(len(problem.topics))
    for node in range(nodes):
        topics = wants.topic[wants.at[node] : wants.at[node + 1]]
        if not len(topics):
            continue
        near = np.concatenate([wants.node[wants.first[t] : wants.first[t + 1]] for t in topics])
        common = np.bincount(near, minlength=nodes)
        common[node] = 0
        starts = np.cumsum(problem.sizes[topics]) - problem.sizes[topics]
        shares = 1 / np.maximum.reduceat(common[near], starts)
        need[node] = shares.sum()
        spared[topics] = np.maximum(spared[topics], shares)
    own = np.ceil(need - ROUNDING)
    hung = np.ceil(need.sum() - spared.sum() - ROUNDING)
    least = int(max(hung, np.ceil(own.sum() / 2), chained(problem)))
    mean = np.ceil(2 * least / (int(np.count_nonzero(need)) or 1))
    return least, int(max(own.max(initial=0), mean))


def chained(problem: MeshProblem) -> int:
    """Links that connect all who are chained together by topics: one less than each set has."""
    # One of each topic stands for all: linked to it, they are a set.
    first = np.repeat(problem.wants.node[problem.wants.first[:-1]], problem.sizes)
    ends = (np.ones(len(first)), (problem.wants.node, first))
    star = scipy.sparse.coo_array(ends, (problem.nodes, problem.nodes))
    sets, _ = connected_components(star, directed=False)
    return problem.nodes - int(sets)
