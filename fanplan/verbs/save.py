"""Writing a plan folder: plan.json and Parquet tables, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fanplan.core.errors import CheckError, InputError, Problem
from fanplan.core.folder import PLAN, whole_folder
from fanplan.data.reader import Manifest, read_manifest
from fanplan.layers.registry import load_layer, load_plan, records
from fanplan.plan.seal import file_hashes, write_record
from fanplan.plan.section import PlannedSection
from fanplan.plan.stored import InputRecord, PlanRecord, StoredPlan, TableRecord
from fanplan.verbs.check import check_plan

__all__ = ["StoredPlan", "load_plan", "save_layers", "save_plan"]


def save_plan(layer: PlannedSection, dataset: Path, out: Path, replace: bool = False) -> StoredPlan:
    """Write a plan of one layer."""
    return save_layers((layer,), dataset, out, replace)


def save_layers(
    layers: Sequence[PlannedSection], dataset: Path, out: Path, replace: bool = False
) -> StoredPlan:
    """Write layers planned for a dataset into the folder ``out``; with ``replace`` over a plan.

    The same plan gives the same bytes. A plan that does not pass the check is not written.
    """
    manifest = read_manifest(dataset)
    with whole_folder(out, PLAN, replace) as folder:
        for layer in layers:
            require_same_input(layer, manifest, dataset)
            load_layer(layer.layer).write(layer, dataset, folder)
        write_record(plan_record(layers, manifest, file_hashes(folder)), folder)
        require_valid(folder, dataset)
    return load_plan(out)


def require_same_input(layer: PlannedSection, manifest: Manifest, dataset: Path) -> None:
    if layer.source != manifest.key:
        what = f"its key is {manifest.key}, but the plan was made for {layer.source}"
        raise InputError(Problem(str(dataset), what, "Name the dataset that was planned for"))


def require_valid(folder: Path, dataset: Path) -> None:
    """No plan is written unchecked."""
    violations = check_plan(folder, dataset).violations
    if violations:
        raise CheckError("the plan does not pass its check: " + "; ".join(violations))


def plan_record(
    layers: Sequence[PlannedSection], manifest: Manifest, files: dict[str, str]
) -> PlanRecord:
    """What plan.json says of layers whose tables have these hashes."""
    sections = {layer.layer: load_layer(layer.layer).recorded(layer) for layer in layers}
    return PlanRecord(
        version=layers[0].version,
        layers=tuple(layer.layer for layer in layers),
        input=input_record(manifest),
        seed=max(layer.seed for layer in layers),
        files=files,
        sections={name: sections[name] for name in records() if name in sections},
    )


def input_record(manifest: Manifest) -> InputRecord:
    tables = {table.name: TableRecord.model_validate(table) for table in manifest.tables}
    return InputRecord(**asdict(manifest) | {"tables": tables})
