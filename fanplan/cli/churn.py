"""`fanplan churn`: the protocols of a plan while subscriptions change and clients come and go."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json, show_table

Events = Annotated[int, typer.Option(help="Events that happen.", min=0)]
Loss = Annotated[float, typer.Option(help="Chance that a message is lost, and sent again.")]
Layer = Annotated[
    str | None, typer.Option(help="groups or marking.", show_default="the one the plan has")
]
Restarts = Annotated[
    int | None,
    typer.Option(help="Nodes that lose their state between events.", show_default="0; marking"),
]
Burst = Annotated[
    int | None,
    typer.Option(help="Events that happen close together.", show_default="1; marking"),
]
Updates = Annotated[
    float | None,
    typer.Option(
        help="Share of the events that are changes of subscriptions.", show_default="0.2; groups"
    ),
]
RebuildEvery = Annotated[
    int | None,
    typer.Option(
        help="Changes after which groups are rebuilt; 0: never.", show_default="20; groups"
    ),
]
Hold = Annotated[
    str | None,
    typer.Option(
        help="What the root holds back meanwhile: all, affected or none.",
        show_default="affected; groups",
    ),
]

FLAGS = {
    name: "--" + name.replace("_", "-")
    for name in ("events", "loss", "restarts", "burst", "updates", "rebuild_every", "hold", "layer")
}


def churn(
    plan: options.PlanFolder,
    workload: options.Workload,
    events: Events = 1000,
    loss: Loss = 0.0,
    layer: Layer = None,
    restarts: Restarts = None,
    burst: Burst = None,
    updates: Updates = None,
    rebuild_every: RebuildEvery = None,
    hold: Hold = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Simulate the protocols of a plan while subscriptions change and clients come and go."""
    from fanplan import api

    run = engine(master, remote, json)
    wishes: dict[str, Any] = {
        "restarts": restarts,
        "burst": burst,
        "updates": updates,
        "rebuild_every": rebuild_every,
        "hold": hold,
    }
    with named_by_flag(FLAGS), api.dataset_of_plan(plan, workload, run) as dataset:
        made = api.churn(
            plan, dataset, layer=layer, events=events, loss=loss, seed=seed, engine=run, **wishes
        )
    if json:
        show_json(made.summary())
    else:
        show_facts(made.title, made.facts)
        typer.echo()
        show_table(*made.listing)
    raise typer.Exit(0 if made.ok else 1)
