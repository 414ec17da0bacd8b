"""The sections of every page: what is saved, the input, how it was made, and the glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fanplan.data.params import QuarantineParams
from fanplan.data.quarantine import count_reasons
from fanplan.data.reader import Manifest, read_manifest
from fanplan.page.bars import waterfall
from fanplan.page.content import Listing, Section
from fanplan.page.material import Material, Told
from fanplan.page.numbers import number
from fanplan.page.saving import Saving
from fanplan.plan.stored import StoredPlan

# ---- what is saved

SAVINGS_LEAD = "From the naive system to the plan: what each step saves."
SEVERAL = " Layers count different things, so each has its own unit."


def savings_section(layers: list[Told]) -> Section:
    """From the naive system to the plan, layer by layer, and every baseline as a table."""
    lead = SAVINGS_LEAD + (SEVERAL if len({told.saving.unit for told in layers}) > 1 else "")
    rows = [row for told in layers for row in systems(told.saving)]
    header: tuple[str, ...] = ("system", "value", "of naive %", "layer", "unit", "plan")
    if len(layers) == 1:
        rows, header = [row[:3] for row in rows], header[:3]
    listing = Listing("systems", "The plan beside other systems", header, rows)
    pictures = [one for told in layers for one in (waterfall(told.saving), *told.beside)]
    return Section("savings", "What it saves", lead, pictures=pictures, listings=[listing])


def systems(saving: Saving) -> list[tuple[Any, ...]]:
    """Every system with its cost, dearest first."""
    known = [*saving.steps, *saving.beside, *([saving.least] if saving.least else [])]
    naive, about = saving.naive.value, (saving.layer, saving.unit, saving.plan)
    return [
        (step.words, step.value, round(100 * step.value / naive, 1) if naive else None, *about)
        for step in sorted(known, key=lambda step: -step.value)
    ]


# ---- the input: rows kept and quarantined, and why

INPUT_LEAD = (
    "What the plans were made from. A row that could not be understood is in quarantine with its "
    "reason; rows read = rows kept + rows quarantined."
)


def inputs_section(dataset: Path) -> Section:
    manifest = read_manifest(dataset)
    header = ("table", "rows", "kept", "quarantined")
    rows = [(t.name, t.rows, t.kept, t.quarantined) for t in manifest.tables]
    listings = [Listing("tables", "Tables", header, rows)]
    if any(table.quarantined for table in manifest.tables):
        listings.append(reason_listing(dataset))
    facts, notes = input_facts(manifest), manifest.notes
    return Section("input", "Input and quarantine", INPUT_LEAD, facts, (), listings, notes)


def input_facts(manifest: Manifest) -> list[tuple[str, Any]]:
    told = list(manifest.facts().items())
    quarantined = sum(table.quarantined for table in manifest.tables)
    return [("name", manifest.name or "–"), *told, ("rows in quarantine", quarantined)]


def reason_listing(dataset: Path) -> Listing:
    """How many rows each reason holds back, with one of them."""
    reasons = count_reasons(dataset, QuarantineParams())
    rows = [(r.table, r.reason, r.rows, r.example) for r in reasons]
    header = ("table", "reason", "rows", "for example")
    return Listing("quarantine", "Quarantine, by reason", header, rows)


# ---- where plans come from: parameters, seeds, versions and hashes

ORIGIN_LEAD = (
    "All that is needed to make the same plans again. Every plan passed the independent check, "
    "which shares no code with the planners, and its files are as they were written."
)


def origin_section(material: Material) -> Section:
    plans = material.plans
    again = "when they were written" if material.dataset is None else "again, for this page"
    facts = [("plans", len(plans)), ("checked", again), ("dataset", plans[0].record.input.key)]
    listings = [
        Listing(
            "parameters", "Parameters", ("plan", "of", "name", "value"), recorded_parameters(plans)
        ),
        Listing("hashes", "Hashes", ("plan", "file", "hash"), recorded_hashes(plans)),
    ]
    notes = [f"Warning of the check, {warning}" for warning in material.warnings]
    return Section("origin", "How it was made", ORIGIN_LEAD, facts, (), listings, notes)


def recorded_parameters(plans: Sequence[StoredPlan]) -> list[tuple[str, str, str, str]]:
    """Everything a plan records that is neither a figure nor a hash."""
    rows = []
    for plan in plans:
        record = plan.record
        told: dict[str, Any] = {"version (stated)": record.version, "format": record.format}
        told |= {"seed (stated)": record.seed, "layers": ", ".join(record.layers)}
        rows += [(plan.folder.name, "plan", name, number(value)) for name, value in told.items()]
        own = record.input.model_dump(include={"seconds", "grid", "cover", "exact", "parameters"})
        rows += [(plan.folder.name, "input", *item) for item in joined_names(own)]
        for layer in record.layers:
            asked = record.sections[layer].params.recorded()
            # Limits among them are proved; that they were asked for is stated.
            of = f"{layer}, asked for (stated)"
            rows += [(plan.folder.name, of, *item) for item in joined_names(asked)]
    return rows


def joined_names(content: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested names joined by dots; what is empty or not given is left out."""
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            rows += joined_names(value, f"{before}{name}.")
        elif value not in (None, "", [], ()):
            shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            rows.append((before + name, number(shown)))
    return rows


def recorded_hashes(plans: Sequence[StoredPlan]) -> list[tuple[str, str, str]]:
    """Of the tables, of plan.json, and of the dataset that was planned for."""
    rows = []
    for plan in plans:
        name, record = plan.folder.name, plan.record
        rows += [(name, f"{table}.parquet", digest) for table, digest in record.files.items()]
        rows += [(name, "plan.json", record.seal), (name, "dataset", record.input.key)]
    return rows


# ---- the glossary, from docs/glossary.md, which is shipped along


def glossary_section() -> Section:
    words = Listing("words", "Words", ("word", "meaning"), glossary())
    return Section("glossary", "Glossary", "What the words on this page mean.", listings=[words])


def glossary() -> list[tuple[str, str]]:
    """(word, meaning) from the rows of the table."""
    content = files("fanplan.page").joinpath("glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in content.splitlines() if line.startswith("| ")]
    # Without the marks of emphasis and code.
    plain = str.maketrans("", "", "*`")
    return [(word.strip(), meaning.strip().translate(plain)) for word, meaning in rows[2:]]
