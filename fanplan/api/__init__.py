"""The Python interface: a few verbs over datasets and plans.

>>> import fanplan
>>> dataset = fanplan.ingest("desk", "desk.dataset")
>>> plan = fanplan.channels(dataset, 100)
>>> folder = plan.save("desk.plan")
>>> fanplan.check(folder, dataset).ok
True
>>> fanplan.replay(folder, dataset).ledger.missed
0.0

Spark starts for ``generate`` with publications, ``ingest``, ``replay``, ``channels`` with restarts,
and for stages that ``overlay``, ``allocate``, ``groups``, ``mark``, ``simulate``, ``diff`` or
``apply_check`` find missing.
"""

from __future__ import annotations

from fanplan.api.allocations import allocate
from fanplan.api.changes import apply_check, compare, diff
from fanplan.api.channel_plans import (
    ChannelPlan,
    channels,
    compare_methods,
    require_methods,
    require_names,
)
from fanplan.api.churning import Churned, churn
from fanplan.api.curves import Curve, curve
from fanplan.api.datasets import (
    Dataset,
    as_dataset,
    dataset_of_plan,
    generate,
    ingest,
    open_dataset,
)
from fanplan.api.designs import Design, design
from fanplan.api.engine import Engine
from fanplan.api.groups_plans import GroupsPlan, groups
from fanplan.api.groups_wishes import require_groups
from fanplan.api.marking_plans import MarkingPlan, mark
from fanplan.api.marking_replay import replay_marks
from fanplan.api.overlay_plans import OverlayPlan, compare_trees, overlay, require_metrics
from fanplan.api.plans import check, replay
from fanplan.api.rankings import compare_rankings, require_rankings
from fanplan.api.reports import Report, report
from fanplan.api.simulations import Simulated, simulate

__all__ = [
    "ChannelPlan",
    "Churned",
    "Curve",
    "Dataset",
    "Design",
    "Engine",
    "GroupsPlan",
    "MarkingPlan",
    "OverlayPlan",
    "Report",
    "Simulated",
    "allocate",
    "apply_check",
    "as_dataset",
    "channels",
    "check",
    "churn",
    "compare",
    "compare_methods",
    "compare_rankings",
    "compare_trees",
    "curve",
    "dataset_of_plan",
    "design",
    "diff",
    "generate",
    "groups",
    "ingest",
    "mark",
    "open_dataset",
    "overlay",
    "replay",
    "replay_marks",
    "report",
    "require_groups",
    "require_methods",
    "require_metrics",
    "require_names",
    "require_rankings",
    "simulate",
]
