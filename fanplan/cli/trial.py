"""`fanplan trial`: a plan on real servers of this machine, predicted beside measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json, show_table
from fanplan.core.folder import TRIAL, claimed
from fanplan.systems.params import TrialParams

if TYPE_CHECKING:
    from fanplan.systems.trial import Tried

SHOWN = 20
"""Differences that are shown."""

System = Annotated[str, typer.Option("--on", help="The system: nats or multicast.")]


def trial(
    plan: options.PlanFolder,
    workload: options.Workload,
    on: System = "nats",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result; it appears complete or not at all.")
    ] = None,
    replace: options.Replace = False,
    key: options.Key = None,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **given: Any,
) -> None:
    """Send a workload through a plan on real servers; compare the prediction with the counts."""
    from fanplan import api
    from fanplan.verbs.export import require_trial

    run, flags = engine(master, remote, json), {"on": "--on", "system": "--on"}
    with claimed(out, TRIAL, replace), named_by_flag({**flags, **flags_named(TrialParams)}):
        TrialParams.given(given)  # Refused before a workload is ingested.
        with dataset_of(plan, workload, run, lost_limit, lambda _: require_trial(on)) as dataset:
            found = api.trial(plan, dataset, on, key=key, engine=run, **given)
        if out is not None:
            found.save(out, replace)
    show_json(found.json()) if json else show_tried(found)
    raise typer.Exit(0 if found.ok else 1)


def show_tried(found: Tried) -> None:
    """For a person: sums by kind, what differs, and what cannot be measured."""
    delays = {f"{name} of delays, ms": value for name, value in found.delays_ms.items()}
    words = {name.replace("_", " "): value for name, value in found.facts.items()}
    show_facts(f"Trial on {found.system}", words | delays)
    say("")
    show_table(
        "Predicted and measured",
        ("", "predicted", "measured", "agree"),
        [
            (row["of"], row["predicted"], row["measured"], f"{row['agree']} of {row['rows']}")
            for row in found.totals()
        ],
    )
    if found.differences:
        say("")
        title = f"Differences: {len(found.differences):,}"
        rows = [(" ".join(d.key), d.predicted, d.measured) for d in found.differences[:SHOWN]]
        show_table(title, ("", "predicted", "measured"), rows)
    say("")
    for each in found.unmeasured:
        say(f"Not measurable: {each}.")
    for note in found.notes:
        say(f"Note: {note}.")
    say(found.verdict())
