"""`fanplan watch`: a plan that follows its workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json, show_table
from fanplan.watching.params import WatchParams

if TYPE_CHECKING:
    from fanplan.watching.watch import Watched

Stream = Annotated[
    str,
    typer.Option(
        "--stream",
        metavar="SOURCE",
        help="Workload folder whose publications and changes grow, or nats://HOST:PORT/STREAM.",
    ),
]
Folder = Annotated[Path, typer.Option(help="Folder of the watch; a later run goes on from there.")]
Home = Annotated[
    Path | None,
    typer.Option(help="Workload that a stream on NATS belongs to.", show_default="SOURCE"),
]


def watch(
    plan: options.PlanFolder,
    stream: Stream,
    state: Folder,
    workload: Home = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **given: Any,
) -> None:
    """Follow a stream on Spark, and change the plan in small steps when that pays."""
    from fanplan import api

    run = engine(master, remote, json)
    with named_by_flag(flags_named(WatchParams)):
        found = api.watch(plan, stream, state, workload=workload, engine=run, **given)
    show_json(found.json()) if json else show_watched(found)


def show_watched(found: Watched) -> None:
    """For a person: what was read, and each version with its reason."""
    counts = {name.replace("_", " "): count for name, count in found.counts.items()}
    show_facts("Watch", {"windows": found.windows, **counts, "plan in force": found.plan})
    say("")
    rows = [(v["version"], v.get("changes", ""), v["reason"]) for v in found.versions]
    show_table("Versions", ("version", "changes", "reason"), rows)
