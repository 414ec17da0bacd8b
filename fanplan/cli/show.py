"""What commands print: one JSON object, or a small table for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from fanplan.core.errors import printable
from fanplan.core.result import plain_number
from fanplan.plan.made import Caution, Facts, Grid, Lines, Note


def say(*lines: str, err: bool = False) -> None:
    """Lines for a person. Names in them are data: what a terminal would obey is only marked."""
    for line in lines:
        typer.echo(printable(line), err=err)


def show_json(content: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(content, allow_nan=False))


def show_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout: text to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(
        title=printable(title), title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for column, name in enumerate(header):
        numeric = all(isinstance(row[column], int | float) for row in rows)
        table.add_column(printable(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(printable(plain_number(value)) for value in row))
    # Names may look like markup or emoji, which they are not.
    Console(soft_wrap=False, highlight=False, markup=False, emoji=False).print(table)


def show_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    show_table(title, ("", ""), [(name, plain_number(value)) for name, value in facts.items()])


def show_part(part: Facts | Grid | Lines | Note | Caution) -> None:
    """A part of what a command tells: notes and warnings go to stderr."""
    match part:
        case Facts(title, facts):
            show_facts(title, facts)
        case Grid(title, header, rows):
            say("")
            show_table(title, header, rows)
        case Lines(lines):
            say("", *lines)
        case Note(text):
            say(f"Note: {text}", err=True)
        case Caution(text):
            say(f"Warning: {text}", err=True)
