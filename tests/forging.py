"""Plans that were edited and sealed again: only what the check proves itself can tell them.

`campaign` edits all that plans of all layers say, in turn, and says of each edit what became of it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from delivered import holds

from fanplan.core.errors import InputError
from fanplan.layers.registry import load_plan
from fanplan.plan.seal import table_hashes, write_plan_record
from fanplan.verbs.check import check_plan

Place = tuple[str, ...]
Row = dict[str, Any]


def forge(folder: Path, *keys: str, to: Any) -> None:
    """State something else at a place of plan.json, and seal it."""
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[int(key) if isinstance(place, list) else key]
    place[int(keys[-1]) if isinstance(place, list) else keys[-1]] = to
    path.write_text(json.dumps(content))
    seal(folder)


def forge_rows(folder: Path, table: str, rows: list[Row]) -> None:
    """Replace the rows of a table, and seal it."""
    path = folder / f"{table}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    seal(folder)


def seal(folder: Path) -> None:
    record = load_plan(folder).record
    write_plan_record(record.model_copy(update={"files": table_hashes(folder)}), folder)


# ---- everything that a plan says, edited in turn


@dataclass(frozen=True)
class Corruption:
    """One edit of a plan: where, what was done there, and the deed."""

    place: Place
    deed: str
    apply: Callable[[Path], None]

    @property
    def name(self) -> str:
        return f"{'.'.join(self.place)} {self.deed}"


def corruptions(plan: Path, seed: int = 0, rows: int = 2) -> Iterator[Corruption]:
    """Edits of every leaf and list of plan.json, and of some rows in each column of each table."""
    yield from record_corruptions(json.loads((plan / "plan.json").read_text()))
    draw = np.random.default_rng(seed)
    for path in sorted(plan.glob("*.parquet")):
        yield from table_corruptions(path, draw, rows)


def record_corruptions(content: Any, *place: str) -> Iterator[Corruption]:
    """Hashes are left out: sealing puts them right again."""
    if place[:1] in (("files",), ("seal",)):
        return
    for deed, value in {repr(value): value for value in other_values(content)}.items():
        if place:
            yield Corruption(place, f"to {deed}", partial(forge_at, place, value))
    inside = dict(enumerate(content)) if isinstance(content, list) else content
    if isinstance(inside, dict):
        for key, value in inside.items():
            yield from record_corruptions(value, *place, str(key))


WORDS = {
    "hops": ("ms",),
    "ms": ("hops",),
    "given": ("allocated",),
    "allocated": ("given",),
    "any delivery": ("any delivery of these cells",),
    "distinct audiences": ("dual", "spectral"),
    "dual": ("distinct audiences", "spectral"),
}
"""Words that may stand in the place of others."""


def forge_at(place: Place, value: Any, folder: Path) -> None:
    forge(folder, *place, to=value)


def other_values(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int():
            yield from {value + 1, value * 10 + 1, 0, -1} - {value}
        case float():
            yield from {value * 1.01, value * 10, 0.0, -value} - {value}
        case str():
            yield from {value + "x", "", *WORDS.get(value, ())} - {value}
        case list() | dict() if value:
            yield type(value)()


def table_corruptions(path: Path, draw: np.random.Generator, most: int) -> Iterator[Corruption]:
    """Rows that are dropped, given twice or changed."""
    table, rows = path.stem, pq.read_table(path).to_pylist()

    def edit(deed: str, column: str, changed: list[Row]) -> Corruption:
        return Corruption((table, column), deed, lambda at: forge_rows(at, table, changed))

    if rows:
        yield edit("emptied", "rows", [])
    for at in sorted(draw.choice(len(rows), min(most, len(rows)), replace=False).tolist()):
        yield edit(f"{at} dropped", "rows", rows[:at] + rows[at + 1 :])
        yield edit(f"{at} twice", "rows", [*rows, rows[at]])
        for column in rows[at]:
            for value in cell_values(rows, at, column, draw):
                changed = [*rows[:at], rows[at] | {column: value}, *rows[at + 1 :]]
                yield edit(f"{at} to {value!r}", column, changed)


def cell_values(rows: list[Row], at: int, column: str, draw: np.random.Generator) -> Iterator[Any]:
    """A value of another row, and one that no row has."""
    own = rows[at][column]
    others = sorted({repr(row[column]): row[column] for row in rows}.items())
    others = [value for _, value in others if value != own]
    if others:
        yield others[int(draw.integers(len(others)))]
    yield from list(other_values(own))[:2]


# ---- what becomes of them

Fate = Literal["refused", "same", "stated", "delivers", "ACCEPTED"]

STATED = re.compile(
    r"version$|seed$"
    # What was asked for is history. A limit in it that was forged is proved to hold, or refused.
    r"|(channels|overlay|groups|marking|mesh|delivery)\.params(\.|$)"
    # No tables have the marks, the layers or the trees that these speak of.
    r"|marking\.merged\.plain(_merged)?$|delivery\.layered$"
    # Dual values prove a bound; others may prove it as well.
    r"|dual_values\."
)
"""Places that the check names as stated."""


def fate(corruption: Corruption, plan: Path, dataset: Path, work: Path) -> Fate:
    """What becomes of an edited copy of a plan. Only ACCEPTED is a failure of the check.

    An edit of a table is rightly accepted if, by a count of its own, everybody still gets all that
    is wanted at the cost that is stated.
    """
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(plan, work)
    try:
        corruption.apply(work)
        if not check_plan(work, dataset).ok:
            return "refused"
    except InputError:
        return "refused"
    if contents(work) == contents(plan):
        return "same"
    if STATED.match(".".join(corruption.place)):
        return "stated"
    table = (plan / f"{corruption.place[0]}.parquet").exists()
    return "delivers" if table and holds(work, dataset) else "ACCEPTED"


def contents(plan: Path) -> tuple[Any, ...]:
    """All that a plan says, in whatever order its rows are."""
    told = {n: v for n, v in load_plan(plan).record.content().items() if n not in ("files", "seal")}
    rows = {p.stem: sorted(map(repr, pq.read_table(p).to_pylist())) for p in plan.glob("*.parquet")}
    return told, rows


def campaign(
    plans: dict[str, tuple[Path, Path]], work: Path, seed: int = 0, every: int = 1, rows: int = 2
) -> Iterator[tuple[str, Corruption, Fate]]:
    """Every so manieth corruption of each plan, by its name, and its fate.

    A plan comes with its dataset; the seed chooses rows and where to begin.
    """
    for name, (plan, dataset) in plans.items():
        for number, corruption in enumerate(corruptions(plan, seed, rows)):
            if (number + seed) % every == 0:
                yield name, corruption, fate(corruption, plan, dataset, work)
