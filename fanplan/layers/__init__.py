"""The layers of a plan, a folder each. To add one, make its folder and name it here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from fanplan.core.options import Command

LAYERS = ("channels", "overlay", "groups", "marking", "delivery", "mesh")
"""By the names of their folders and of their sections in plan.json."""


def commands() -> Iterator[Command]:
    """All commands that plan. Only options are imported for it, so that help answers at once."""
    for layer in LAYERS:
        yield from import_module(f"fanplan.layers.{layer}.params").COMMANDS


def command_of(name: str) -> Command:
    """The command of that name."""
    return next(found for found in commands() if found.name == name)
