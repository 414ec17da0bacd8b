"""`fanplan channels`: one plan, or cost against the number of channels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.explained import show_explained
from fanplan.cli.run import engine
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.api import Dataset

BASELINES = "unicast,broadcast,round-robin"

WORDS = {
    "perfect": "perfect multicast",
    "excess_percent": "over perfect %",
    "bound_percent": "no plan is below %",
    "single_bound_percent": "with one channel per flow %",
    "unicast_fraction": "share sent by unicast",
    "audience_classes": "audience classes",
    "ended_early_by": "ended early by",
    "restarts": "costs of all restarts",
    "joins": "subscribers join channels",
    "leaves": "subscribers leave channels",
    "added": "flows added to channels",
    "removed": "flows removed from channels",
    "gone": "pairs no longer there",
    "fresh_cost": "cost if planned afresh",
    "given_up_percent": "cost given up %",
}
"""How a person reads the figures of a plan."""


def channels(
    workload: options.Workload,
    channels: Annotated[
        str, typer.Option(help="Number of channels; several, such as 10,20,50, give a curve.")
    ],
    out: options.Out,
    method: Annotated[
        str,
        typer.Option(
            help="kmodes, broadcast, round-robin, random, tock, lloyd, bmd, interior-point, "
            "flow-merge, user-merge, genetic, genetic-atomic, reverse, exact or unicast."
        ),
    ] = "kmodes",
    unicast: Annotated[
        str | None,
        typer.Option(
            help="Second step after a method that leaves all on channels: greedy-flow, "
            "greedy-user, greedy-pair, lightest-flow, heaviest-flow, lightest-user or "
            "heaviest-user, each also with -iterative."
        ),
    ] = None,
    unicast_limit: Annotated[
        float | None, typer.Option(help="Largest share of the messages sent that may be unicast.")
    ] = None,
    max_channels_per_subscriber: Annotated[
        str | None,
        typer.Option(help="A number for all, or a file with columns subscriber and channels."),
    ] = None,
    max_channel_rate: Annotated[
        float | None, typer.Option(help="Most messages per second on a channel.")
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option(help="Flow or topic that must go by multicast; repeatable.")
    ] = None,
    off_multicast: Annotated[
        list[str] | None, typer.Option(help="Flow or topic that must go by unicast; repeatable.")
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="PLAN", help="Older plan to start from.")
    ] = None,
    churn: Annotated[
        int | None, typer.Option(help="With --from: most changes of members and flows.")
    ] = None,
    change_price: Annotated[
        float | None,
        typer.Option(help="With --from: what each change costs, in units of the cost."),
    ] = None,
    compare: Annotated[
        str, typer.Option(help="Methods to set beside the plan, such as tock+greedy-flow; or none.")
    ] = BASELINES,
    explain: Annotated[
        list[str] | None, typer.Option(help="Flow, topic or subscriber to explain; repeatable.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time", help="Seconds; then the best plan so far is kept.")
    ] = None,
    restarts: Annotated[
        int, typer.Option(help="Searches, each a Spark task; the best is kept.")
    ] = 1,
    on_spark: Annotated[
        bool, typer.Option("--on-spark", help="Rows on Spark: for more than one machine searches.")
    ] = False,
    w1: Annotated[float, typer.Option(help="Cost of receiving a message.")] = 1.0,
    w2: Annotated[float, typer.Option(help="Cost of sending a message.")] = 1.0,
    w3: Annotated[float, typer.Option(help="Factor on the cost of unicast.")] = 1.0,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Decide which flows share which channels and what goes by unicast."""
    from fanplan import api
    from fanplan.planners.stop import Interrupt

    numbers = channel_numbers(channels)
    run = engine(master, remote, json)
    costs: dict[str, Any] = {"w1": w1, "w2": w2, "w3": w3, "seed": seed, "engine": run}
    wishes = costs | {
        "method": method,
        "unicast": unicast,
        "time": time_limit,
        "restarts": restarts,
        "on_spark": on_spark,
        "unicast_limit": unicast_limit,
        "max_channels_per_subscriber": number_or_file(max_channels_per_subscriber),
        "max_channel_rate": max_channel_rate,
        "pinned": pin,
        "off_multicast": off_multicast,
        "start": from_,
        "max_changes": churn,
        "change_price": change_price,
    }
    with api.as_dataset(workload, run) as dataset, Interrupt() as stop:
        wishes["stop"] = stop
        if len(numbers) > 1:
            require_one(explain, from_)
            _curve(dataset, numbers, wishes, out, replace, json)
            return
        api.require_names(dataset, explain or ())
        methods = [] if compare == "none" else compare.split(",")
        compared = api.compare(dataset, numbers[0], methods, **costs)
        _plan(dataset, numbers[0], wishes, out, replace, json, compared, explain or [])


def _plan(
    dataset: Dataset,
    number: int,
    wishes: dict[str, Any],
    out: Path,
    replace: bool,
    json: bool,
    compared: list[dict[str, Any]],
    explain: list[str],
) -> None:
    from fanplan import api

    began = time.perf_counter()
    made = api.channels(dataset, number, **wishes)
    made.save(out, replace)
    facts = made.summary() | {"seconds": time.perf_counter() - began}
    explained = [item for name in explain for item in made.explain(name)]
    if json:
        show_json(facts | {"compared": compared, "explained": explained})
        return
    told = {WORDS.get(name, name): value for name, value in facts.items()}
    show_facts("Plan, checked", told | {"plan": str(out)})
    show_compared([*compared, facts])
    show_explained(explained)


def _curve(
    dataset: Dataset,
    numbers: list[int],
    wishes: dict[str, Any],
    out: Path,
    replace: bool,
    json: bool,
) -> None:
    from fanplan import api

    curve = api.curve(dataset, numbers, **wishes)
    curve.save(out, replace)
    points = curve.points()
    if json:
        show_json({"unicast_cost": curve.unicast_cost, "points": points})
        return
    shown = ("channels", "cost", "excess_percent", "single_bound_percent", "marginal")
    header = ("channels", "cost", "over perfect %", "bound, one channel %", "a channel saves")
    show_table(
        "Cost against channels, all plans checked",
        (*header, "of perfect %"),
        [[*(point[name] for name in shown), point["marginal_percent"]] for point in points],
    )
    typer.echo(f"\nWithout channels, all by unicast: {curve.unicast_cost:,.1f}. Plans: {out}")


def show_compared(rows: list[dict[str, Any]]) -> None:
    """The plan beside other methods, dearest first."""
    if len(rows) < 2:
        return
    ordered = sorted(rows, key=lambda row: -row["cost"])
    header = ("method", "cost", "over perfect %", "unicast %", "seconds")
    table = [
        (
            row["method"],
            row["cost"],
            row["excess_percent"],
            100 * row["unicast_fraction"],
            row["seconds"],
        )
        for row in ordered
    ]
    typer.echo()
    show_table("Compared", header, table)


def channel_numbers(text: str) -> list[int]:
    """The numbers in a list such as 10,20,50."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        what = f"{text!r} is not a number, nor a list of numbers"
        raise InputError(Problem("channels", what, "Use such as 100, or 10,20,50")) from None


def number_or_file(text: str | None) -> int | Path | None:
    """A limit for all subscribers, or the file that has one for each."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return Path(text)


def require_one(explain: list[str] | None, older: Path | None) -> None:
    """What only makes sense for a single plan cannot be asked of a curve."""
    for option, given in (("--explain", explain), ("--from", older)):
        if given:
            what = "is for one plan, not for a curve"
            raise InputError(Problem(option, what, "Give one number of channels"))
