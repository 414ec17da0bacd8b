"""Whether a plan still fits the workload: what has drifted, and what the plan is worth now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fanplan.core.result import Result
from fanplan.core.version import __version__
from fanplan.data.dataset import PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import Manifest, read_manifest, read_stage
from fanplan.layers.layer import Layer
from fanplan.layers.registry import binding_first, bounds_of, layers_of, load_layer, load_plan
from fanplan.plan.drift import LayerNow, Moved
from fanplan.plan.seal import edited, naming_edits
from fanplan.plan.signature import unsigned
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.verbs.check import check_plan, make_stages
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at

PLAN_ANEW = "Plan again, starting from this plan, or allow the drift with a reason"


@dataclass(frozen=True)
class TableDrift:
    """An input table that is not as it was; rows are those understood, None where there is none."""

    name: str
    then: int | None
    now: int | None


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """Whether a plan may be applied to a workload, and why not.

    ``refusals`` cannot be allowed: the plan was edited, or does not pass its check. ``drift`` says
    what differs from the input of the plan; ``reason`` is why it is allowed. ``rows`` has rows of
    input tables that came and went, if the dataset is there that was planned for.
    """

    refusals: tuple[str, ...]
    drift: tuple[str, ...]
    tables: tuple[TableDrift, ...] = ()
    layers: Mapping[str, LayerNow] = field(default_factory=dict)
    rows: Mapping[str, Moved] = field(default_factory=dict)
    reason: str | None = None

    @property
    def ok(self) -> bool:
        return not self.refusals and (not self.drift or self.reason is not None)

    @property
    def reached(self) -> bool:
        """Whether everybody is reached who wants something now."""
        return all(not layer.missed for layer in self.layers.values())

    def notes_shown(self) -> tuple[str, ...]:
        return (*self.refusals, *self.drift)

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "refusals": list(self.refusals),
            "drift": list(self.drift),
            "allowed_because": self.reason,
            "tables": [vars(table) for table in self.tables],
            "rows": {name: vars(moved) for name, moved in self.rows.items()},
            "layers": {name: layer.json() for name, layer in self.layers.items()},
            "reached": self.reached,
        }


@in_our_words
def apply_check(
    plan: AnyPlan,
    dataset: AnyDataset,
    *,
    allow_drift: str | None = None,
    was: AnyDataset | None = None,
    key: PathLike | None = None,
    engine: Engine = EMBEDDED,
) -> Verdict:
    """Whether a stored plan may be applied to a dataset; ``allow_drift`` says why, if it drifted.

    ``was`` is the dataset that it was made for, to count rows that came and went. With the public
    ``key`` of whoever approved it, one that is not signed with it is refused. Spark starts only
    if the dataset lacks stages that the plan was made from.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    stored, older = load_plan(Path(plan)), None if was is None else dataset_at(was).path
    with naming_edits(stored):
        make_stages(plan, dataset, engine)
        found = verdict(stored, dataset.path, allow_drift, older)
    why = None if key is None else unsigned(Path(plan), Path(key))
    return replace(found, refusals=(*found.refusals, f"signature: {why}")) if why else found


def verdict(plan: StoredPlan, dataset: Path, reason: str | None, was: Path | None) -> Verdict:
    """Hold a plan against the dataset to apply it to; ``reason`` allows drift.

    Without drift the plan is checked anew. With it each layer is counted on the dataset as it is.
    ``was`` is the dataset that the plan was made for, to count rows that came and went.
    """
    if was is not None:
        require_dataset_of(plan, was)
    refusals = [f"edited since it was written: {name} (hash differs)" for name in edited(plan)]
    manifest = read_manifest(dataset)
    tables = tuple(drifted_tables(plan, manifest))
    drift = tuple(drifted(plan, manifest, tables))
    if not drift:
        refusals += [v for v in check_plan(plan.folder, dataset).violations if not refusals]
        return Verdict(tuple(refusals), ())
    bounds = bounds_of(plan)
    layers = {
        layer.name: layer.now(plan, dataset, bounds[layer.name]) for layer in told_order(plan)
    }
    rows = {} if was is None else dict(moved_rows(was, dataset))
    for layer in layers_of(plan):
        if was is not None and layer.moved is not None:
            rows |= layer.moved(was, dataset)
    return Verdict(tuple(refusals), drift, tables, layers, rows, reason)


def told_order(plan: StoredPlan) -> list[Layer]:
    """The layers of a plan as they were planned, what binds them first."""
    return binding_first(map(load_layer, plan.record.layers))


def moved_rows(was: Path, dataset: Path) -> Iterator[tuple[str, Moved]]:
    """Rows of input tables, and publishers, that are in one dataset only."""
    both = [read_manifest(folder).stages for folder in (was, dataset)]
    for what, stage, columns in ROWS:
        if all(stage in stages for stages in both):
            then, now = (distinct_rows(folder, stage, columns) for folder in (was, dataset))
            yield what, Moved(without(now, then), without(then, now))


ROWS = (
    ("subscriptions", "subscriptions", ("subscriber", "topic", "filter", "broker")),
    ("advertisements", "advertisements", ("publisher", "topic", "filter", "broker")),
    ("publishers", "advertisements", ("publisher",)),
    ("brokers", "brokers", ("broker",)),
    ("links", "links", ("a", "b")),
)
"""What is counted, in which stage, by which columns."""


def distinct_rows(dataset: Path, stage: str, columns: tuple[str, ...]) -> pa.Table:
    """Different values of columns; none is taken as empty, as joins leave out what is null."""
    table = read_stage(dataset, stage, columns)
    filled = [table[name].cast(pa.string()).fill_null("") for name in columns]
    return pa.table(filled, names=list(columns)).group_by(list(columns)).aggregate([])


def without(rows: pa.Table, others: pa.Table) -> int:
    """How many rows are not among the others."""
    return len(rows.join(others, rows.column_names, join_type="left anti"))


def drifted_tables(plan: StoredPlan, manifest: Manifest) -> Iterator[TableDrift]:
    """Input tables whose files are not those that were planned for."""
    then = plan.record.input.tables
    now = {table.name: table for table in manifest.tables}
    for name in sorted(then.keys() | now.keys()):
        before, after = then.get(name), now.get(name)
        if before is None or after is None or before.key != after.key:
            kept = (before.kept if before else None, after.kept if after else None)
            yield TableDrift(name, *kept)


def drifted(plan: StoredPlan, manifest: Manifest, tables: tuple[TableDrift, ...]) -> Iterator[str]:
    """What differs from what was planned for, in sentences."""
    record = plan.record
    if record.version != __version__:
        yield f"written by version {record.version}, and this is {__version__}"
    for name in ("grid", "cover", "exact", "seconds", "parameters"):
        then, now = getattr(record.input, name), getattr(manifest, name)
        if then != now:
            yield f"{name} was {plain_value(then)} and is {plain_value(now)}"
    if tables:
        yield f"changed tables: {', '.join(table.name for table in tables)}"
    elif record.input.inputs != manifest.inputs and record.version == __version__:
        yield "workload.toml says something else"
    elif record.input.key != manifest.key:
        yield f"the input has the key {manifest.key}, not {record.input.key}"


def plain_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
