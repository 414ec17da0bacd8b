"""The Python interface: a few verbs over datasets and plans.

>>> import fanplan
>>> dataset = fanplan.ingest("desk", "desk.dataset")
>>> plan = fanplan.channels(dataset, 100)
>>> folder = plan.save("desk.plan")
>>> fanplan.check(folder, dataset).ok
True
>>> fanplan.replay(folder, dataset).ledger.missed
0.0

Only ``generate`` with publications, ``ingest`` and ``replay`` start Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fanplan.errors import InputError, Problem
from fanplan.progress import Progress, quiet

if TYPE_CHECKING:
    from pyarrow import Table

    from fanplan.evaluation.replayed import Replayed
    from fanplan.plan.check import CheckResult
    from fanplan.plan.types import Plan
    from fanplan.problem.dataset import Manifest
    from fanplan.problem.interest import InterestProblem
    from fanplan.workload.generators.tables import TableFormat

PathLike = str | Path


@dataclass(frozen=True)
class Engine:
    """Where Spark runs (embedded unless said otherwise) and where progress is shown."""

    master: str | None = None
    remote: str | None = None
    progress: Progress = field(default_factory=quiet)

    def session(self) -> Any:
        from fanplan.pipeline.spark import session

        with self.progress.stage("start Spark"):
            return session(self.master, self.remote)


EMBEDDED = Engine()


@dataclass(frozen=True)
class Dataset:
    """What ``ingest`` wrote. Reading it needs no Spark."""

    path: Path

    @cached_property
    def manifest(self) -> Manifest:
        from fanplan.problem.dataset import read_manifest

        return read_manifest(self.path)

    def interest(self, rows: Literal["class", "flow"] = "class") -> InterestProblem:
        """The interest problem, with a row per audience class or per flow."""
        from fanplan.problem.interest import load_interest, load_interest_per_flow

        return load_interest_per_flow(self.path) if rows == "flow" else load_interest(self.path)

    def table(self, stage: str) -> Table:
        """A stage's table, read whole: fit for `quarantine` or `classes`, not for publications."""
        from fanplan.problem.dataset import read_stage

        return read_stage(self.path, stage)


@dataclass(frozen=True)
class ChannelPlan:
    """A plan together with the dataset it is for."""

    plan: Plan
    dataset: Dataset

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        plan = self.plan
        return {
            "method": plan.method,
            "cost": plan.cost,
            "perfect": plan.perfect,
            "excess_percent": plan.excess_percent,
            "bound_percent": plan.bound_percent,
            "unicast_fraction": plan.unicast_fraction,
            "channels": plan.map.channels,
            "flows": plan.flows,
            "audience_classes": plan.audience_classes,
        }

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.plan.store import save_plan

        return save_plan(self.plan, self.dataset.path, Path(out), replace).folder


def generate(
    kind: str,
    out: PathLike,
    *,
    seed: int = 0,
    publications: int = 0,
    format: TableFormat = "parquet",
    replace: bool = False,
    engine: Engine = EMBEDDED,
    **sizes: Any,
) -> Path:
    """Write a workload of a kind; its sizes are the fields of the kind's parameters.

    With ``publications`` Spark draws that many and adds them as a table.
    """
    from fanplan.folder import WORKLOAD, whole_folder
    from fanplan.workload.generators import load
    from fanplan.workload.generators.generated import write_into

    maker = load(kind)
    generated = maker.generate(maker.params(**sizes), seed)
    with whole_folder(Path(out), WORKLOAD, replace) as folder:
        with engine.progress.stage("subscriptions and advertisements"):
            write_into(generated, folder, format)
        if publications:
            from fanplan.pipeline.synthesis import write_publications

            spark = engine.session()
            with engine.progress.stage("publications") as stage:
                seconds = publications / generated.law.total_rate
                into = folder / "publications"
                write_publications(spark, generated.law, publications, seconds, seed, into, format)
                stage.rows(publications)
    return Path(out)


