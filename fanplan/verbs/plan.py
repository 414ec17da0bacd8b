"""Planning: one function for each command, and plans as folders: checked, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fanplan.core.errors import CheckError, InputError, Problem
from fanplan.core.folder import PLAN, require_room, whole_folder
from fanplan.core.options import Command
from fanplan.core.result import Result
from fanplan.core.stop import Stop, Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import Manifest, read_manifest
from fanplan.layers import command_of
from fanplan.layers.registry import load_layer, load_plan, records
from fanplan.plan.made import Job, Planned
from fanplan.plan.seal import table_hashes, write_plan_record
from fanplan.plan.section import PlannedSection
from fanplan.plan.stored import InputRecord, PlanRecord, StoredPlan, TableRecord
from fanplan.verbs.check import check_plan
from fanplan.verbs.given import AnyDataset, dataset_at, in_our_words
from fanplan.verbs.keywords import documented, options_of, signature_of


@dataclass(frozen=True, eq=False, repr=False)
class Made(Result):
    """A plan together with the dataset it is for."""

    planned: Planned
    dataset: Dataset
    command: Command

    @property
    def sections(self) -> tuple[Any, ...]:
        return self.planned.sections

    @property
    def section(self) -> Any:
        """The section of a plan that has one."""
        return self.planned.section

    @property
    def ended(self) -> str | None:
        """What ended the search early."""
        return self.planned.ended

    drawn = ("total", "cost", "perfect", "link_messages", "bound")

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        return self.planned.summary()

    def bars(self) -> Mapping[str, float]:
        """What it costs beside no plan and the least possible; of a design, step by step."""
        told = self.summary()
        if steps := told.get("steps"):
            return {step["step"]: step["cost"] for step in steps}
        without = {"all by unicast": self.planned.without} if self.planned.without else {}
        return without | dict(super().bars())

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.command.name}: ", 1)

    def compared(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Other ways beside the plan; without names those that the command shows."""
        return self.planned.compared(self.command.beside if names is None else names)

    def beside(self, name: str) -> list[dict[str, Any]]:
        """Further rows about the plan, by their name."""
        return self.planned.beside[name]

    def explain(self, name: str) -> list[dict[str, Any]]:
        """Why the item of that name is where it is."""
        return self.planned.explained(name)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        return save_layers(self.sections, self.dataset.path, Path(out), replace).folder


def planner(name: str) -> Callable[..., Made]:
    """The function that plans as the command of that name does."""
    command = command_of(name)

    @in_our_words
    def plan(
        dataset: AnyDataset,
        *first: Any,
        seed: int = 0,
        time: float | None = None,
        stop: Stop | None = None,
        explain: Iterable[str] = (),
        engine: Engine = EMBEDDED,
        **options: Any,
    ) -> Made:
        dataset, params = dataset_at(dataset), options_of(command, first, options)
        job = Job(dataset, seed, Watch(time, stop), engine, tuple(explain))
        # Only now, with all that the layer searches by: options alone answer quickly.
        plan_by = command.part("command").PLANS
        return Made(plan_by[name](job, params), dataset, command)

    plan.__name__ = plan.__qualname__ = name
    plan.__doc__ = documented(command)
    plan.__signature__ = signature_of(command, Made)  # type: ignore[attr-defined]
    return plan


# ---- on disk


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
        write_plan_record(plan_record(layers, manifest, table_hashes(folder)), folder)
        require_valid(folder, dataset)
    return load_plan(out)


SAME = ("flows", "classes", "subscribers")
"""Stages whose rows a plan has, too."""


def require_plan_room(dataset: Path, out: Path) -> None:
    """Room for a plan; it is about as large as the rows that it has in common with its dataset."""
    files = [file for stage in SAME for file in (dataset / stage).glob("*.parquet")]
    require_room(out, sum(file.stat().st_size for file in files))


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
