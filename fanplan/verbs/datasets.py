"""Workloads and datasets: generate, ingest, open."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine

if TYPE_CHECKING:
    from fanplan.workload.generators.generated import TableFormat


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
    from fanplan.core.folder import WORKLOAD, whole_folder
    from fanplan.workload.generators import load_kind
    from fanplan.workload.generators.generated import write_into

    maker = load_kind(kind)
    generated = maker.generate(maker.params(**sizes), seed)
    with whole_folder(Path(out), WORKLOAD, replace) as folder:
        with engine.progress.stage("subscriptions and advertisements"):
            write_into(generated, folder, format)
        if publications:
            from fanplan.data.synthesis import write_publications

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
    from fanplan.data.ingest.ingest import ingest_workload

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
    from fanplan.layers.registry import load_plan

    with as_dataset(workload, engine, load_plan(Path(plan)).record.input.parameters) as dataset:
        yield dataset
