"""What a generator makes: a description, tables, and the law its publications follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.folder import WORKLOAD, whole_folder
from fanplan.core.options import Params
from fanplan.workload.description import Description, to_toml
from fanplan.workload.generators.law import PublicationLaw
from fanplan.workload.generators.tables import TableFormat, write_table


@dataclass(frozen=True, eq=False)
class Generated:
    """A workload in memory. Names in the tables are dictionary-encoded: 4 bytes per mention."""

    description: Description
    tables: Mapping[str, pa.Table]
    law: PublicationLaw


def subscriptions(
    subscribers: pa.Array,
    topics: pa.Array,
    interest: tuple[np.ndarray, np.ndarray],
    filters: Sequence[str | None] | None = None,
) -> pa.Table:
    """The table of (subscriber, topic) pairs that ``interest`` lists as two rows of positions."""
    columns: dict[str, pa.Array] = {
        "subscriber": _mention(interest[0], subscribers),
        "topic": _mention(interest[1], topics),
    }
    if filters is not None:
        columns["filter"] = pa.array(filters, pa.string())
    return pa.table(columns)


def advertisements(law: PublicationLaw) -> pa.Table:
    """One row per topic: its publisher and its rate."""
    columns = {"publisher": law.publishers, "topic": law.topics, "rate": pa.array(law.rates)}
    return pa.table(columns)


def _mention(positions: np.ndarray, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(positions.astype(np.int32)), names)


def write(
    generated: Generated, folder: Path, format: TableFormat = "parquet", replace: bool = False
) -> None:
    """Write ``workload.toml`` and the tables into a folder that appears whole or not at all."""
    with whole_folder(folder, WORKLOAD, replace) as aside:
        write_into(generated, aside, format)


def write_into(generated: Generated, folder: Path, format: TableFormat = "parquet") -> None:
    """Write ``workload.toml`` and the tables into a folder that exists."""
    for name, table in generated.tables.items():
        write_table(table, folder, name, format)
    (folder / "workload.toml").write_text(to_toml(generated.description), encoding="utf-8")


@dataclass(frozen=True)
class Kind:
    """One kind of workload: its name, its meaning, its options and how it is made from a seed."""

    name: str
    meaning: str
    params: type[Params]
    generate: Callable[[Any, int], Generated]
