"""The layers of a plan, a folder each. To add one, make its folder and name it here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fanplan.core.options import Command

if TYPE_CHECKING:
    from fanplan.plan.made import Answer, Job, Planned, Shown

LAYERS = ("channels", "overlay", "groups", "marking", "delivery")
"""By the names of their folders and of their sections in plan.json."""


def commands() -> Iterator[Command]:
    """All commands that plan. Only options are imported for it, so that help answers at once."""
    for layer in LAYERS:
        yield from import_module(f"fanplan.layers.{layer}.params").COMMANDS


def command_of(name: str) -> Command:
    """The command of that name."""
    return next(found for found in commands() if found.name == name)


def plan_by(name: str) -> Callable[[Job, Any], Planned]:
    """How the command of that name plans."""
    plans: dict[str, Callable[[Job, Any], Planned]] = part_of(name, "command").PLANS
    return plans[name]


def shown_by(name: str) -> Callable[[Answer], Shown]:
    """How a person is told what the command of that name decided."""
    shows: dict[str, Callable[[Answer], Shown]] = part_of(name, "show").SHOWS
    return shows[name]


def part_of(name: str, part: str) -> Any:
    """A module of the layer that has the command of that name."""
    for layer in LAYERS:
        known = import_module(f"fanplan.layers.{layer}.params").COMMANDS
        if any(found.name == name for found in known):
            return import_module(f"fanplan.layers.{layer}.{part}")
    raise LookupError(name)
