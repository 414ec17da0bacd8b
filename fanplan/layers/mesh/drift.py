"""A stored mesh on a dataset as it is now."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.mesh.check import apart_in_topics, known_ends
from fanplan.layers.mesh.problem import load_mesh
from fanplan.layers.mesh.record import MeshRecord
from fanplan.plan.drift import LayerNow, came_and_went
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan


def mesh_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """Links between subscribers that are still there, and who is apart with them alone."""
    record, links = plan.section(MeshRecord), plan.read("mesh_links", ("a", "b", "topics"))
    problem = load_mesh(dataset, record.params.connect)
    ends = known_ends(problem, links, Findings())
    then = {*links["a"].to_pylist(), *links["b"].to_pylist()}
    wanting = {problem.subscribers[int(node)].as_py() for node in set(problem.wants.node.tolist())}
    figures = {
        "links": (record.links, len(ends.a)),
        "wants": (record.wants, len(problem.wants.node)),
    }
    missed = apart_in_topics(problem, ends).count
    return LayerNow({"subscribers": came_and_went(then, wanting)}, figures, missed)
