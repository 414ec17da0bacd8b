"""Options that several commands share."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from fanplan.core.options import MOST, about
from fanplan.data.params import ReadParams

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.", min=0, max=MOST)]
Master = Annotated[
    str | None,
    typer.Option(help="Spark master, such as spark://host:7077.", show_default="embedded"),
]
Remote = Annotated[
    str | None, typer.Option(help="Spark Connect server, such as sc://host.", show_default="none")
]
Time = Annotated[
    float | None,
    typer.Option(help="Time limit for the search, in seconds; the best plan so far is kept."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Overwrite an earlier result at this place.")
]
Out = Annotated[Path, typer.Option(help="Folder to write; it appears complete or not at all.")]
Workload = Annotated[
    Path,
    typer.Argument(metavar="WORKLOAD", help="Workload folder, or a dataset that ingest wrote."),
]
PlanFolder = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan folder.")]
Key = Annotated[
    Path | None,
    typer.Option(help="Public key of the approver: refuse a plan that is not signed with it."),
]
LOST = next(item for item in fields(ReadParams) if item.name == "lost_limit")
LostLimit = Annotated[
    float | None, typer.Option(help=about(LOST).help, show_default=str(LOST.default))
]
Grid = Annotated[
    str | None,
    typer.Option(help="Kind of flows: exact, uniform, atomic or quantile.", show_default="exact"),
]
Cover = Annotated[str | None, typer.Option(help="Who wants a cell of a grid: overlap or full.")]
Cells = Annotated[int | None, typer.Option(help="Cells per numeric attribute; asks for a grid.")]
Rates = Annotated[str | None, typer.Option(help="Where rates come from: measured or advertised.")]
