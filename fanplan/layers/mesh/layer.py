"""The layer of meshes: which subscribers are linked where there are no brokers."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.layer import Layer
from fanplan.layers.mesh.changes import ACTIONS, stage_mesh
from fanplan.layers.mesh.check import check_mesh
from fanplan.layers.mesh.drift import mesh_now
from fanplan.layers.mesh.record import MeshRecord, write_mesh
from fanplan.layers.mesh.report import tell_mesh
from fanplan.plan.figures import Figure, recorded_figure
from fanplan.plan.stored import StoredPlan


def connected_by(plan: StoredPlan) -> str:
    """What the links connect."""
    return plan.section(MeshRecord).params.connect


FIGURES = (
    Figure("links", recorded_figure(MeshRecord, "links"), "less", scope=connected_by),
    Figure("mean links", recorded_figure(MeshRecord, "degree_mean"), "less", scope=connected_by),
    Figure("most links", recorded_figure(MeshRecord, "degree_max"), "less", scope=connected_by),
    Figure("bound", recorded_figure(MeshRecord, "bound"), scope=connected_by),
)

LAYER = Layer(
    record=MeshRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_mesh(section, folder),
    make_stages=lambda *_: None,  # Every dataset has what is read.
    check=lambda plan, dataset, findings, _: check_mesh(plan, dataset, findings),
    changes=lambda old, new, _, limit, bounds: stage_mesh(old, new, limit),
    actions=ACTIONS,
    now=lambda plan, dataset, _: mesh_now(plan, dataset),
    unreached="subscribers apart from others that want the same",
    tell=lambda planned, _: tell_mesh(planned),
    figures=FIGURES,
)
