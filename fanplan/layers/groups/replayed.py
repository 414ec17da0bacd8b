"""What the groups of a plan do with traffic, beside default routing and what the plan said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fanplan.core.arrays import NONE
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import Engine
from fanplan.layers.groups.carried import carried_groups
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import Routes
from fanplan.network.carried import ratio
from fanplan.plan.replayed import differing


@dataclass(frozen=True, repr=False)
class ReplayedGroups(Result):
    """The measured ledger with a plan's groups, and the one of default routing.

    ``planned`` is the ledger that the plan states; None for other traffic than it was made for.
    ``covered`` is the share of messages that groups carry, ``delivered`` counts messages at brokers
    that want them, ``missed`` those that would not get there: subscriptions changed since.
    """

    delivered: float
    missed: float
    covered: float
    ledger: dict[str, float]
    default: dict[str, float]
    planned: dict[str, float] | None

    drawn = ("delivered", "unwanted", "missed")

    @property
    def differences(self) -> dict[str, tuple[float, float]]:
        """Entries that differ from the plan's: name → (planned, measured)."""
        return differing(self.planned or {}, self.ledger)

    @property
    def ok(self) -> bool:
        return self.missed == 0 and not self.differences

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "publications": self.ledger["publications"],
            "delivered": self.delivered,
            "missed": self.missed,
            "unwanted": self.ledger["unwanted"],
            "covered": self.covered,
            "same_traffic": self.planned is not None,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            "ledger": self.ledger,
            "default": self.default,
        }

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        agrees = "other traffic than was planned for"
        if self.planned is not None:
            agrees = "differs from the plan's" if self.differences else "as planned"
        beside = {
            words: f"{self.ledger[name]:,.6g}, by default routing {self.default[name]:,.6g}"
            for name, words in SHOWN.items()
        }
        return {
            "publications": self.ledger["publications"],
            "delivered to brokers": self.delivered,
            "missed": self.missed,
            "carried by groups, %": 100 * self.covered,
            **beside,
            "ledger": agrees,
        }


SHOWN = {
    "matches_total": "matches",
    "link_messages": "messages on links",
    "delay": "mean delay",
    "unwanted": "unwanted",
}


def replayed_groups(
    problem: GroupsProblem, wanted: Routes, shortcuts: bool, planned: Mapping[str, float] | None
) -> ReplayedGroups:
    """Send the traffic of a problem with all of its groups set up; ``wanted`` is all there is."""
    with_groups = groups_ledger(problem, np.ones(problem.size, bool), shortcuts)
    alone = replace(problem, routes=wanted, group=np.full(len(wanted), NONE, np.int32))
    default = groups_ledger(alone, np.zeros(problem.size, bool), shortcuts)
    lost = np.diff(wanted.starts) - np.diff(problem.routes.starts)
    return ReplayedGroups(
        delivered=float(with_groups.arrived.sum()),
        missed=float((wanted.messages * lost).sum()),
        covered=ratio(float(problem.messages.sum()), with_groups.publications),
        ledger=with_groups.summary(),
        default=default.summary(),
        planned=None if planned is None else dict(planned),
    )


def replay_groups(plan: PathLike, dataset: Dataset, engine: Engine) -> ReplayedGroups:
    """What the groups of a plan do with the traffic of a dataset, which may be another one."""
    stored = load_plan(Path(plan))
    record = stored.section(GroupsRecord)
    make_group_stages(dataset, record.params.grouping, engine)
    with engine.progress.stage("replay") as stage:
        carried = carried_groups(stored, dataset.path)
        stage.rows(len(carried.problem.routes))
    same = stored.record.input.key == dataset.manifest.key
    planned = record.ledger if same else None
    return replayed_groups(carried.problem, carried.wanted, record.params.shortcuts, planned)
