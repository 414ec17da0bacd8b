"""What a plan costs now, what a fresh one would, and a step towards it: of any layer that can step.

A layer can be followed if its command can start from an older plan with a limit on changes.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import whole_folder
from fanplan.core.options import Command
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.store import link_file
from fanplan.data.reader import read_stage
from fanplan.layers import commands
from fanplan.layers.layer import Layer
from fanplan.layers.registry import binding_first, bounds_of, layers_of, load_plan
from fanplan.plan.made import Job, Planned
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.diff import STEPS_OF, diff_plans
from fanplan.verbs.plan import save_layers
from fanplan.watching.state import VERSION

STEPPING = ("start", "max_changes", "change_price")
"""Options of commands that can start from an older plan."""
TRIALS = 6
"""Exchanges of channels that a step tries: more find what pays by the rates of one window alone."""


@dataclass(frozen=True)
class CostsNow:
    """Of a window: the plan in force, a fresh plan, and the bound; ``missed`` are deliveries.

    ``places`` are the members and flows of the fresh plan's channels. Who is not in the plan yet is
    reached by unicast, the default way, and costs as much.
    """

    now: float
    fresh: float
    bound: float
    missed: float
    places: int = 0


@dataclass(frozen=True)
class Planning:
    """How the plan that is followed was asked for."""

    command: Command
    params: Any
    seed: int
    engine: Engine

    def job(self, dataset: Path) -> Job:
        return Job(Dataset(dataset), self.seed, Watch(None, None), self.engine)

    def planned(self, dataset: Path, **options: Any) -> Planned:
        plan = self.command.part("command").PLANS[self.command.name]
        made: Planned = plan(self.job(dataset), replace(self.params, **options))
        return made

    def costs(self, plan: StoredPlan, dataset: Path) -> CostsNow:
        """On a dataset of now."""
        made = self.planned(dataset)
        fresh, places = made.summary(), sum(section.map.places for section in made.sections)
        bound = fresh["perfect"] * (1 + fresh["bound_percent"] / 100)
        now, missed = self.now(plan, dataset)
        return CostsNow(now, fresh["cost"], bound, missed, places)

    def now(self, plan: StoredPlan, dataset: Path) -> tuple[float, float]:
        """What the plan costs in a window, and what it does not deliver itself."""
        layer, seconds = first_layer(plan), Dataset(dataset).manifest.seconds
        figures = layer.now(plan, dataset, bounds_of(plan)[layer.name]).figures
        cost, missed = (float(figures[name][1] or 0) * seconds for name in ("cost/s", "missed/s"))
        unicast: float = self.params.prices.weights.unicast
        return cost + unicast * missed, missed

    def step(self, plan: Path, dataset: Path, churn: int, price: float) -> Planned:
        """A better plan with few changes; none but what follows from the workload if churn is 0."""
        options = {"swaps": TRIALS, **self.params.options}
        return self.planned(
            dataset, start=plan, max_changes=churn, change_price=price, options=options
        )


def planning_of(plan: StoredPlan, engine: Engine) -> Planning:
    """How a plan was asked for; an error if its layer cannot be followed."""
    layer = first_layer(plan)
    params: Any = plan.record.sections[layer.name].params
    command = next(found for found in commands() if found.params is type(params))
    able = [c for c in commands() if set(STEPPING) <= {item.name for item in fields(c.params)}]
    if command not in able:
        names = " or ".join(found.name for found in able)
        what = f"was made by `fanplan {command.name}`, which cannot start from an older plan"
        remedy = f"Watch a plan by `fanplan {names}`; what this one is worth on a later dataset "
        remedy += "tells `fanplan apply-check`"
        raise InputError(Problem(str(plan.folder), what, remedy))
    # A version of another watch was made by a step; plans afresh search as long as any.
    options = {name: v for name, v in params.options.items() if (name, v) != ("swaps", TRIALS)}
    afresh = replace(params, **dict.fromkeys(STEPPING), options=options)
    return Planning(command, afresh, plan.record.seed, engine)


def first_layer(plan: StoredPlan) -> Layer:
    return binding_first(layers_of(plan))[0]


@dataclass(frozen=True)
class NextStep:
    """A plan that starts from the one in force."""

    made: Planned

    @property
    def cost(self) -> float:
        return float(self.made.summary()["cost"])

    @property
    def changes(self) -> int:
        """Of members and flows; unicast follows from these."""
        told = self.made.summary()
        return int(sum(told[name] for name in ("joins", "leaves", "added", "removed")))


def streamed_rates(plan: Path, dataset: Path) -> dict[str, float]:
    """Messages/s on each channel of a plan, and by unicast, with the traffic of a dataset."""
    flows = read_stage(dataset, "flows", ("flow", "messages"))
    seconds = Dataset(dataset).manifest.seconds
    return on_channels(load_plan(plan), flows["flow"], flows["messages"].to_numpy() / seconds)


def carried_rates(
    plan: StoredPlan, streamed: dict[str, float], measured: dict[str, float]
) -> list[dict[str, Any]]:
    """The same beside what was predicted when the plan was made, and what servers count."""
    flows = plan.read("flows", ("flow", "rate"))
    predicted = on_channels(plan, flows["flow"], flows["rate"].to_numpy())
    return [
        {
            "name": name,
            "predicted": predicted.get(name),
            "streamed": streamed.get(name, 0.0) if name in predicted else None,
            "measured": measured.get(name),
        }
        for name in [*predicted, *sorted(measured.keys() - predicted.keys())]
    ]


def on_channels(plan: StoredPlan, flows: pa.ChunkedArray, rates: Floats) -> dict[str, float]:
    """Messages/s of each channel, and those sent by unicast."""
    found: dict[str, float] = {}
    for table in ("channel_flows", "unicast"):
        rows = plan.read(table, ("flow",) if table == "unicast" else ("flow", "channel"))
        at = pc.index_in(rows["flow"].cast(pa.string()), flows.cast(pa.string()).combine_chunks())
        each = np.append(rates, 0.0)[at.fill_null(-1).to_numpy()]
        if table == "unicast":
            found[table] = float(each.sum())
        else:
            channel = rows["channel"].to_numpy()
            sums = np.bincount(channel, each, int(channel.max(initial=-1)) + 1)
            found |= {f"channel {number}": float(rate) for number, rate in enumerate(sums)}
    return found


def write_version(
    out: Path, made: Planned, dataset: Path, old: Path, told: dict[str, Any]
) -> dict[str, Any]:
    """A version: its plan, the way there in steps, what it was planned for, and why.

    One that is there was written by a run that was interrupted later: it is the same.
    """
    if not out.exists():
        with whole_folder(out, VERSION) as folder:
            shutil.copytree(dataset, folder / "dataset", copy_function=link_file)
            new = save_layers(made.sections, folder / "dataset", folder / "plan")
            steps = diff_plans(load_plan(old), new, folder / "dataset", STEPS_OF)
            # Where it is written now is not where it will be.
            before, after = (f"versions/{name}/plan" for name in (old.parent.name, out.name))
            steps = replace(steps, old=before, new=after)
            steps.save(folder / "changes")
            told = told | {"steps": len(list(steps.steps())), "all_changes": steps.total}
            told |= {"holds": steps.ok}
            write_told(folder, told)
    text = (out / VERSION.sign).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def write_told(folder: Path, told: dict[str, Any]) -> None:
    text = json.dumps(told, indent=2, allow_nan=False)
    (folder / VERSION.sign).write_text(text + "\n", encoding="utf-8")
