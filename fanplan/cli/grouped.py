"""How `fanplan --help` is laid out: commands by task, flags without a type, and where to begin."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

TASKS = {
    "Plan": (
        "ingest", "quarantine", "design", "channels", "overlay", "allocate", "groups", "mark",
        "mesh",
    ),
    "Prove": ("check", "replay", "simulate", "churn"),
    "Change": ("compare", "diff", "apply-check", "sign"),
    "Run": ("export", "trial", "switch", "observe", "watch", "spark"),
    "Learn": ("demo", "ask", "report", "generate", "papers"),
}  # fmt: skip
"""Commands by what a person is about to do."""

OTHER = "Run"

FIRST = """\
Fanplan plans how messages get from publishers to subscribers, proves the plan and shows what it
saves.

To see the whole job on a generated firm, with a report at the end:

  fanplan demo

With tables of your own (subscriptions.csv and publications.csv in the folder DESK):

  fanplan ingest DESK --out desk.dataset
  fanplan channels desk.dataset --channels 20 --out desk.plan
  fanplan check desk.plan desk.dataset
  fanplan report desk.plan --workload desk.dataset --out desk.report

All commands: fanplan --help. One of them: fanplan COMMAND --help."""


def no_command(**_given: Any) -> None:
    return None


class PlainFlags:
    """A flag is on or off, and an argument has a name: no type. What is repeated has no default."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in found:
            if param.param_type_name == "argument":
                param.display_type_rich = no_command
            if getattr(param, "is_flag", False):
                param.metavar = ""
            if param.nargs == -1:
                # The usage line says already that several may be given.
                param.display_type_rich = lambda ctx: None
            if getattr(param, "multiple", False):
                param.metavar = param.metavar or "NAME"
                param.show_default = param.show_default if param.default else False
        return found


class PlainCommand(PlainFlags, TyperCommand):
    """A command whose flags have no type."""


class PlainGroup(PlainFlags, TyperGroup):
    """Commands in the order of tasks."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in TASKS.values() for name in names]
        known = super().list_commands(ctx)
        return sorted(known, key=lambda name: order.index(name) if name in order else len(order))


def group_by_task(app: typer.Typer) -> None:
    """Give every command of an app the panel of its task."""
    task = {name: title for title, names in TASKS.items() for name in names}
    for command in app.registered_commands:
        command.cls = PlainCommand
        name = command.name or command.callback.__name__  # type: ignore[union-attr]
        command.rich_help_panel = task.get(name, OTHER)
    for group in app.registered_groups:
        group.rich_help_panel = task.get(str(group.name), OTHER)
        for command in group.typer_instance.registered_commands:  # type: ignore[union-attr]
            command.cls = PlainCommand
