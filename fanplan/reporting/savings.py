"""The plans beside the naive system and other baselines, layer by layer."""

from __future__ import annotations

from typing import Any

from fanplan.reporting.content import Listing, Section
from fanplan.reporting.saving import Saving, Step
from fanplan.reporting.waterfall import waterfall


def savings_section(savings: list[Saving]) -> Section:
    """From the naive system to the plan, layer by layer, and every baseline as a table."""
    lead = (
        "From the naive system to the plan: what each step saves. Layers count different things, "
        "so each has its own unit."
    )
    rows = [row for saving in savings for row in systems(saving)]
    header = ("layer", "system", "value", "of naive %", "unit", "plan")
    listing = Listing("systems", "The plan beside other systems", header, rows)
    pictures = [waterfall(saving) for saving in savings]
    return Section("savings", "What it saves", lead, pictures=pictures, listings=[listing])


def systems(saving: Saving) -> list[tuple[Any, ...]]:
    """Every system with its cost, dearest first."""
    known = [*saving.steps, *saving.beside, *([saving.least] if saving.least else [])]
    return [
        (saving.layer, step.words, step.value, of_naive(step, saving), saving.unit, saving.plan)
        for step in sorted(known, key=lambda step: -step.value)
    ]


def of_naive(step: Step, saving: Saving) -> float | None:
    return round(100 * step.value / saving.naive.value, 1) if saving.naive.value else None
