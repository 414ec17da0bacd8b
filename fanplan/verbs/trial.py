"""Trial: a checked plan on real servers of this machine, predicted beside measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fanplan.data.dataset import PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.export import checked_plan, require_trial
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, plan_at

if TYPE_CHECKING:
    from fanplan.systems.trial import Tried


def trial(
    plan: AnyPlan,
    dataset: AnyDataset,
    on: str = "nats",
    *,
    key: PathLike | None = None,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> Tried:
    """Send publications of a dataset through its plan on real servers, and compare.

    ``on`` is nats or multicast. Options are the fields of `fanplan.systems.params.TrialParams`.
    With a public ``key`` the plan must be signed with it. All that the trial starts ends with it.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    from fanplan.systems.params import TrialParams

    system, params = require_trial(on), TrialParams.given(options)
    stored = checked_plan(plan, dataset, engine, key)
    assert system.trial is not None
    found = system.trial(stored, dataset.path, params, engine.progress)
    return replace(found, seal=stored.record.seal)
