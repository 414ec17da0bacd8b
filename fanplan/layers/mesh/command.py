"""Plans a mesh of subscribers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.core.errors import InfeasibleError, Problem
from fanplan.core.stop import Stop
from fanplan.core.version import __version__
from fanplan.layers.mesh.bound import mesh_bound
from fanplan.layers.mesh.params import MeshParams, Method
from fanplan.layers.mesh.problem import MeshProblem, load_mesh
from fanplan.layers.mesh.published.merge import degrees_of, flat_merge, greedy_merge
from fanplan.layers.mesh.record import MeshRecord, MeshSection
from fanplan.layers.mesh.search.mesh import fewest_links, lowest_degree, separate_trees
from fanplan.plan.made import Job, Planned


def plan_mesh(job: Job, params: MeshParams) -> Planned:
    """Link subscribers so that those of each topic, or flow, are connected among themselves."""
    problem = load_mesh(job.dataset.path, params.connect)
    with job.engine.progress.stage(f"mesh {params.method}") as stage:
        job.watch.telling(stage)
        links = np.sort(mesh_links(problem, params, job.seed, job.watch))
    require_degree(problem, links, params)
    record = mesh_record(problem, links, params)
    section = MeshSection(record, link_table(problem, links), problem.source, job.seed, __version__)
    return Planned(
        (section,),
        mesh_figures(record),
        problem,
        compared=lambda names: compare_meshes(problem, names, job),
        ended=job.watch.ended,
    )


def mesh_links(problem: MeshProblem, params: MeshParams, seed: int, stop: Stop) -> Longs:
    """Links as numbers a · nodes + b with a < b."""
    wants = problem.wants
    if not len(wants.node):
        return np.empty(0, np.int64)
    if params.method == "separate":
        return separate_trees(wants)
    if params.method == "best":
        if params.aim == "degree":
            return lowest_degree(wants, seed, stop)
        return fewest_links(wants, params.degree, seed, stop)
    return (greedy_merge if params.method == "greedy" else flat_merge)(wants, seed, stop)


def require_degree(problem: MeshProblem, links: Longs, params: MeshParams) -> None:
    """Raise if the limit of links was exceeded; it says what would do."""
    degrees = degrees_of(links, problem.nodes)
    most = int(degrees.max(initial=0))
    if params.degree is None or most <= params.degree:
        return
    name, bound = problem.subscribers[int(degrees.argmax())].as_py(), mesh_bound(problem.wants)
    what = f"no mesh was found in which nobody has more than {params.degree} links"
    what += f"; {name!r} has {most}, and it is proved that {bound.degree} are needed"
    remedy = f"Allow {most}, or use --aim degree"
    raise InfeasibleError("degree", most, Problem("degree", what, remedy))


def mesh_record(problem: MeshProblem, links: Longs, params: MeshParams) -> MeshRecord:
    wants, bound = problem.wants, mesh_bound(problem.wants)
    nodes = int((np.diff(wants.at) > 0).sum())
    return MeshRecord(
        params=params,
        nodes=nodes,
        topics=len(problem.topics),
        wants=len(wants.node),
        links=len(links),
        separate=int((problem.sizes - 1).sum()),
        degree_mean=2 * len(links) / nodes if nodes else 0.0,
        degree_max=int(degrees_of(links, problem.nodes).max(initial=0)),
        bound=bound.links,
        degree_bound=bound.degree,
    )


def link_table(problem: MeshProblem, links: Longs) -> pa.Table:
    """Columns a, b and topics."""
    a, b = links // max(problem.nodes, 1), links % max(problem.nodes, 1)
    return pa.table(
        {
            "a": problem.subscribers.take(pa.array(a)),
            "b": problem.subscribers.take(pa.array(b)),
            "topics": pa.array(problem.common(a, b), pa.int32()),
        }
    )


def mesh_figures(record: MeshRecord) -> dict[str, Any]:
    """The record, and how far above the bound it is."""
    told = record.model_dump()
    params = told.pop("params")
    over = 100 * (record.links / record.bound - 1) if record.bound else 0.0
    asked = {name: params[name] for name in ("method", "connect")}
    return asked | told | {"over_bound_percent": over}


def compare_meshes(problem: MeshProblem, names: Iterable[str], job: Job) -> list[dict[str, Any]]:
    """Other methods on the same question."""
    rows = []
    for name in names:
        links = mesh_links(problem, MeshParams(cast("Method", name)), job.seed, job.watch)
        degrees = degrees_of(links, problem.nodes)
        rows.append(
            {
                "method": name,
                "links": len(links),
                "degree_mean": float(degrees.sum() / max((degrees > 0).sum(), 1)),
                "degree_max": int(degrees.max(initial=0)),
            }
        )
    return rows


PLANS = {"mesh": plan_mesh}
