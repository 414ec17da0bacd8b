"""`fanplan overlay`: link a given set of brokers."""

from __future__ import annotations

import time
from typing import Any

import typer

from fanplan.cli import options, tree_options
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.folder import PLAN, require_free


def overlay(
    context: typer.Context,
    workload: options.Workload,
    out: options.Out,
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
    changes: tree_options.Changes = None,
    change_price: tree_options.ChangePrice = 0.0,
    traffic: tree_options.Traffic = False,
    rates: tree_options.Rates = False,
    compare: tree_options.Compare = None,
    time_limit: tree_options.Time = None,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Link the brokers of a workload; its clients stay where they are."""
    from fanplan import api
    from fanplan.core.stop import Interrupt

    require_free(out, PLAN, replace)
    run = engine(master, remote, json)
    with named_by_flag(tree_options.FLAGS), api.as_dataset(workload, run) as dataset:
        metrics = tree_options.compared(compare)
        api.require_metrics(metrics)
        wishes = tree_options.wishes(context.params)
        began = time.perf_counter()
        with Interrupt() as stop:
            made = api.overlay(dataset, seed=seed, time=time_limit, stop=stop, engine=run, **wishes)
            made.save(out, replace)
        facts = made.summary() | {"seconds": time.perf_counter() - began}
        others = api.compare_trees(made, metrics, seed=seed)
    tree_options.warn_of_overload(facts, "Give them more capacity, or fewer clients")
    if json:
        show_json(facts | {"compared": others})
        return
    show_facts("Overlay, checked", tree_options.told(facts) | {"plan": str(out)})
    show_trees([*others, facts])


def show_trees(rows: list[dict[str, Any]]) -> None:
    """The tree beside others, dearest first."""
    if len(rows) < 2:
        return
    header = ("tree", "messages on links", "per arrival", "mean delay", "most links", "diameter")
    names = ("link_messages", "messages_per_arrival", "delay_mean", "degree_max", "diameter")
    ordered = sorted(rows, key=lambda row: -row["link_messages"])
    typer.echo()
    show_table("Compared", header, [[r["method"], *(r[name] for name in names)] for r in ordered])
