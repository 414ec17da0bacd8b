"""The layers at hand: their contracts, the records of their sections, and plans read by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import fanplan.layers
from fanplan.core.errors import InputError, Problem
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan, read_plan

if TYPE_CHECKING:
    from fanplan.layers.layer import Layer

Able = TypeVar("Able")


@cache
def records() -> dict[str, type[SectionRecord]]:
    """The sections that plan.json may have, in their order there."""
    return {
        name: import_module(f"fanplan.layers.{name}.record").RECORD
        for name in fanplan.layers.LAYERS
    }


def load_plan(folder: Path) -> StoredPlan:
    """Open a plan folder; its record and the presence of its tables are checked at once."""
    return read_plan(folder, records())


def load_layer(name: str) -> Layer:
    """A layer by its name. Its module, and with it all that it can do, is imported only now."""
    layer: Layer = import_module(f"fanplan.layers.{name}.layer").LAYER
    return layer


def all_layers() -> list[Layer]:
    """Every layer; one that binds others comes before them."""
    return binding_first(map(load_layer, records()))


def layers_of(plan: StoredPlan) -> list[Layer]:
    """The layers of a plan in the order of plan.json."""
    return [load_layer(name) for name in plan.record.sections]


def binding_first(layers: Iterable[Layer]) -> list[Layer]:
    """The same layers, those that bind others first."""
    return sorted(layers, key=lambda layer: layer.bind is None)


def bounds_of(plan: StoredPlan) -> dict[str, Any]:
    """What layers of a plan that bind others hand to them, by the names of the bound."""
    found: dict[str, Any] = dict.fromkeys(plan.record.sections)
    for layer in layers_of(plan):
        if layer.bind is not None:
            found |= layer.bind(plan)
    return found


def first_able(plan: StoredPlan, ability: Callable[[Layer], Able | None]) -> Able:
    """What the first layer of a plan that is able to do something does; one that binds comes first.

    An error if the plan has no such layer.
    """
    able = {layer.name: found for layer in all_layers() if (found := ability(layer)) is not None}
    for name, found in able.items():
        if name in plan.record.sections:
            return found
    *names, last = able
    what = f"has no layer {', '.join(names)} or {last}, only {', '.join(plan.record.layers)}"
    raise InputError(Problem(str(plan.folder), what, "Name a plan that has one of these layers"))
