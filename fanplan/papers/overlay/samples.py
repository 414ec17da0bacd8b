"""One sample: a workload drawn, planned by the thesis' methods and ours, and simulated."""

from __future__ import annotations

from typing import Any

from fanplan.papers.overlay.allocations import allocations
from fanplan.papers.overlay.examples import examples
from fanplan.papers.overlay.settings import EXAMPLES
from fanplan.papers.overlay.trees import trees


def sample(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    if setting["task"] == EXAMPLES:
        return examples()
    return {"trees": trees, "allocations": allocations}[setting["task"]](setting, seed)
