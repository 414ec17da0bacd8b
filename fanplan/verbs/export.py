"""Export: a checked plan as configuration that a real system loads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import CheckError, InputError, Problem
from fanplan.core.folder import EXPORT, claimed, whole_folder
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.registry import load_plan
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.verbs.check import check
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at

if TYPE_CHECKING:
    from fanplan.systems.system import System


@dataclass(frozen=True, repr=False)
class Exported(Result):
    """An export. ``lacks`` says what of the plan the system cannot express, by name."""

    folder: Path
    system: str
    lacks: tuple[str, ...]
    files: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        told = {"system": self.system, "folder": str(self.folder)}
        return {**told, "files": list(self.files), "not_expressed": list(self.lacks)}


@in_our_words
def export(
    plan: AnyPlan,
    dataset: AnyDataset,
    to: str,
    out: PathLike,
    *,
    addresses: str | None = None,
    port: int | None = None,
    like: PathLike | None = None,
    replace: bool = False,
    key: PathLike | None = None,
    engine: Engine = EMBEDDED,
) -> Exported:
    """Write a plan as configuration for a system: nats, multicast, cyclonedds or mosquitto.

    The plan is checked first, also against a public ``key`` if one is given. ``addresses`` is the
    range of multicast addresses for channels, ``port`` that of channels and unicast; on NATS it is
    the first of three for each broker, and ``like`` is an export whose hosts and ports stay.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    from fanplan.systems.params import ExportParams
    from fanplan.systems.system import load_system
    from fanplan.systems.traffic import planned_ways

    system, params = (
        load_system(to),
        ExportParams.given({"addresses": addresses, "port": port, "like": like}),
    )
    with claimed(Path(out), EXPORT, replace):
        stored = checked_plan(plan, dataset, engine, key)
        with (
            engine.progress.stage(f"export to {to}"),
            whole_folder(Path(out), EXPORT, replace) as folder,
        ):
            ways = planned_ways(stored, dataset.path)
            system.export(stored, dataset.path, ways, params, folder)
            told = {"system": to, "plan": stored.record.seal, "lacks": system.lacks(stored)}
            (folder / EXPORT.sign).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    files = tuple(sorted(str(f.relative_to(out)) for f in Path(out).rglob("*") if f.is_file()))
    return Exported(Path(out), to, system.lacks(stored), files)


def checked_plan(
    plan: PathLike, dataset: Dataset, engine: Engine, key: PathLike | None = None
) -> StoredPlan:
    """A plan that was made for the dataset and holds; no other is enacted."""
    stored = load_plan(Path(plan))
    require_dataset_of(stored, dataset.path)
    with engine.progress.stage("check"):
        result = check(plan, dataset, key=key, engine=engine)
    if not result.ok:
        what = "; ".join(result.violations[:3]) or f"{result.missed:,} deliveries are missed"
        raise CheckError(f"{plan}: the plan does not hold, so it is not enacted: {what}")
    return stored


def lacking(plan: StoredPlan, to: str) -> tuple[str, ...]:
    """What a system cannot express of a plan."""
    from fanplan.systems.system import load_system

    return load_system(to).lacks(plan)


def require_trial(name: str) -> System:
    """A system that trials run on, and can run on this machine."""
    from fanplan.systems.system import load_system

    system = load_system(name)
    if system.trial is None:
        raise InputError(Problem("on", f"there are no trials on {name}", "Use nats or multicast"))
    if system.require is not None:
        system.require()
    return system
