"""`fanplan report`: one offline page about one or more plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json
from fanplan.data.params import ReadParams

Plans = Annotated[
    list[Path], typer.Argument(metavar="PLAN", help="Plan folders, all made for one dataset.")
]
Workload = Annotated[
    Path | None,
    typer.Option(
        help="Workload folder or dataset of the plans: they are checked again, and the page shows "
        "interest, loads and delays beside baselines, and quarantine."
    ),
]
Curve = Annotated[
    bool | None,
    typer.Option(
        "--curve/--no-curve",
        help="Plan for other numbers of channels and show what they cost.",
        show_default="with --workload",
    ),
]

Trials = Annotated[
    list[Path] | None,
    typer.Option("--trial", metavar="DIR", help="What `fanplan trial --out` wrote for a plan."),
]


def report(
    plans: Plans,
    out: options.Out,
    workload: Workload = None,
    curve: Curve = None,
    trial: Trials = None,
    replace: options.Replace = False,
    lost_limit: options.LostLimit = None,
    key: options.Key = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Write one offline page that shows what plans decide and what they save."""
    from fanplan import api

    with named_by_flag({"curve": "--curve", **flags_named(ReadParams)}):
        made = api.report(
            plans,
            out,
            workload=workload,
            curve=curve,
            trials=trial or (),
            replace=replace,
            lost_limit=lost_limit,
            key=key,
            engine=engine(master, remote, json),
        )
    if json:
        show_json(made.summary())
        return
    several = len(plans) > 1
    told = {f"{s['layer']}, {s['plan']}" if several else s["layer"]: saved(s) for s in made.savings}
    show_facts("Report", told | {"page": str(made.page)})


def saved(saving: dict[str, Any]) -> str:
    return f"{saving['saved_percent']:.1f} % saved, {saving['unit']}"
