"""What can be done with a stored plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.datasets import Dataset, PathLike
from fanplan.verbs.stages import (
    derived,
    make_broker_stages,
    make_client_descriptors,
    make_client_stages,
    make_covers,
    make_descriptors,
    make_group_stages,
    make_senders,
)

if TYPE_CHECKING:
    from fanplan.layers.delivery.replayed import ReplayedDelivery
    from fanplan.layers.groups.replayed import ReplayedGroups
    from fanplan.plan.replayed import Replayed
    from fanplan.plan.stored import PlanRecord
    from fanplan.verbs.check import CheckResult


def check(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> CheckResult:
    """Prove that a stored plan does what it must, or name what it does not.

    Spark starts only if the dataset lacks stages that the plan was made from.
    """
    from fanplan.verbs.check import check_plan

    make_stages(plan, dataset, engine)
    return check_plan(Path(plan), dataset.path)


def make_stages(plan: PathLike, dataset: Dataset, engine: Engine) -> None:
    """The stages of a dataset that a stored plan was made from, unless they are there."""
    from fanplan.plan.stored import load_plan

    record = load_plan(Path(plan)).record
    overlay = record.overlay
    make_marking_stages(record, dataset, engine)
    if record.delivery and record.groups:
        make_senders(dataset, engine)
    elif record.groups:
        make_group_stages(dataset, record.groups.grouping, engine)
    if overlay and allocated(record):
        make_client_stages(dataset, overlay.params, engine)
    elif overlay:
        make_broker_stages(dataset, overlay.params, overlay.metric == "cover", engine)


def allocated(record: PlanRecord) -> bool:
    """Whether clients are where the plan has them, not the workload."""
    return record.overlay is not None and record.overlay.clients == "allocated"


def make_marking_stages(record: PlanRecord, dataset: Dataset, engine: Engine) -> None:
    """Descriptors at brokers, or of allocated clients; and which cover others if they merge."""
    marking = record.marking
    if marking and marking.trees == "overlay" and allocated(record):
        make_client_descriptors(dataset, engine)
    elif marking:
        make_descriptors(dataset, engine)
    if marking and marking.merged:
        make_covers(dataset, engine)


def replay(
    plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED
) -> Replayed | ReplayedGroups | ReplayedDelivery:
    """Send every publication of the dataset through a stored plan, on Spark.

    Channels are replayed on the dataset they were made for; groups on any with the same brokers; a
    plan with all layers on any whose cells are the same parts of spaces.
    """
    from fanplan.layers.channels.stages.replay import replay_plan
    from fanplan.plan.stored import load_plan

    record = load_plan(Path(plan)).record
    if record.delivery:
        return replay_design(plan, dataset, engine)
    if record.groups and not record.channels:
        return replay_groups(plan, dataset, engine)
    return replay_plan(engine.session, Path(plan), dataset.path, engine.progress)


def replay_design(plan: PathLike, dataset: Dataset, engine: Engine) -> ReplayedDelivery:
    """What all layers of a plan do together with the publications of a dataset, and its marks."""
    from fanplan.layers.delivery.stages.replay import replay_delivery
    from fanplan.layers.marking.replayed import replay_marks
    from fanplan.plan.stored import load_plan

    # Spark's own processes may have another working directory than this one.
    stored = load_plan(Path(plan).absolute())
    found = replay_delivery(derived(dataset, engine), stored)
    if not stored.record.marking:
        return found
    return replace(found, marks=replay_marks(plan, dataset, engine=engine))


def replay_groups(plan: PathLike, dataset: Dataset, engine: Engine) -> ReplayedGroups:
    """What the groups of a plan do with the traffic of a dataset, which may be another one."""
    from fanplan.layers.groups.carried import carried_groups
    from fanplan.layers.groups.replayed import replayed_groups
    from fanplan.plan.stored import load_plan

    stored = load_plan(Path(plan))
    make_group_stages(dataset, stored.groups.grouping, engine)
    with engine.progress.stage("replay") as stage:
        carried = carried_groups(stored, dataset.path)
        stage.rows(len(carried.problem.routes))
    same = stored.record.input.key == dataset.manifest.key
    planned = stored.groups.ledger if same else None
    return replayed_groups(carried.problem, carried.wanted, stored.groups.shortcuts, planned)
