"""Planning again: what tables cannot prove of a plan, its method and seed, its bytes do."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import GIVEN, Command
from fanplan.core.stop import Watch
from fanplan.core.version import __version__
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers import commands
from fanplan.layers.registry import binding_first, layers_of, load_plan
from fanplan.plan.made import Job
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at
from fanplan.verbs.plan import save_layers


@in_our_words
def replan(plan: AnyPlan, dataset: AnyDataset, *, engine: Engine = EMBEDDED) -> list[str]:
    """Plan again with all that a plan says it was asked for; the names of what comes out otherwise.

    If none does, method, seed and options are proved: planning is deterministic. A search that was
    stopped early, or that ran as restarts or on Spark, does not come to the same plan again.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    stored = load_plan(Path(plan))
    require_dataset_of(stored, dataset.path)
    command, params = command_of_plan(stored)
    job = Job(dataset, stored.record.seed, Watch(None, None), engine)
    made = command.part("command").PLANS[command.name](job, params)
    with tempfile.TemporaryDirectory() as folder:
        again = save_layers(made.sections, dataset.path, Path(folder) / "plan").record
    old, new = stored.record.content(), again.content()
    names = [name for name in (*old["files"].keys() | new["files"].keys(),)
             if old["files"].get(name) != new["files"].get(name)]  # fmt: skip
    rest = (old.keys() | new.keys()) - {"files", "seal"}
    return sorted(names) + sorted(name for name in rest if old.get(name) != new.get(name))


def command_of_plan(plan: StoredPlan) -> tuple[Command, Any]:
    """The command that a plan was made by, and its options."""
    record = plan.record
    if record.version != __version__:
        what = f"was made by version {record.version}, this is {__version__}"
        raise InputError(Problem(str(plan.folder), what, "Plan again with that version"))
    first = binding_first(layers_of(plan))[0]
    params = record.sections[first.name].params
    given = [item.name for item in fields(params) if holds_given(getattr(params, item.name))]
    if given:
        what = f"was made from another plan ({', '.join(given)}), which is not here"
        raise InputError(Problem(str(plan.folder), what, "Check it without planning again"))
    return next(found for found in commands() if found.params is type(params)), params


def holds_given(value: Any) -> bool:
    """Whether a plan recorded only that there was something."""
    return bool(value == GIVEN or (isinstance(value, dict) and GIVEN in value.values()))
