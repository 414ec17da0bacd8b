"""The independent check of a stored plan: does it do what it must, and does it cost what it says?

It reads the plan's and the dataset's tables and shares no code with planners or cost models.
"""

from __future__ import annotations

from pathlib import Path

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.data.reader import read_manifest
from fanplan.layers.channels.check.check import check_channels
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.check.check import check_delivery
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.stages.make import make_senders
from fanplan.layers.groups.check.check import check_groups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.layers.marking.check.check import check_marking
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.marking.stages.make import make_marking_stages
from fanplan.layers.overlay.check.check import check_overlay
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.stages.make import make_broker_stages, make_client_stages
from fanplan.layers.registry import load_plan
from fanplan.plan.findings import CheckResult, Findings
from fanplan.plan.seal import edited
from fanplan.plan.stored import StoredPlan


def check_plan(folder: Path, dataset: Path) -> CheckResult:
    """Hold a plan folder against the dataset, layer by layer. Unreadable files raise InputError.

    An overlay needs the stages of routes and similarity that it was planned from, a marking that of
    descriptors, and groups those of routes.
    """
    plan, findings = load_plan(folder), Findings()
    check_untouched(plan, findings)
    check_input(plan, dataset, findings)
    missed = 0
    unserved: tuple[tuple[str, str], ...] = ()
    if plan.has(ChannelsRecord):
        missed, unserved = check_channels(plan, dataset, findings)
    if plan.has(OverlayRecord):
        missed += check_overlay(plan, dataset, findings)
    if plan.has(MarkingRecord):
        missed += check_marking(plan, dataset, findings)
    if plan.has(GroupsRecord):
        missed += check_groups(plan, dataset, findings)
    if plan.has(DeliveryRecord):
        check_delivery(plan, dataset, findings)
    return CheckResult(missed, tuple(findings.violations), tuple(findings.warnings), unserved)


def check_untouched(plan: StoredPlan, findings: Findings) -> None:
    """What was checked when it was written must be what is there."""
    names = edited(plan)
    findings.violate("edited since it was written", len(names), names)


def check_input(plan: StoredPlan, dataset: Path, findings: Findings) -> None:
    """The plan must have been made for this dataset."""
    planned, found = plan.record.input.key, read_manifest(dataset).key
    if planned != found:
        what = f"input key {planned}, dataset key {found}"
        findings.violate("planned for other input", 1, [what])


def check(plan: PathLike, dataset: Dataset, *, engine: Engine = EMBEDDED) -> CheckResult:
    """Prove that a stored plan does what it must, or name what it does not.

    Spark starts only if the dataset lacks stages that the plan was made from.
    """
    from fanplan.verbs.check import check_plan

    make_stages(plan, dataset, engine)
    return check_plan(Path(plan), dataset.path)


def make_stages(plan: PathLike, dataset: Dataset, engine: Engine) -> None:
    """The stages of a dataset that a stored plan was made from, unless they are there."""
    from fanplan.layers.registry import load_plan

    stored = load_plan(Path(plan))
    overlay, groups = stored.find(OverlayRecord), stored.find(GroupsRecord)
    if stored.has(MarkingRecord):
        make_marking_stages(stored, dataset, engine)
    if stored.has(DeliveryRecord) and groups:
        make_senders(dataset, engine)
    elif groups:
        make_group_stages(dataset, groups.grouping, engine)
    if overlay and overlay.clients == "allocated":
        make_client_stages(dataset, overlay.params, engine)
    elif overlay:
        make_broker_stages(dataset, overlay.params, overlay.metric == "cover", engine)
