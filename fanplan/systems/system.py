"""The contract of a system that plans run on: all that `export` and `trial` ask of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import fanplan.systems
from fanplan.core.errors import InputError, Problem
from fanplan.core.progress import Progress
from fanplan.plan.stored import StoredPlan
from fanplan.systems.params import ExportParams, TrialParams
from fanplan.systems.trial import Tried
from fanplan.systems.ways import Ways

Lacks = Callable[[StoredPlan], tuple[str, ...]]
Export = Callable[[StoredPlan, Path, Ways, ExportParams, Path], None]
"""Writes a plan of a dataset, with its ways, into a folder that is there."""

Trial = Callable[[StoredPlan, Path, TrialParams, Progress], Tried]
"""Runs a plan with publications of its dataset on real servers of this machine."""


APPLICATION = """```python
from fanplan.live import Publisher, Subscriber

async with Publisher("THIS FOLDER", "NAME") as publisher:
    await publisher.send("TOPIC", {"ATTRIBUTE": 1.5}, b"PAYLOAD")

async with Subscriber("THIS FOLDER", "NAME") as subscriber:
    async for message in subscriber:
        print(message.topic, message.attributes, message.payload)
```"""
"""How an application of Python follows an export, for the page that goes with it."""


@dataclass(frozen=True)
class System:
    """A system. ``lacks`` says what of a plan it cannot express; without ``trial`` it has none.

    ``require`` raises, before any work, if this machine lacks what a trial needs.
    """

    name: str
    lacks: Lacks
    export: Export
    trial: Trial | None = None
    require: Callable[[], object] | None = None


def load_system(name: str) -> System:
    """A system by its name. Its module is imported only now."""
    known = fanplan.systems.SYSTEMS
    if name not in known:
        raise InputError(
            Problem("system", f"{name!r} is unknown", f"Use one of: {', '.join(known)}")
        )
    system: System = import_module(f"fanplan.systems.{name}.system").SYSTEM
    return system
