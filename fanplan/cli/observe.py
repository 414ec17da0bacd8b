"""`fanplan observe nats|pcap|graphml`: what runs already, as a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named, with_signature
from fanplan.cli.grouped import PlainGroup
from fanplan.cli.run import named_by_flag
from fanplan.cli.show import say, show_facts, show_json
from fanplan.systems.observed.params import ObserveParams

if TYPE_CHECKING:
    from fanplan.systems.observed.tables import Observed

app = typer.Typer(
    cls=PlainGroup,
    help="Write a workload from a system that is already running.",
    no_args_is_help=True,
)

Monitors = Annotated[
    list[str],
    typer.Option("--monitor", help="Address of a server's monitor; repeatable.", metavar="URL"),
]
Captures = Annotated[list[Path], typer.Argument(help="Captures, pcap or pcapng.")]
Topology = Annotated[Path, typer.Argument(help="A topology in GraphML.")]


def nats(
    monitor: Monitors,
    out: options.Out,
    replace: options.Replace = False,
    json: options.Json = False,
    **given: Any,
) -> None:
    """Who subscribes to what in a NATS network, its servers and links, and its traffic."""
    from fanplan import api

    with named_by_flag(flags_named(ObserveParams)):
        show_observed(api.observe_nats(monitor, out, replace=replace, **given), json)


@app.command()
def pcap(
    files: Captures, out: options.Out, replace: options.Replace = False, json: options.Json = False
) -> None:
    """Joins, leaves and datagrams of IP multicast, from captures."""
    from fanplan import api

    show_observed(api.observe_pcap(files, out, replace=replace), json)


@app.command()
def graphml(
    file: Topology, out: options.Out, replace: options.Replace = False, json: options.Json = False
) -> None:
    """Brokers and links of a topology; delays from coordinates where none are given."""
    from fanplan import api

    show_observed(api.observe_graphml(file, out, replace=replace), json)


app.command("nats")(with_signature(nats, ObserveParams))


def show_observed(found: Observed, json: bool) -> None:
    if json:
        show_json(found.json())
        return
    show_facts("Observed", {"source": found.source, "workload": str(found.folder), **found.counts})
    for note in found.notes:
        say(f"Note: {note}.")
