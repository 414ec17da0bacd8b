"""What a page is made from: stored plans, the dataset they were made for, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fanplan.page.content import Picture, Section
from fanplan.page.saving import Saving
from fanplan.plan.stored import StoredPlan

NEEDS_DATASET = "Name the workload or its dataset with --workload to see {}."


@dataclass(frozen=True)
class Material:
    """Plans for one dataset, which need not be at hand.

    ``curves`` has the costs at other numbers of channels, by the folder of the plan. ``warnings``
    are what the check found wasteful.
    """

    plans: Sequence[StoredPlan]
    dataset: Path | None = None
    curves: Mapping[Path, Sequence[CurvePoint]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class ToldLayer:
    """A layer of one of the plans; ``name`` is unique on the page."""

    name: str
    layer: str
    title: str
    plan: StoredPlan
    material: Material

    @property
    def folder(self) -> str:
        return self.plan.folder.name


@dataclass(frozen=True)
class Told:
    """What a layer has to tell: what it saves, and its section.

    Pictures in ``beside`` belong to the saving.
    """

    saving: Saving
    section: Section
    beside: Sequence[Picture] = ()


@dataclass(frozen=True)
class CurvePoint:
    """What a plan with so many channels costs, and ``beside`` it other costs to compare with."""

    channels: int
    cost: float
    beside: tuple[float, ...]
