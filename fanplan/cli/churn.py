"""`fanplan churn`: the protocols of a plan while subscriptions change and clients come and go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import dataset_of, engine, named_by_flag
from fanplan.cli.show import say, show_facts, show_json, show_table
from fanplan.core.options import Options, option


@dataclass(frozen=True)
class ChurnOptions(Options):
    """What happens to a plan; an option of the protocol of one layer is given for that layer."""

    events: int = option(1000, "Number of events.", at_least=0)
    loss: float = option(0.0, "Chance that a message is lost and must be sent again.")
    layer: str | None = option(None, "groups or marking.", shown="the one the plan has")
    restarts: int | None = option(
        None, "Number of nodes that lose their state between events.", shown="0; marking"
    )
    burst: int | None = option(None, "Number of events close together.", shown="1; marking")
    updates: float | None = option(
        None, "Share of events that change subscriptions.", shown="0.2; groups"
    )
    rebuild_every: int | None = option(
        None, "Rebuild groups after this many changes; 0 means never.", shown="20; groups"
    )
    hold: str | None = option(
        None,
        "What the root holds back during a rebuild: all, affected or none.",
        shown="affected; groups",
    )
    coordinator: str | None = option(
        None, "Broker that coordinates groups.", shown="the root of each tree; groups"
    )


def churn(
    plan: options.PlanFolder,
    workload: options.Workload,
    seed: options.Seed = 0,
    lost_limit: options.LostLimit = None,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **given: Any,
) -> None:
    """Simulate the protocols of a plan while subscriptions change and clients come and go."""
    from fanplan import api
    from fanplan.verbs.churn import layer_at_work

    run = engine(master, remote, json)
    with named_by_flag(flags_named(ChurnOptions)):
        ChurnOptions.given(given)
        at_work = partial(layer_at_work, asked=given["layer"])
        with dataset_of(plan, workload, run, lost_limit, at_work) as dataset:
            made = api.churn(plan, dataset, seed=seed, engine=run, **given)
    if json:
        show_json(made.summary())
    else:
        show_facts(made.title, made.facts)
        say("")
        show_table(*made.listing)
    raise typer.Exit(0 if made.ok else 1)
