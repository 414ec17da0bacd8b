"""Workloads and datasets: generate, ingest, open."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.owned import claim, release, scratch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.params import ReadParams
from fanplan.data.quarantine import require_kept
from fanplan.verbs.given import in_our_words, path_at

if TYPE_CHECKING:
    from fanplan.data.frames import Frame
    from fanplan.plan.stored import StoredPlan
    from fanplan.workload.generators.generated import TableFormat


PUBLICATION_BYTES = {"parquet": 10, "csv": 30, "jsonl": 60}
"""What a publication takes at least, by the format of tables."""


@in_our_words
def generate(
    kind: str,
    out: PathLike,
    *,
    seed: int = 0,
    publications: int = 0,
    format: TableFormat = "parquet",
    replace: bool = False,
    engine: Engine = EMBEDDED,
    **sizes: float,
) -> Path:
    """Write a workload of a kind; its sizes are the fields of the kind's parameters.

    With ``publications`` Spark draws that many and adds them as a table.
    """
    from fanplan.core.folder import WORKLOAD, require_room, whole_folder
    from fanplan.workload.generators import load_kind
    from fanplan.workload.generators.generated import write_into

    maker = load_kind(kind)
    params = maker.params.given(sizes)
    with whole_folder(Path(out), WORKLOAD, replace) as folder:
        require_room(Path(out), publications * PUBLICATION_BYTES[format])
        generated = maker.generate(params, seed)
        with engine.progress.stage("subscriptions and advertisements"):
            write_into(generated, folder, format)
        if publications:
            from fanplan.data.synthesis import write_publications

            spark = engine.session(publications)
            with engine.progress.stage("publications") as stage:
                seconds = publications / generated.law.total_rate
                into = folder / "publications"
                write_publications(spark, generated.law, publications, seconds, seed, into, format)
                stage.rows(publications)
    return Path(out)


@in_our_words
def ingest(
    workload: PathLike | Mapping[str, Frame],
    out: PathLike | None = None,
    *,
    description: Mapping[str, Any] | str | None = None,
    grid: str | None = None,
    cover: str | None = None,
    cells: int | None = None,
    rates: str | None = None,
    lost_limit: float | None = None,
    engine: Engine = EMBEDDED,
) -> Dataset:
    """Clean, check and compress a workload folder, or frames, into a dataset, on Spark.

    Frames come by the names of tables: of pandas, Polars, pyarrow or Spark, or rows as dicts, in
    any mixture. ``description`` is then what a workload.toml says, as a mapping or as its text.
    The quarantine names their rows by position, from 1. Without ``out`` the dataset lies in a
    temporary folder, which goes with this process.
    If a table loses a larger share of its rows than ``lost_limit`` (one half, unless said
    otherwise) it stops; `quarantine` then shows the rows, from the folder that the error names.
    ``grid``, ``cover``, ``cells`` and ``rates`` go before the description's.
    A dataset that is there already is verified: what is damaged is made again, and ``mended`` of
    the result says what that was.
    """
    from fanplan.data.ingest.ingest import ingest_workload

    asked = {"grid": grid, "cover": cover, "cells": cells, "rates": rates, "lost_limit": lost_limit}
    with as_folder(workload, description) as folder:
        place = Path(out) if out is not None else temporary_place()
        mended = ingest_workload(engine.session, folder, place, asked, engine.progress)
    return Dataset(place, tuple(mended))


@contextmanager
def as_folder(workload: Any, description: Mapping[str, Any] | str | None) -> Iterator[Path]:
    """A workload folder as it is, or one of frames for the length of a ``with`` block."""
    if isinstance(workload, str | Path):
        if description is not None:
            what = "a workload folder has its own description"
            raise InputError(Problem("description", what, "Write it into its workload.toml"))
        yield Path(workload)
        return
    from fanplan.data.frames import KNOWN, a_kind_of, store_tables

    if not isinstance(workload, Mapping):
        what = f"is {a_kind_of(workload)}"
        remedy = f'Give a folder, or {{"subscriptions": …}} where each table is {KNOWN}'
        raise InputError(Problem("workload", what, remedy))
    with scratch("frames") as aside:
        store_tables(workload, aside / "frames", description)
        yield aside / "frames"


def temporary_place() -> Path:
    """A place for a dataset that goes with this process."""
    folder = claim("dataset")
    atexit.register(release, folder)
    return folder / "dataset"


def open_dataset(path: Dataset | PathLike) -> Dataset:
    """A dataset that was written before; an error if it is not whole."""
    if isinstance(path, Dataset):
        return path
    remedy = "Give the folder that fanplan.ingest wrote; fanplan.ingest takes frames"
    dataset = Dataset(path_at(path, "dataset", remedy))
    _ = dataset.manifest
    return dataset


@contextmanager
def as_dataset(
    workload: Dataset | PathLike,
    engine: Engine = EMBEDDED,
    overrides: Mapping[str, Any] | None = None,
) -> Iterator[Dataset]:
    """A dataset as it is, or a workload folder ingested for the length of a ``with`` block.

    Of the overrides a dataset must keep to ``lost_limit``, if it is given.
    """
    asked = overrides or {}
    workload = workload.path if isinstance(workload, Dataset) else workload
    if (Path(workload) / "manifest.json").is_file():
        dataset = open_dataset(workload)
        if asked.get("lost_limit") is not None:
            require_kept(dataset.path, ReadParams(asked["lost_limit"]))
        yield dataset
        return
    from fanplan.data.ingest.ingest import ingest_workload

    with scratch("dataset") as folder:
        out = folder / "dataset"
        ingest_workload(engine.session, Path(workload), out, asked, engine.progress, temporary=True)
        yield Dataset(out)


@contextmanager
def dataset_of_plan(
    plan: PathLike,
    workload: Dataset | PathLike,
    engine: Engine = EMBEDDED,
    overrides: Mapping[str, Any] | None = None,
    require: Callable[[StoredPlan], object] | None = None,
) -> Iterator[Dataset]:
    """The dataset of a plan: a workload folder is ingested with the options the plan records.

    Overrides go before these, unless they are None. ``require`` raises if the plan will not do; it
    is asked before anything is ingested.
    """
    from fanplan.layers.registry import load_plan

    asked = {name: value for name, value in (overrides or {}).items() if value is not None}
    stored = load_plan(Path(plan))
    if require is not None:
        require(stored)
    with as_dataset(workload, engine, stored.record.input.parameters | asked) as dataset:
        yield dataset