def ingest(
    workload: PathLike, out: PathLike, *, engine: Engine = EMBEDDED, **overrides: Any
) -> Dataset:
    """Clean, check and compress a workload folder into a dataset, on Spark.

    Overrides are ``grid``, ``cover``, ``cells`` and ``rates`` of the workload's description.
    """
    from fanplan.pipeline.ingest import ingest_workload

    ingest_workload(engine.session, Path(workload), Path(out), overrides, engine.progress)
    return Dataset(Path(out))


def open_dataset(path: PathLike) -> Dataset:
    """A dataset that was written before; an error if it is not whole."""
    dataset = Dataset(Path(path))
    _ = dataset.manifest
    return dataset


@contextmanager
def as_dataset(
    workload: PathLike, engine: Engine = EMBEDDED, overrides: Mapping[str, Any] | None = None
) -> Iterator[Dataset]:
    """A dataset as it is, or a workload folder ingested for the length of a ``with`` block."""
    if (Path(workload) / "manifest.json").is_file():
        yield open_dataset(workload)
        return
    with tempfile.TemporaryDirectory(prefix="fanplan-") as folder:
        yield ingest(workload, Path(folder) / "dataset", engine=engine, **(overrides or {}))


@contextmanager
def dataset_of_plan(
    plan: PathLike, workload: PathLike, engine: Engine = EMBEDDED
) -> Iterator[Dataset]:
    """The dataset of a plan: a workload folder is ingested with the options the plan records."""
    from fanplan.plan.stored import load_plan

    with as_dataset(workload, engine, load_plan(Path(plan)).record.input.parameters) as dataset:
        yield dataset


def channels(
    dataset: Dataset,
    channels: int,
    *,
    method: str = "kmodes",
    unicast: str | None = None,
    w1: float = 1.0,
    w2: float = 1.0,
    w3: float = 1.0,
    seed: int = 0,
    time: float | None = None,
    **options: Any,
) -> ChannelPlan:
    """Decide which flows share which of the channels and what goes by unicast.

    ``unicast`` names a second step for methods that leave everything on channels; ``time`` is a
    limit in seconds, after which the best plan so far is returned; ``options`` are further fields
    of the method's parameters, such as ``unicast_limit``.
    """
    from fanplan.evaluation.weights import Weights
    from fanplan.planners.channels import find_method, plan_channels
    from fanplan.planners.stop import TimeLimit, never

    _require_whole_cover(dataset)
    chosen = find_method(method, unicast)
    _require_options(chosen.name, chosen.params, options)
    params = chosen.params(channels=channels, weights=Weights(w1, w2, w3), **options)
    stop = never if time is None else TimeLimit(time)
    plan = plan_channels(dataset.interest(chosen.rows), chosen, params, seed, stop)
    return ChannelPlan(plan, dataset)


def _require_options(method: str, params: type, options: Mapping[str, Any]) -> None:
    known = {item.name for item in fields(params)}
    problems = [
        Problem(name, f"is not an option of the method {method}", "Leave it out")
        for name in options
        if name not in known
    ]
    if problems:
        raise InputError(problems)


def _require_whole_cover(dataset: Dataset) -> None:
    """Channels must miss nobody; full cover leaves partly covered cells to default routing."""
    if dataset.manifest.cover == "full" and not dataset.manifest.exact:
        what = "has full cover, which leaves out whoever wants only a part of a cell"
        remedy = "Ingest with --cover overlap, or with --grid atomic"
        raise InputError(Problem(str(dataset.path), what, remedy))


def check(plan: PathLike, dataset: Dataset) -> CheckResult:
    """Prove that a stored plan serves every interested subscriber, or name those it does not."""
    from fanplan.plan.check import check_plan

    return check_plan(Path(plan), dataset.path)


def replay(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> Replayed:
    """Send every publication of the dataset through a stored plan, on Spark."""
    from fanplan.pipeline.replay import replay_plan

    return replay_plan(engine.session, Path(plan), dataset.path, engine.progress)
