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

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.quarantine import Quarantine
from fanplan.layers.marking.replayed import replay_marks
from fanplan.simulation.simulated import Churned, Simulated
from fanplan.verbs.again import replan
from fanplan.verbs.ask import Questions
from fanplan.verbs.check import check
from fanplan.verbs.churn import churn
from fanplan.verbs.compare import compare
from fanplan.verbs.curve import Curve, curve
from fanplan.verbs.datasets import as_dataset, dataset_of_plan, generate, ingest, open_dataset
from fanplan.verbs.diff import diff
from fanplan.verbs.drift import apply_check
from fanplan.verbs.export import Exported, export
from fanplan.verbs.observe import observe_graphml, observe_nats, observe_pcap
from fanplan.verbs.plan import Made, planner
from fanplan.verbs.plans import Plan, open_plan
from fanplan.verbs.quarantine import quarantine
from fanplan.verbs.replay import replay
from fanplan.verbs.report import Report, report
from fanplan.verbs.sign import new_key, sign
from fanplan.verbs.simulate import simulate
from fanplan.verbs.switch import switch
from fanplan.verbs.trial import trial
from fanplan.watching.watch import Watched, watch

allocate = planner("allocate")
channels = planner("channels")
design = planner("design")
groups = planner("groups")
mark = planner("mark")
mesh = planner("mesh")
overlay = planner("overlay")

__all__ = [
    "Churned",
    "Curve",
    "Dataset",
    "Engine",
    "Exported",
    "Made",
    "Plan",
    "Quarantine",
    "Questions",
    "Report",
    "Simulated",
    "Watched",
    "allocate",
    "apply_check",
    "as_dataset",
    "channels",
    "check",
    "churn",
    "compare",
    "curve",
    "dataset_of_plan",
    "design",
    "diff",
    "export",
    "generate",
    "groups",
    "ingest",
    "mark",
    "mesh",
    "new_key",
    "observe_graphml",
    "observe_nats",
    "observe_pcap",
    "open_dataset",
    "open_plan",
    "overlay",
    "quarantine",
    "replan",
    "replay",
    "replay_marks",
    "report",
    "sign",
    "simulate",
    "switch",
    "trial",
    "watch",
]
