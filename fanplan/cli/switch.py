"""`fanplan switch OLD NEW`: another plan while messages flow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fanplan.cli import options
from fanplan.cli.show import say, show_facts, show_json
from fanplan.core.progress import progress


def switch(
    old: Annotated[Path, typer.Argument(help="The export that is in force.")],
    new: Annotated[Path, typer.Argument(help="The export to go to, of the same brokers.")],
    servers: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the configuration files that the servers run with.",
            show_default="known",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds to wait for an answer before going on without it.", min=0.1),
    ] = 30.0,
    json: options.Json = False,
) -> None:
    """Take running applications and NATS servers from one export to another, losing nothing."""
    from fanplan import api

    found = api.switch(old, new, servers=servers, timeout=timeout, progress=progress(json))
    if json:
        show_json(found.json())
        return
    if not found.applied:
        say(f"Plan {found.new} is in force already.")
        return
    told = {key: value for key, value in found.json().items() if isinstance(value, int | str)}
    show_facts("Switched", {key.replace("_", " "): value for key, value in told.items()})
    for who in found.passed:
        say(f"Passed over: {who}.")
    for broker in found.disturbed:
        say(f"Its server failed meanwhile: {broker}.")
