"""How many channels each subscriber may join, from a table that the user gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem, similar

COLUMNS = ("subscriber", "channels")
NAMED = 10
"""How many wrong rows an error names."""


def read_limits(path: Path) -> dict[str, int]:
    """Subscribers and the most channels each may join, from CSV or Parquet with these columns."""
    table = read_table(path)
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        what = f"no column {', '.join(missing)}"
        raise InputError(Problem(str(path), what, "Give the columns subscriber and channels"))
    names, limits = (table[name].to_pylist() for name in COLUMNS)
    rows = list(zip(names, limits, strict=True))
    wrong = [
        Problem(f"{path}: row {number}", f"{limit!r} is not a limit for {name!r}", "Use 0 or more")
        for number, (name, limit) in enumerate(rows, start=1)
        if name is None or not isinstance(limit, int) or limit < 0
    ]
    counts = Counter(names)
    twice = sorted(str(name) for name, times in counts.items() if times > 1)
    wrong += [Problem(str(path), f"{name!r} is given twice", "Keep one row") for name in twice]
    if wrong:
        raise InputError(wrong[:NAMED])
    return {str(name): limit for name, limit in rows}


def read_table(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            return pq.read_table(path)
        options = pa.csv.ConvertOptions(column_types={"subscriber": pa.string()})
        return pa.csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        remedy = "Give a number, or a CSV or Parquet file with columns subscriber and channels"
        raise InputError(Problem(str(path), f"cannot be read ({error})", remedy)) from error


def limits_in_order(
    limits: Mapping[str, int], subscribers: pa.Array, unlimited: int, option: str
) -> list[int]:
    """A limit for each subscriber in the problem's order; ``unlimited`` where none is given."""
    names = subscribers.to_pylist()
    position = {name: i for i, name in enumerate(names)}
    unknown = [name for name in limits if name not in position]
    if unknown:
        raise InputError(
            Problem(
                option,
                f"there is no subscriber {name!r}",
                similar(name, names) or "Leave it out",
            )
            for name in unknown[:NAMED]
        )
    result = np.full(len(names), unlimited, dtype=np.int64)
    for name, limit in limits.items():
        result[position[name]] = limit
    return [int(limit) for limit in result]
