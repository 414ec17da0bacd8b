"""The section on where plans come from: parameters, seeds, versions and hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fanplan.page.content import Listing, Section
from fanplan.page.material import Material
from fanplan.page.numbers import number
from fanplan.plan.stored import PlanRecord, StoredPlan

LEAD = (
    "All that is needed to make the same plans again. Every plan passed the independent check, "
    "which shares no code with the planners, and its files are as they were written."
)


def origin_section(material: Material) -> Section:
    plans = material.plans
    again = "when they were written" if material.dataset is None else "again, for this page"
    facts = [("plans", len(plans)), ("checked", again), ("dataset", plans[0].record.input.key)]
    listings = [
        Listing("parameters", "Parameters", ("plan", "of", "name", "value"), parameters(plans)),
        Listing("hashes", "Hashes", ("plan", "file", "hash"), hashes(plans)),
    ]
    notes = [f"Warning of the check, {warning}" for warning in material.warnings]
    return Section("origin", "How it was made", LEAD, facts, (), listings, notes)


def parameters(plans: Sequence[StoredPlan]) -> list[tuple[str, str, str, str]]:
    """Everything a plan records that is neither a figure nor a hash."""
    rows = []
    for plan in plans:
        record = plan.record
        told: dict[str, Any] = {"version": record.version, "format": record.format}
        told |= {"seed": record.seed, "layers": ", ".join(record.layers)}
        rows += [(plan.folder.name, "plan", name, number(value)) for name, value in told.items()]
        own = record.input.model_dump(include={"seconds", "grid", "cover", "exact", "parameters"})
        rows += [(plan.folder.name, "input", *item) for item in flat(own)]
        for layer in record.layers:
            rows += [(plan.folder.name, layer, *item) for item in flat(wishes(record, layer))]
    return rows


def wishes(record: PlanRecord, layer: str) -> dict[str, Any]:
    """What was asked of a layer."""
    names = {"method", "params", "weights", "metric", "limits", "allocation"}
    names |= {
        "trees",
        "raw",
        "sending",
        "storing",
        "select",
        "rank",
        "grouping",
        "shortcuts",
        "prices",
    }
    given: dict[str, Any] = record.sections[layer].model_dump(mode="json", include=names)
    return given


def flat(content: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested names joined by dots; what is empty or not given is left out."""
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{before}{name}.")
        elif value not in (None, "", [], ()):
            shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            rows.append((before + name, number(shown)))
    return rows


def hashes(plans: Sequence[StoredPlan]) -> list[tuple[str, str, str]]:
    """Of the tables, of plan.json, and of the dataset that was planned for."""
    rows = []
    for plan in plans:
        name, record = plan.folder.name, plan.record
        rows += [(name, f"{table}.parquet", digest) for table, digest in record.files.items()]
        rows += [(name, "plan.json", record.seal), (name, "dataset", record.input.key)]
    return rows
