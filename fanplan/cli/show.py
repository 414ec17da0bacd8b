"""What commands print: one JSON object, or a small table for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from fanplan.core.errors import printable
from fanplan.plan.made import Caution, Facts, Grid, Lines, Note, plain_number


def show_json(content: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(content, allow_nan=False))


def show_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout: text to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column, name in enumerate(header):
        numeric = all(isinstance(row[column], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(printable(plain_number(value)) for value in row))
    # Names may look like markup, which they are not.
    Console(soft_wrap=False, highlight=False, markup=False).print(table)


def show_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    show_table(title, ("", ""), [(name, plain_number(value)) for name, value in facts.items()])


def show_part(part: Facts | Grid | Lines | Note | Caution) -> None:
    """A part of what a command tells: notes and warnings go to stderr."""
    match part:
        case Facts(title, facts):
            show_facts(title, facts)
        case Grid(title, header, rows):
            typer.echo()
            show_table(title, header, rows)
        case Lines(lines):
            typer.echo()
            typer.echo("\n".join(map(printable, lines)))
        case Note(text):
            typer.echo(f"Note: {printable(text)}", err=True)
        case Caution(text):
            typer.echo(f"Warning: {printable(text)}", err=True)
