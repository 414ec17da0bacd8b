"""What a page is made from: stored plans, the dataset they were made for, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fanplan.page.content import Picture, Section
from fanplan.page.details import Shelf
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
class Now:
    """What each thing of a kind gets under a plan, messages a second, and what is to be done there.

    ``naive`` is what it gets if every message goes everywhere.
    """

    kind: str
    names: Sequence[str]
    rates: Sequence[float]
    naive: float
    actions: Sequence[str]


@dataclass(frozen=True)
class Told:
    """What a layer has to tell: what it saves, its section, and what opens on a click.

    Pictures in ``beside`` belong to the saving.
    """

    saving: Saving
    section: Section
    beside: Sequence[Picture] = ()
    shelves: Sequence[Shelf] = ()
    now: Sequence[Now] = ()


@dataclass(frozen=True)
class CurvePoint:
    """What a plan with this many channels costs, and ``beside`` it other costs to compare with."""

    channels: int
    cost: float
    beside: tuple[float, ...]
