"""Options about the trees between brokers, which several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fanplan.core.errors import InputError, Problem

Metric = Annotated[
    str,
    typer.Option(
        help="improved (against the predicted ledger), overlap, cover, hybrid, interest or random."
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(help="With --metric hybrid: weight of interest, 0 to 1.", show_default="0.15"),
]
Messages = Annotated[float, typer.Option(help="Weight of a message on a link.")]
Delay = Annotated[float, typer.Option(help="Weight of a hop of an arrival, or of 100 ms.")]
LinkCost = Annotated[float, typer.Option(help="Weight of the cost of links.")]
Degree = Annotated[int | None, typer.Option(help="Most links of a broker.")]
BrokerDegree = Annotated[
    list[str] | None,
    typer.Option(metavar="BROKER=N", help="Most links of one broker; repeatable."),
]
Diameter = Annotated[int | None, typer.Option(help="Most hops between any two brokers.")]
Within = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:NAME,…=N",
        help="The first is at most N hops from each other; brokers or clients; repeatable.",
    ),
]
Trees = Annotated[
    int, typer.Option(help="Most trees; several are used if they lower the weighed ledger.")
]
From = Annotated[
    Path | None, typer.Option("--from", metavar="PLAN", help="Older plan to stay near.")
]
Changes = Annotated[int | None, typer.Option(help="With --from: most links that differ.")]
ChangePrice = Annotated[float, typer.Option(help="With --from: what each link that differs costs.")]
Traffic = Annotated[
    bool, typer.Option("--traffic", help="Measure similarity by what was sent, not by space.")
]
Rates = Annotated[
    bool, typer.Option("--rates", help="Count an advertisement as often as it is published on.")
]
Compare = Annotated[
    str | None,
    typer.Option(
        help="Trees to set beside the plan, such as overlap,hybrid; or none.",
        show_default="overlap,random",
    ),
]
Time = Annotated[
    float | None, typer.Option("--time", help="Seconds; then the best plan so far is kept.")
]

BASELINES = "overlap,random"


SAME = (
    *("metric", "alpha", "degree", "diameter", "trees", "messages", "delay", "cost"),
    *("changes", "change_price", "traffic", "rates"),
)
"""Options about trees that the interface takes as they are; not every command has all of them."""


def wishes(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a command was given about trees, in the words of the interface."""
    return {name: given[name] for name in SAME if name in given} | {
        "degrees": broker_degrees(given["broker_degree"]),
        "within": within(given["within"]),
        "start": given["from_"],
    }


def broker_degrees(words: list[str] | None) -> dict[str, int]:
    """Limits such as hub=12."""
    return dict(named_number("--broker-degree", word, "hub=12") for word in words or [])


def within(words: list[str] | None) -> list[tuple[str, list[str], int]]:
    """Limits such as X:A,B,C=3."""
    found = []
    for word in words or []:
        names, most = named_number("--within", word, "X:A,B,C=3")
        near, sign, far = names.partition(":")
        if not (sign and near and far):
            raise InputError(Problem("--within", f"{word!r} is not understood", "Use X:A,B,C=3"))
        found.append((near, far.split(","), most))
    return found


def named_number(flag: str, word: str, example: str) -> tuple[str, int]:
    """NAME=N, where the name may have signs of equality too."""
    name, _, number = word.rpartition("=")
    if not name or not number.isdigit():
        raise InputError(Problem(flag, f"{word!r} is not understood", f"Use such as {example}"))
    return name, int(number)


def compared(text: str | None) -> list[str]:
    return [] if text == "none" else (text or BASELINES).split(",")


FLAGS: dict[str, str] = {
    "degrees": "--broker-degree",
    "start": "--from",
    "change_price": "--change-price",
    "ranking": "--ranking",
    **{
        name: f"--{name}"
        for name in ("metric", "alpha", "degree", "diameter", "within", "trees", "changes", "lcf")
    },
    **{name: f"--{name}" for name in ("load", "moves", "compare", "time")},
    "most_moves": "--moves",
    "hops": "--within",
}
"""Options of the interface by the flags that set them."""

WORDS: dict[str, Any] = {
    "method": "tree",
    "weight": "similarity of linked brokers",
    "link_messages": "messages on links",
    "bound": "no overlay is below",
    "over_bound_percent": "above that %",
    "messages_per_publication": "per publication",
    "messages_per_arrival": "per destination broker",
    "delay_mean": "mean delay of an arrival",
    "latency": "delays are in",
    "forwarded": "processed to forward only",
    "degree_max": "most links of a broker",
    "overloaded": "brokers over their capacity",
    "ended_early_by": "ended early by",
    "changed": "links that differ from the older plan",
    "moved": "clients that moved",
    "brokers_bound": "no allocation has fewer brokers than",
    "lcf": "share of capacity for clients",
    "load": "load is measured by",
    "cost": "cost of the brokers",
    "lone": "clients too big for any broker",
}
"""How a person reads the figures of an overlay."""


def told(facts: dict[str, Any]) -> dict[str, Any]:
    """Figures in words; lists as their length and their first names."""
    return {WORDS.get(name, name): listed(value) for name, value in facts.items()}


def listed(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    few = ", ".join(map(str, value[:5]))
    return f"{len(value)}: {few}{' …' if len(value) > 5 else ''}" if value else 0


def warn_of_overload(facts: dict[str, Any], remedy: str) -> None:
    if facts["overloaded"]:
        what = "brokers process more than their capacity, forwarding included"
        typer.echo(f"Warning: {what} ({listed(facts['overloaded'])}). {remedy}", err=True)
