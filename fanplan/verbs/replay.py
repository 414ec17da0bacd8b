"""Replay: every publication of a dataset through a stored plan."""

from __future__ import annotations

from pathlib import Path

from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.layer import Outcome, Replay
from fanplan.layers.registry import first_able, load_plan
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at


@in_our_words
def replay(plan: AnyPlan, dataset: AnyDataset, *, engine: Engine = EMBEDDED) -> Outcome:
    """Send every publication of the dataset through a stored plan, on Spark.

    Exact flows are replayed on any dataset: what the plan has no flow for takes the default way.
    Groups are replayed on any with the same brokers, cells where they are the same parts of spaces,
    all else on the dataset it was planned for. Of a plan that has a marking alone, its marks are
    held against the descriptors of the dataset.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    stored = load_plan(Path(plan))
    require_untouched(stored)
    return replaying(stored)(Path(plan), dataset, engine)


def replaying(plan: StoredPlan) -> Replay:
    """How a plan is replayed; an error if it cannot be."""
    return first_able(plan, lambda layer: layer.replay)
