"""Stored groups counted anew on a dataset as it is now."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.groups.bound import GroupsBound
from fanplan.layers.groups.check.check import check_groups
from fanplan.plan.drift import LayerNow
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan


def groups_now(plan: StoredPlan, dataset: Path, bound: GroupsBound | None) -> LayerNow:
    """The same groups on the routes of now, as the check finds them."""
    if bound is not None:
        return bound.now(dataset)
    findings = Findings()
    missed = check_groups(plan, dataset, findings)
    return LayerNow({}, {}, missed.count, tuple(findings.violations))
