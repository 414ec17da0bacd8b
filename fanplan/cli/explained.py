"""Explanations as a person reads them."""

from __future__ import annotations

from typing import Any

import typer

from fanplan.cli.show import number, show_table


def show_explained(items: list[dict[str, Any]]) -> None:
    for item in items:
        typer.echo()
        _flow(item) if "flow" in item else _subscriber(item)


def _flow(item: dict[str, Any]) -> None:
    """Where one flow goes, what that costs, and the next best place."""
    typer.echo(
        f"Flow {item['flow']}: {number(item['rate'])} messages/s for {item['audience']} subscribers"
    )
    if item["asked_for"]:
        typer.echo(f"  {item['asked_for']}, as asked for")
    for carried in item["channels"]:
        typer.echo(
            f"  channel {carried['channel']}: {carried['wanting']} of its {carried['members']} "
            f"members want it; unwanted {number(carried['unwanted_rate'])} messages/s"
        )
    typer.echo(f"  by unicast: {item['unicast']} subscribers")
    typer.echo(
        f"  cost {number(item['cost'])} per second; with a channel of its own "
        f"{number(item['perfect'])}"
    )
    if item["runner_up_cost"] is None:
        typer.echo("  no other place would do what was asked for")
        return
    typer.echo(f"  next best: {item['runner_up']}, cost {number(item['runner_up_cost'])}")


def _subscriber(item: dict[str, Any]) -> None:
    """Where one subscriber gets its messages from, and the channel it nearly joined."""
    typer.echo(f"Subscriber {item['subscriber']} wants {number(item['wanted_rate'])} messages/s")
    columns = ("channel", "rate", "wanted_rate", "unwanted_rate", "only_here", "saves")
    if item["joined"]:
        rows = [[joined[name] for name in columns] for joined in item["joined"]]
        header = ("channel", "messages/s", "wanted", "unwanted", "only here", "joining saves")
        show_table("", header, rows)
    typer.echo(
        f"  by unicast: {item['unicast_rows']} flows or classes, "
        f"{number(item['unicast_rate'])} messages/s"
    )
    typer.echo(f"  cost of receiving {number(item['cost'])} per second")
    nearly = item["runner_up"]
    if nearly is not None:
        verb = "save" if nearly["saves"] > 0 else "cost"
        typer.echo(
            f"  next best: joining channel {nearly['channel']} would {verb} "
            f"{number(abs(nearly['saves']))}"
        )
