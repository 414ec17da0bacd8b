"""`fanplan design`: every layer that a workload allows, together."""

from __future__ import annotations

import time as clock
from typing import Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.groups import priced
from fanplan.cli.run import engine, named_by_flag, rehearsing
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import PLAN, require_free

Channels = Annotated[
    int, typer.Option(help="Multicast groups there are, on each site if sites are known.", min=0)
]
Entries = Annotated[
    int | None,
    typer.Option(help="Most forwarding entries of groups.", show_default="as many as pay"),
]
UnicastLimit = Annotated[
    float | None,
    typer.Option(help="Most of the messages sent that go to one subscriber alone, 0 to 1."),
]
Multicast = Annotated[
    str | None,
    typer.Option(help="How far it reaches: site or everywhere.", show_default="site if known"),
]
Without = Annotated[
    str | None,
    typer.Option(help="What to leave out: some of overlay,channels,groups,direct,marking."),
]
Fix = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LAYER=PLAN",
        help="Take overlay, channels, groups or marking from a plan; may be given several times.",
        show_default="none",
    ),
]
Prices = Annotated[
    str | None,
    typer.Option(help="Such as matched=1,forwarded=1,direct=1.5; also received, sent, entry."),
]
Time = Annotated[float | None, typer.Option(help="Seconds after which the search ends.")]

FLAGS = {
    name: "--" + name.replace("_", "-")
    for name in ("channels", "entries", "unicast_limit", "multicast", "without", "prices", "time")
} | {"fixed": "--fix"}


def design(
    workload: options.Workload,
    out: options.Out,
    channels: Channels = 0,
    entries: Entries = None,
    unicast_limit: UnicastLimit = None,
    multicast: Multicast = None,
    without: Without = None,
    fix: Fix = None,
    prices: Prices = None,
    time: Time = None,
    replace: options.Replace = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Plan every layer that the workload allows, each knowing what the others cost."""
    from fanplan import api
    from fanplan.core.stop import Interrupt

    require_free(out, PLAN, replace)
    run = engine(master, remote, json)
    with (
        rehearsing(),
        named_by_flag(FLAGS),
        api.as_dataset(workload, run) as dataset,
        Interrupt() as stop,
    ):
        began = clock.perf_counter()
        made = api.design(
            dataset,
            channels=channels,
            entries=entries,
            unicast_limit=unicast_limit,
            multicast=multicast,
            without=without.split(",") if without else (),
            fixed=fixed_to(fix or []),
            prices=priced(prices),
            seed=seed,
            time=time,
            stop=stop,
            engine=run,
        )
        made.save(out, replace)
    facts = made.summary() | {"seconds": clock.perf_counter() - began}
    if json:
        show_json(facts)
    else:
        show(facts | {"plan": str(out)})


def fixed_to(words: list[str]) -> dict[str, str]:
    """Plans by layer, from LAYER=PLAN."""
    found: dict[str, str] = {}
    for word in words:
        layer, _, plan = word.partition("=")
        if not plan:
            raise InputError(Problem("fixed", f"{word!r} names no plan", "Write LAYER=PLAN"))
        if layer in found:
            raise InputError(Problem("fixed", f"{layer} is given twice", "Give one plan for each"))
        found[layer] = plan
    return found


def show(facts: dict[str, Any]) -> None:
    """For a person: what was decided, the way there, and what the cost consists of."""
    naive, last = facts["steps"][0]["cost"], facts["steps"][-1]["cost"]
    told = {
        "layers": ", ".join(facts["layers"]),
        "multicast domains": len(facts["domains"]),
        "audience classes": facts["classes"],
        "of these sent directly": facts["direct"],
        "cost of delivery": facts["cost"],
        "layer by layer": facts["layered"],
        "no delivery is below": facts["bound"],
        "unicast %": 100 * facts["unicast_fraction"],
        "saved of the naive system %": 100 * (1 - last / naive) if naive else 0.0,
        "seconds": facts["seconds"],
        "plan": facts["plan"],
    }
    show_facts("Design, checked", told)
    typer.echo()
    show_steps(facts["steps"])
    typer.echo()
    show_table("What delivery costs", ("part", "cost"), [*facts["parts"].items()])
    for note in facts["warnings"]:
        typer.echo(f"Note: {note}", err=True)


def show_steps(steps: list[dict[str, Any]]) -> None:
    """The waterfall, as a table."""
    rows = [[step["step"], step["cost"], step["saved"], step["percent"]] for step in steps]
    show_table("From the naive system to the plan", ("step", "cost", "saved", "saved %"), rows)
