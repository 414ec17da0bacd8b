"""`fanplan allocate`: how many brokers, which client where, and how they are linked."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from fanplan.cli import options, tree_options
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.folder import PLAN, require_free

RANKINGS = "gli,gi,gig,baseline"


def allocate(
    context: typer.Context,
    workload: options.Workload,
    out: options.Out,
    ranking: Annotated[
        str, typer.Option(help="best, or the thesis' gli, gi, gig or baseline.")
    ] = "best",
    lcf: Annotated[
        float | None,
        typer.Option(
            help="Share of its capacity that clients may take of a broker.",
            show_default="0.75, or 1 with --stable",
        ),
    ] = None,
    load: Annotated[
        str, typer.Option(help="How load is measured: exact, or by the thesis' estimate.")
    ] = "exact",
    brokers: Annotated[
        int | None, typer.Option(help="Are so many enough? If not, the answer says how many are.")
    ] = None,
    stable: Annotated[
        bool,
        typer.Option("--stable", help="Repeat until what brokers forward fits their capacity too."),
    ] = False,
    metric: tree_options.Metric = "improved",
    alpha: tree_options.Alpha = None,
    degree: tree_options.Degree = None,
    broker_degree: tree_options.BrokerDegree = None,
    diameter: tree_options.Diameter = None,
    within: tree_options.Within = None,
    trees: tree_options.Trees = 1,
    messages: tree_options.Messages = 1.0,
    delay: tree_options.Delay = 0.1,
    cost: tree_options.LinkCost = 0.0,
    from_: tree_options.From = None,
    moves: Annotated[
        int | None, typer.Option(help="With --from: most clients that change their broker.")
    ] = None,
    changes: tree_options.Changes = None,
    change_price: tree_options.ChangePrice = 0.0,
    traffic: tree_options.Traffic = False,
    compare: Annotated[
        str | None,
        typer.Option(
            help="Rankings to set beside the plan, such as gli,gi; or none.", show_default=RANKINGS
        ),
    ] = None,
    time_limit: tree_options.Time = None,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Decide how many brokers are needed, which client goes where, and link those brokers."""
    from fanplan import api
    from fanplan.core.stop import Interrupt

    require_free(out, PLAN, replace)
    run = engine(master, remote, json)
    rankings = [] if compare == "none" else (compare or RANKINGS).split(",")
    with named_by_flag(tree_options.FLAGS), api.as_dataset(workload, run) as dataset:
        api.require_rankings(rankings)
        wishes: dict[str, Any] = tree_options.wishes(context.params) | {
            "ranking": ranking,
            "lcf": lcf,
            "load": load,
            "brokers": brokers,
            "stable": stable,
            "moves": moves,
        }
        began = time.perf_counter()
        with Interrupt() as stop:
            made = api.allocate(
                dataset, seed=seed, time=time_limit, stop=stop, engine=run, **wishes
            )
            made.save(out, replace)
        facts = made.summary() | {"seconds": time.perf_counter() - began}
        others = api.compare_rankings(made, rankings, seed=seed)
    warn(facts)
    if json:
        show_json(facts | {"compared": others})
        return
    show_facts("Allocation, checked", tree_options.told(facts) | {"plan": str(out)})
    show_rankings(others, facts)


def warn(facts: dict[str, Any]) -> None:
    """What holds by the rules and yet needs a look."""
    if facts["lone"]:
        who = tree_options.listed(facts["lone"])
        what = "clients too big for any broker, each alone at one"
        typer.echo(f"Warning: {what} ({who}). Give them larger brokers", err=True)
    tree_options.warn_of_overload(facts, "Use --stable, a lower --lcf or larger brokers")


def show_rankings(rows: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    """The allocation beside others, most brokers first."""
    if not rows:
        return
    header = ("ranking", "brokers", "messages on links", "per publication", "mean delay")
    names = ("brokers", "link_messages", "messages_per_publication", "delay_mean")
    ordered = sorted([*rows, facts], key=lambda row: (-row["brokers"], -row["link_messages"]))
    typer.echo()
    show_table("Compared", header, [[r["ranking"], *(r[name] for name in names)] for r in ordered])
