"""`fanplan compare`, `diff` and `apply-check`: plans beside each other and beside the present."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from fanplan.cli import options
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import show_json
from fanplan.core.folder import CHANGES, claimed

Plans = Annotated[list[Path], typer.Argument(metavar="PLAN", help="Two plans or more.")]
Old = Annotated[Path, typer.Argument(metavar="OLD", help="The plan that is in place.")]
New = Annotated[Path, typer.Argument(metavar="NEW", help="The plan to go to.")]
OfNew = Annotated[
    Path | None,
    typer.Argument(
        metavar="WORKLOAD",
        help="Workload or dataset of NEW: to check every step against who wants what.",
        show_default=False,
    ),
]
StepsOf = Annotated[int, typer.Option(metavar="N", help="Limit on the changes in one step.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder for the table of changes.", show_default="none")
]
AllowDrift = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Accept the drift; this is why.", show_default="refuse"),
]

Was = Annotated[
    Path | None,
    typer.Option(
        metavar="DATASET",
        help="Dataset that PLAN was made for: to count subscriptions that came and went.",
        show_default="none",
    ),
]


def compare(plans: Plans, json: options.Json = False) -> None:
    """Compare plans figure by figure; * marks the best."""
    from fanplan import api
    from fanplan.cli.changes_shown import show_comparison

    with named_by_flag({"plans": "PLAN"}):
        found = api.compare(*plans)
    show_json(found.json()) if json else show_comparison(found)


def diff(
    old: Old,
    new: New,
    workload: OfNew = None,
    steps_of: StepsOf = 100,
    out: Out = None,
    replace: options.Replace = False,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """List the changes from one plan to another, in small steps that are each valid."""
    from fanplan import api
    from fanplan.cli.changes_shown import show_diff
    from fanplan.layers.registry import load_plan
    from fanplan.verbs.diff import require_comparable

    spark = engine(master, remote, json)
    with ExitStack() as stack:
        stack.enter_context(claimed(out, CHANGES, replace))
        stack.enter_context(named_by_flag({"steps_of": "--steps-of"}))
        known = None
        require_comparable(load_plan(old), load_plan(new), steps_of)
        if workload is not None:
            known = stack.enter_context(dataset_of(new, workload, spark, lost_limit))
        found = api.diff(old, new, known, steps_of=steps_of, engine=spark)
        if out is not None:
            found.save(out, replace)
    show_json(found.json()) if json else show_diff(found)
    raise typer.Exit(0 if found.ok else 1)


def apply_check(
    plan: options.PlanFolder,
    workload: options.Workload,
    allow_drift: AllowDrift = None,
    was: Was = None,
    key: options.Key = None,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Refuse a plan that was edited, or whose workload has changed since it was made."""
    from fanplan import api
    from fanplan.cli.changes_shown import show_verdict

    spark = engine(master, remote, json)
    older = None if was is None else api.open_dataset(was)
    with dataset_of(plan, workload, spark, lost_limit) as dataset:
        found = api.apply_check(
            plan, dataset, allow_drift=allow_drift, was=older, key=key, engine=spark
        )
    show_json(found.json()) if json else show_verdict(found)
    raise typer.Exit(0 if found.ok else 1)
