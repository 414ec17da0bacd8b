"""What commands print: one JSON object, or a small table for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer


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
        table.add_row(*(number(value) for value in row))
    Console(soft_wrap=False, highlight=False).print(table)


def show_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    show_table(title, ("", ""), [(name, number(value)) for name, value in facts.items()])


def number(value: Any) -> str:
    """A value as a person writes it: whole numbers with separators, others with few digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
