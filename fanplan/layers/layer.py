"""The contract of a layer: all that verbs ask of it. Each layer fills it in, in its `layer.py`.

A layer that binds others hands each of them, in a plan that has both, what it leaves to it: its
bound. What a bound holds is between the two; verbs only pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.page.material import CurvePoint, Told, ToldLayer
from fanplan.plan.drift import LayerNow, Moved
from fanplan.plan.figures import Figure
from fanplan.plan.findings import Findings, Missed
from fanplan.plan.section import SectionRecord
from fanplan.plan.steps import Staged
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulated import Churned, Simulated, Times

Bound = Any
"""What a layer that binds another hands to it; None in a plan without such a layer."""


class Outcome(Protocol):
    """What a replay measured."""

    @property
    def ok(self) -> bool: ...

    def json(self) -> dict[str, Any]: ...

    def summary(self) -> dict[str, Any]: ...

    def facts(self) -> dict[str, Any]: ...


class Curves(NamedTuple):
    """Costs with other numbers of channels: as stored beside a plan, or planned anew if wanted."""

    stored: Callable[[StoredPlan], list[CurvePoint]]
    wanted: Callable[[StoredPlan], bool]
    planned: Callable[[StoredPlan, Dataset, Engine], list[CurvePoint]]


Replay = Callable[[Path, Dataset, Engine], "Outcome"]
Simulate = Callable[
    [StoredPlan, Dataset, SimulationParams, Times | None, float, int, Engine], Simulated
]
"""Simulates a plan: when messages enter, how many times as fast, and with which seed."""


@dataclass(frozen=True)
class Layer:
    """A layer of plans.

    ``recorded`` and ``write`` give the section of plan.json and the tables of what was planned.
    ``make_stages`` makes what the layer was planned from, unless it is there. ``now`` counts it on
    a dataset that it was not made for, and ``unreached`` says what is missed then; ``moved`` counts
    what came and went between two datasets. ``actions`` has those of its changes, each with its
    meaning. ``weights`` are fields that its costs are weighed by. ``own_unit``: it has a picture of
    what it saves also where another layer has the headline. ``binds`` are the layers that it binds
    together. ``require_simulated`` raises if a plan cannot be simulated. ``stated`` names what of
    its section the check does not prove; of what was asked for it proves the limits. What a layer
    cannot do is None.
    """

    record: type[SectionRecord]
    recorded: Callable[[Any], SectionRecord]
    write: Callable[[Any, Path, Path], None]
    make_stages: Callable[[StoredPlan, Dataset, Engine, Bound], None]
    check: Callable[[StoredPlan, Path, Findings, Bound], Missed]
    changes: Callable[[StoredPlan, StoredPlan, Path | None, int, tuple[Bound, Bound]], Staged]
    actions: Mapping[str, str]
    now: Callable[[StoredPlan, Path, Bound], LayerNow]
    unreached: str
    tell: Callable[[ToldLayer, Bound], Told]
    figures: tuple[Figure, ...]
    weights: tuple[str, ...] = ()
    own_unit: bool = False
    moved: Callable[[Path, Path], Mapping[str, Moved]] | None = None
    curves: Curves | None = None
    replay: Replay | None = None
    simulate: Simulate | None = None
    require_simulated: Callable[[StoredPlan], None] | None = None
    churn: Callable[[StoredPlan, Dataset, Mapping[str, Any], Engine, Bound], Churned] | None = None
    bind: Callable[[StoredPlan], Mapping[str, Bound]] | None = None
    binds: tuple[type[SectionRecord], ...] = ()
    stated: Callable[[StoredPlan], tuple[str, ...]] = lambda _: ("params",)

    @property
    def name(self) -> str:
        """The key of its section in plan.json."""
        return self.record.layer

    @property
    def title(self) -> str:
        """As a person reads it."""
        return self.name.capitalize()
