"""The plans beside the naive system and other baselines, layer by layer."""

from __future__ import annotations

from typing import Any

from fanplan.page.content import Listing, Section
from fanplan.page.material import Told
from fanplan.page.saving import Saving, Step
from fanplan.page.waterfall import waterfall

LEAD = "From the naive system to the plan: what each step saves."
SEVERAL = " Layers count different things, so each has its own unit."


def savings_section(layers: list[Told]) -> Section:
    """From the naive system to the plan, layer by layer, and every baseline as a table."""
    lead = LEAD + (SEVERAL if len({told.saving.unit for told in layers}) > 1 else "")
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
    return [
        (step.words, step.value, of_naive(step, saving), saving.layer, saving.unit, saving.plan)
        for step in sorted(known, key=lambda step: -step.value)
    ]


def of_naive(step: Step, saving: Saving) -> float | None:
    return round(100 * step.value / saving.naive.value, 1) if saving.naive.value else None
