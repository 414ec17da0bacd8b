"""What must change to go from one plan to another, in steps, layer by layer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import CHANGES as CHANGES_KIND
from fanplan.core.folder import whole_folder
from fanplan.core.result import Result
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.layer import Layer
from fanplan.layers.registry import all_layers, bounds_of, load_plan
from fanplan.plan.changes import CHANGES, staged
from fanplan.plan.parquet import parquet_writer, write
from fanplan.plan.seal import require_untouched
from fanplan.plan.steps import Staged
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.verbs.check import make_stages
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at

STEPS_OF = 100
"""Changes in a step, unless said otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Diff(Result):
    """The changes of all layers that both plans have; steps are numbered through, from 1."""

    old: str
    new: str
    steps_of: int
    layers: tuple[Staged, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every state on the way holds."""
        return not any(state.broken for layer in self.layers for state in layer.states)

    @property
    def total(self) -> int:
        """Number of changes."""
        return sum(len(layer.changes) for layer in self.layers)

    def changes(self) -> pa.Table:
        """All changes in order, with their steps."""
        tables, first, of = [], 1, layer_of_actions()
        for layer in self.layers:
            tables.append(staged(layer.changes, pa.array(layer.step + first), of))
            first += layer.steps
        return pa.concat_tables(tables)

    def steps(self) -> Iterator[dict[str, Any]]:
        """What is done in each step, and what stands afterwards."""
        number = 0
        for layer in self.layers:
            actions = np.array(layer.changes["action"].to_pylist(), object)
            for step, state in enumerate(layer.states[1:]):
                number += 1
                done = Counter(actions[layer.step == step].tolist())
                about = {"step": number, "layer": layer.layer, "changes": done.total()}
                yield about | {"actions": dict(done), "after": state.json()}

    def bars(self) -> dict[str, float]:
        return {layer.layer: float(len(layer.changes)) for layer in self.layers}

    def notes_shown(self) -> tuple[str, ...]:
        return self.notes

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "old": self.old,
            "new": self.new,
            "steps_of": self.steps_of,
            "changes": self.total,
            "layers": {layer.layer: layer_changes(layer) for layer in self.layers},
            "steps": list(self.steps()),
            "notes": list(self.notes),
        }

    def save(self, out: Path, replace: bool = False) -> Path:
        """Write changes.json and the table of changes, whole or not at all."""
        with whole_folder(out, CHANGES_KIND, replace) as folder:
            with parquet_writer(folder, CHANGES) as writer:
                write(writer, self.changes().columns)
            text = json.dumps(self.json(), indent=2, allow_nan=False)
            (folder / CHANGES_KIND.sign).write_text(text + "\n", encoding="utf-8")
        return out


def layer_of_actions() -> dict[str, str]:
    """The layer that each action belongs to."""
    return {action: layer.name for layer in all_layers() for action in layer.actions}


def layer_changes(layer: Staged) -> dict[str, Any]:
    """A layer's changes in numbers."""
    cost = ("cost", "link_messages", "entries")
    peaks = {
        figure: dict(zip(("most", "after_step"), layer.peak(figure), strict=True))
        for figure in cost
        if figure in layer.states[0].figures
    }
    return {
        "changes": layer.counts(),
        "steps": layer.steps,
        "before": layer.states[0].json(),
        "peak": peaks,
        "running": {name: list(map(list, n.items())) for name, n in layer.running.items() if n},
        "notes": list(layer.notes),
        **({"modes": [change.json() for change in layer.modes]} if layer.modes else {}),
    }


@in_our_words
def diff(
    old: AnyPlan,
    new: AnyPlan,
    dataset: AnyDataset | None = None,
    *,
    steps_of: int = STEPS_OF,
    engine: Engine = EMBEDDED,
) -> Diff:
    """What must change to go from one stored plan to another, at most ``steps_of`` at a time.

    With the dataset of the new plan every state on the way is held against who wants what and has
    its whole ledger. Spark starts only if the dataset lacks stages that the plan was made from.
    """
    old, new, path = plan_at(old), plan_at(new), None
    if dataset is not None:
        dataset = dataset_at(dataset)
        make_stages(new, dataset, engine)
        path = dataset.path
    with engine.progress.stage("order and check changes") as stage:
        found = diff_plans(load_plan(old), load_plan(new), path, steps_of)
        stage.rows(found.total)
    return found


def diff_plans(old: StoredPlan, new: StoredPlan, dataset: Path | None, steps_of: int) -> Diff:
    """Order and stage the changes of every layer that both plans have.

    ``dataset`` is the one that the new plan was made for. With it every state is held against who
    wants what, and has its whole ledger.
    """
    both = require_comparable(old, new, steps_of)
    if dataset is not None:
        require_dataset_of(new, dataset)
    before, after = bounds_of(old), bounds_of(new)
    layers = tuple(
        layer.changes(old, new, dataset, steps_of, (before[layer.name], after[layer.name]))
        for layer in both
    )
    return Diff(str(old.folder), str(new.folder), steps_of, layers, tuple(remarks(old, new)))


def require_comparable(old: StoredPlan, new: StoredPlan, steps_of: int) -> list[Layer]:
    """The layers that are staged, of plans that nobody edited; an error if there are none."""
    for plan in (old, new):
        require_untouched(plan)
    if steps_of < 1:
        raise InputError(Problem("steps_of", f"{steps_of} is too few", "Use 1 or more"))
    both = common_layers(old, new)
    if not both:
        what = f"has {', '.join(new.record.layers)}, the other {', '.join(old.record.layers)}"
        raise InputError(Problem(str(new.folder), what, "Name plans with a layer in common"))
    return both


def common_layers(old: StoredPlan, new: StoredPlan) -> list[Layer]:
    """What is staged: a layer with those that it binds, or else each layer by itself."""
    both = [layer for layer in all_layers() if old.has(layer.record) and new.has(layer.record)]
    left_out: set[str] = set()
    for layer in both:
        same = all(old.has(kind) == new.has(kind) for kind in layer.binds)
        if layer.binds:
            left_out |= {kind.layer for kind in layer.binds} if same else {layer.name}
    return [layer for layer in both if layer.name not in left_out]


def remarks(old: StoredPlan, new: StoredPlan) -> Iterator[str]:
    for plan, other in ((old, new), (new, old)):
        for layer in plan.record.layers:
            if layer not in other.record.layers:
                yield f"only {plan.folder} has the layer {layer}, which is left out here"
    if old.record.input.key != new.record.input.key:
        yield "the plans are for other input: what only one of them knows comes or goes on the way"
