"""Trial: a checked plan on real servers of this machine, predicted beside measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fanplan.data.dataset import PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.export import checked_plan, require_trial
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at

if TYPE_CHECKING:
    from fanplan.systems.trial import Tried


@in_our_words
def trial(
    plan: AnyPlan,
    dataset: AnyDataset,
    on: str = "nats",
    *,
    publications: int | None = None,
    speed: float | None = None,
    kill: str | None = None,
    port: int | None = None,
    durable: bool = False,
    key: PathLike | None = None,
    engine: Engine = EMBEDDED,
) -> Tried:
    """Send publications of a dataset through its plan on real servers, and compare.

    ``on`` is nats or multicast. Only the first ``publications`` are sent if so many are asked for,
    at ``speed`` times the pace they had, or else as fast as all keep up. ``kill`` ends the server
    of that broker in the middle and starts it again; with ``durable`` what entered is kept in a
    stream and sent again. ``port`` is the first of those that servers listen on. With a public
    ``key`` the plan must be signed with it. All that the trial starts ends with it.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    from fanplan.systems.params import TrialParams

    system = require_trial(on)
    params = TrialParams(publications, speed, kill, port, durable)
    stored = checked_plan(plan, dataset, engine, key)
    assert system.trial is not None
    found = system.trial(stored, dataset.path, params, engine.progress)
    return replace(found, seal=stored.record.seal)
