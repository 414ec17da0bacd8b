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
SCHEMES = {
    "best": "best",
    "pub_everywhere": "p everywhere",
    "sub_everywhere": "s everywhere",
}
COLUMNS = {
    "messages_per_event": "per event",
    "stored_mean": "stored",
    "stored_peak": "most",
    "cost": "cost",
    "optimum": "lowest",
    "converged_ms_mean": "settled, ms",
    "wrong_rests": "wrong",
}
GROUPS_WORDS = {
    "publications": "publications",
    "in_groups": "of these in a group",
    "deliveries": "arrivals, each exactly once",
    "matches": "matches at brokers",
    "delay_mean_ms": "mean delay, ms",
    "delay_max_ms": "longest delay, ms",
    "updates": "changed subscriptions",
    "accepted_mean_ms": "in force after, ms",
    "rebuilds": "rebuilds",
    "rebuild_mean_ms": "each takes, ms",
    "held": "publications held back",
    "held_max_ms": "at most, ms",
    "groups": "groups at the end",
    "groups_built": "groups set up",
    "groups_kept": "groups kept",
    "entries_most": "most entries of a broker",
    "overhead": "control messages, the paper's kinds",
    "control_messages": "control messages, all",
    "unwanted": "unwanted at members",
    "resent": "sent again",
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
    elif made.layer == "groups":
        show_groups(made.figures)
    else:
        show_marking(made.figures, made.ok)
    raise typer.Exit(0 if made.ok else 1)


def show_groups(figures: dict[str, Any]) -> None:
    """What happened, in words, and the control messages by kind."""
    told = {words: figures[name] for name, words in GROUPS_WORDS.items()}
    show_facts("Churn of groups", told)
    typer.echo()
    kinds = [
        (kind.replace("_", " "), figures["set_up"][kind], count)
        for kind, count in figures["control"].items()
    ]
    show_table("Control messages", ("kind", "setting up", "during churn"), kinds)


def show_marking(figures: dict[str, Any], ok: bool) -> None:
    """What happened, and the marking beside both ways of broadcasting."""
    names = ("trees", "events", "joins", "leaves", "restarts", "loss", "rests")
    told = {name: figures[name] for name in names} | {"seed": figures["seed"]}
    always = "at every rest: valid, best, every pair found once" if ok else "NOT always right"
    show_facts("Churn of the marking", told | {"checked": always})
    typer.echo()
    rows = [
        [SCHEMES[scheme], *(found[name] for name in COLUMNS)]
        for scheme, found in figures["schemes"].items()
    ]
    what = "Messages per event, descriptors stored on average and at most, cost at the end"
    show_table(what, ("marking", *COLUMNS.values()), rows)
