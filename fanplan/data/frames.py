"""Frames of other programs: as tables of a workload, and tables of a plan as frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.sizes import is_local
from fanplan.workload.description_schema import toml_string
from fanplan.workload.tables import INPUT_TABLES

FrameKind = Literal["pandas", "polars", "arrow"]
Frame = Any
"""A frame of pandas, Polars, pyarrow or Spark, rows as dicts, or columns by name."""

KNOWN = "a frame of pandas, Polars, pyarrow or Spark, a list of dicts, or columns by name"


def store_tables(
    tables: Mapping[str, Frame], folder: Path, description: Mapping[str, Any] | str | None
) -> None:
    """A workload folder of tables in memory; what its workload.toml would say is a mapping or text.

    Rows keep their order, so that the quarantine names a row by its position, from 1.
    """
    known = [table.name for table in INPUT_TABLES]
    unknown = [name for name in tables if name not in known]
    if unknown:
        remedy = similar(str(unknown[0]), known) or f"Tables are {', '.join(known)}"
        raise InputError(Problem(str(unknown[0]), "no table of a workload has that name", remedy))
    folder.mkdir()
    for name, frame in tables.items():
        if writes_here(frame):
            frame.write.parquet((folder / name).as_uri())
        else:
            # Without the schema of Arrow: large and dictionary types are plain ones in the file.
            path = folder / f"{name}.parquet"
            pq.write_table(as_arrow(frame, name), path, store_schema=False)
    if description:
        text = description if isinstance(description, str) else as_toml(description)
        (folder / "workload.toml").write_text(text, encoding="utf-8")


def writes_here(frame: Frame) -> bool:
    """Whether a frame is one of Spark whose tasks run on this machine, and write its files."""
    context = getattr(getattr(frame, "sparkSession", None), "_sc", None)
    return context is not None and is_local(context.master)


def as_arrow(frame: Frame, name: str) -> pa.Table:
    """A frame as a table; a column of mixed values becomes texts, to be judged row by row."""
    if hasattr(frame, "sparkSession"):
        return frame.toArrow()
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
    if hasattr(frame, "collect") and hasattr(frame, "lazy"):
        frame = frame.collect()
    if hasattr(frame, "columns") and hasattr(frame, "iloc"):
        return of_columns({str(column): frame[column] for column in frame.columns}, name)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if isinstance(frame, Mapping):
        return of_columns(frame, name)
    if isinstance(frame, Sequence) and all(isinstance(row, Mapping) for row in frame):
        names = dict.fromkeys(str(key) for row in frame for key in row)
        return of_columns({key: [row.get(key) for row in frame] for key in names}, name)
    what = f"is {a_kind_of(frame)}, which is not a table"
    raise InputError(Problem(name, what, f"Give {KNOWN}"))


def of_columns(columns: Mapping[str, Iterable[Any]], name: str) -> pa.Table:
    """Columns as a table."""
    found = {str(key): as_column(values, f"{name}: {key}") for key, values in columns.items()}
    if len({len(column) for column in found.values()}) > 1:
        sizes = ", ".join(f"{key} {len(column)}" for key, column in found.items())
        raise InputError(Problem(name, f"columns of different lengths: {sizes}", "Make them equal"))
    return pa.table(found)


def as_column(values: Iterable[Any], name: str) -> pa.Array:
    """Values as a column. Numbers that are none (NaN) are missing values, as pandas has it."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(
            Problem(name, f"is {a_kind_of(values)}, which is not a column", "Give a list")
        )
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        texts = [None if value is None or value != value else str(value) for value in values]
        return pa.array(texts, pa.string())


def a_kind_of(value: Any) -> str:
    """What something is, for use in a sentence."""
    kind = type(value)
    return f"of type {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")


def as_toml(content: Mapping[str, Any]) -> str:
    """A mapping as the text of workload.toml."""
    return "".join(f"{toml_string(str(key))} = {toml_value(v)}\n" for key, v in content.items())


def toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(as_toml(value).splitlines())} }}"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Iterable):
        return f"[{', '.join(map(toml_value, value))}]"
    what = f"has a value {a_kind_of(value)}"
    raise InputError(Problem("description", what, "Use texts, numbers, lists and mappings"))


def as_frame(table: pa.Table, kind: FrameKind = "pandas") -> Any:
    """A table as a frame of the kind that the caller works with."""
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    if kind != "polars":
        remedy = f"Use one of: {', '.join(get_args(FrameKind))}"
        raise InputError(Problem("kind", f"{kind!r} is not a kind of frame", remedy))
    try:
        import polars
    except ImportError:
        raise InputError(Problem("polars", "is not installed", "pip install polars")) from None
    return polars.from_arrow(table)
