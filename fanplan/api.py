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

from importlib import import_module
from typing import Any

PLACES = {
    "fanplan.data.dataset": "Dataset",
    "fanplan.data.engine": "Engine",
    "fanplan.data.quarantine": "Quarantine",
    "fanplan.layers.marking.replayed": "replay_marks",
    "fanplan.simulation.simulated": "Churned, Simulated",
    "fanplan.verbs.replan": "replan",
    "fanplan.verbs.ask": "Questions",
    "fanplan.verbs.check": "check",
    "fanplan.verbs.churn": "churn",
    "fanplan.verbs.compare": "compare",
    "fanplan.verbs.curve": "Curve, curve",
    "fanplan.verbs.datasets": "as_dataset, dataset_of_plan, generate, ingest, open_dataset",
    "fanplan.verbs.diff": "diff",
    "fanplan.verbs.drift": "apply_check",
    "fanplan.verbs.export": "Exported, export",
    "fanplan.verbs.observe": "observe_graphml, observe_nats, observe_pcap",
    "fanplan.verbs.plan": "Made",
    "fanplan.verbs.plans": "Plan, open_plan",
    "fanplan.verbs.quarantine": "quarantine",
    "fanplan.verbs.replay": "replay",
    "fanplan.verbs.report": "Report, report",
    "fanplan.verbs.sign": "new_key, sign",
    "fanplan.verbs.simulate": "simulate",
    "fanplan.verbs.switch": "switch",
    "fanplan.verbs.trial": "trial",
    "fanplan.watching.watch": "Watched, watch",
}
"""Where each name comes from."""

PLANNED = ("allocate", "channels", "design", "groups", "mark", "mesh", "overlay")
"""What layers plan, by the options that they state."""

WHERE = {name: module for module, names in PLACES.items() for name in names.split(", ")}
NAMES = sorted([*WHERE, *PLANNED])
__all__ = list(NAMES)


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command uses one verb or two, and all of them take a second."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in WHERE:
        found = getattr(import_module(WHERE[name]), name)
    else:
        found = import_module("fanplan.verbs.plan").planner(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return NAMES
