"""`fanplan export`: a plan as configuration that a real system loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json
from fanplan.core.folder import EXPORT, claimed
from fanplan.systems.params import ExportParams

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan

System = Annotated[
    str, typer.Option("--to", help="The system: nats, multicast, cyclonedds or mosquitto.")
]


def export(
    plan: options.PlanFolder,
    workload: options.Workload,
    to: System,
    out: options.Out,
    replace: options.Replace = False,
    key: options.Key = None,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **given: Any,
) -> None:
    """Check a plan and write it as configuration that a real system loads."""
    from fanplan import api
    from fanplan.verbs.export import lacking

    def tell(stored: StoredPlan) -> None:
        """Before anything is written."""
        for each in lacking(stored, to):
            say(f"Not expressed: {each}.", err=True)

    run = engine(master, remote, json)
    flags = {"system": "--to", **flags_named(ExportParams)}
    with claimed(out, EXPORT, replace), named_by_flag(flags):
        ExportParams.given(given)  # Refused before a workload is ingested.
        with dataset_of(plan, workload, run, lost_limit, tell) as dataset:
            made = api.export(plan, dataset, to, out, replace=replace, key=key, engine=run, **given)
    if json:
        show_json(made.json())
        return
    told = {"system": made.system, "files": len(made.files), "start here": Path(out) / "README.md"}
    show_facts("Export", told)
