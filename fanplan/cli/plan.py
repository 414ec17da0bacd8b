"""`fanplan channels`: one plan, or cost against the number of channels."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.explained import show_explained
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import CURVE, PLAN, require_free

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
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Further parameter of the method, such as starts=4; repeatable.",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            help="Methods to set beside the plan, such as tock+greedy-flow; or none.",
            show_default=BASELINES,
        ),
    ] = None,
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
    from fanplan.core.stop import Interrupt

    numbers = channel_numbers(channels)
    if len(numbers) > 1:
        require_one(explain=explain, compare=compare, from_=from_)
    require_free(out, PLAN if len(numbers) == 1 else CURVE, replace)
    methods = [] if compare == "none" else (compare or BASELINES).split(",")
    api.require_methods(methods)
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
        **further_options(option or []),
    }
    with named_by_flag(FLAGS), api.as_dataset(workload, run) as dataset, ExitStack() as stack:
        if restarts > 1 or on_spark:
            # A session that starts sets what Ctrl-C does: the search must have the last word.
            run.session()
        stop = stack.enter_context(Interrupt())
        costs["stop"] = wishes["stop"] = stop
        if len(numbers) > 1:
            _curve(dataset, numbers, wishes, out, replace, json)
            return
        api.require_names(dataset, explain or ())
        began = time.perf_counter()
        made = api.channels(dataset, numbers[0], **wishes)
        made.save(out, replace)
        facts = made.summary() | {"seconds": time.perf_counter() - began}
        compared = api.compare_methods(dataset, numbers[0], methods, **costs)
        explained = [item for name in explain or () for item in made.explain(name)]
    _show(facts, compared, explained, out, json)


def _show(
    facts: dict[str, Any],
    compared: list[dict[str, Any]],
    explained: list[dict[str, Any]],
    out: Path,
    json: bool,
) -> None:
    """A plan and what was asked about it."""
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
    shown = {
        "channels": "channels",
        "cost": "cost",
        "excess_percent": "over perfect %",
        "single_bound_percent": "bound, one channel %",
        "marginal": "a channel saves",
        "marginal_percent": "of perfect %",
    }
    if any("ended_early_by" in point for point in points):
        shown["ended_early_by"] = "ended early by"
    rows = [[point.get(name, "") for name in shown] for point in points]
    show_table("Cost against channels, all plans checked", list(shown.values()), rows)
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


def require_one(**given: Any) -> None:
    """What only makes sense for a single plan cannot be asked of a curve."""
    for name, value in given.items():
        if value:
            flag = f"--{name.rstrip('_')}"
            what = "is for one plan, not for a curve"
            raise InputError(Problem(flag, what, "Give one number of channels"))


def further_options(words: list[str]) -> dict[str, Any]:
    """Parameters as NAME=VALUE: a value is a number, true, false, or else text."""
    found = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name.isidentifier()):
            raise InputError(Problem("--option", f"{word!r} is not NAME=VALUE", "Use starts=4"))
        found[name] = as_value(text)
    return found


def as_value(text: str) -> int | float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


FLAGS = {
    "pinned": "--pin",
    "start": "--from",
    "max_changes": "--churn",
    "off_multicast": "--off-multicast",
    "unicast_limit": "--unicast-limit",
    "max_channel_rate": "--max-channel-rate",
    "max_channels_per_subscriber": "--max-channels-per-subscriber",
    "change_price": "--change-price",
    "on_spark": "--on-spark",
}
"""Options of `fanplan.channels` by the flags that set them."""
