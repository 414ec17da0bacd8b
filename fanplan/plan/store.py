"""Writing a plan folder: plan.json and Parquet tables, whole or not at all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fanplan.errors import CheckError, InputError, Problem
from fanplan.folder import PLAN, whole_folder
from fanplan.plan.channels.record import channels_record
from fanplan.plan.channels.types import ChannelLayer
from fanplan.plan.channels.write import write_channels
from fanplan.plan.check import check_plan
from fanplan.plan.groups.types import GroupsLayer
from fanplan.plan.groups.write import write_groups
from fanplan.plan.marking.types import MarkingLayer
from fanplan.plan.marking.write import write_marking
from fanplan.plan.overlay.types import OverlayLayer
from fanplan.plan.overlay.write import write_overlay
from fanplan.plan.seal import file_hashes, write_record
from fanplan.plan.stored import InputRecord, PlanRecord, StoredPlan, TableRecord, load_plan
from fanplan.problem.dataset import Manifest, read_manifest

__all__ = ["StoredPlan", "load_plan", "save_plan"]

Layer = ChannelLayer | OverlayLayer | MarkingLayer | GroupsLayer


def save_plan(layer: Layer, dataset: Path, out: Path, replace: bool = False) -> StoredPlan:
    """Write a layer planned for a dataset into the folder ``out``; with ``replace`` over a plan.

    The same plan gives the same bytes. A plan that does not pass the check is not written.
    """
    manifest = read_manifest(dataset)
    require_same_input(layer, manifest, dataset)
    with whole_folder(out, PLAN, replace) as folder:
        if isinstance(layer, ChannelLayer):
            write_channels(layer, dataset, manifest, folder)
        elif isinstance(layer, OverlayLayer):
            write_overlay(layer, folder)
        elif isinstance(layer, GroupsLayer):
            write_groups(layer, folder)
        else:
            write_marking(layer, folder)
        write_record(plan_record(layer, manifest, file_hashes(folder)), folder)
        require_valid(folder, dataset)
    return load_plan(out)


def require_same_input(layer: Layer, manifest: Manifest, dataset: Path) -> None:
    if layer.source != manifest.key:
        what = f"its key is {manifest.key}, but the plan was made for {layer.source}"
        raise InputError(Problem(str(dataset), what, "Name the dataset that was planned for"))


def require_valid(folder: Path, dataset: Path) -> None:
    """No plan is written unchecked."""
    violations = check_plan(folder, dataset).violations
    if violations:
        raise CheckError("the plan does not pass its check: " + "; ".join(violations))


def plan_record(layer: Layer, manifest: Manifest, files: dict[str, str]) -> PlanRecord:
    """What plan.json says of a layer whose tables have these hashes."""
    return PlanRecord(
        version=layer.version,
        layers=(layer.layer,),
        input=input_record(manifest),
        seed=layer.seed,
        channels=channels_record(layer) if isinstance(layer, ChannelLayer) else None,
        overlay=layer.record if isinstance(layer, OverlayLayer) else None,
        marking=layer.record if isinstance(layer, MarkingLayer) else None,
        groups=layer.record if isinstance(layer, GroupsLayer) else None,
        files=files,
    )


def input_record(manifest: Manifest) -> InputRecord:
    tables = {table.name: TableRecord.model_validate(table) for table in manifest.tables}
    return InputRecord(**asdict(manifest) | {"tables": tables})
