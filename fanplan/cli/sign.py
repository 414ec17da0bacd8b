"""`fanplan sign`: approve a plan for whoever applies it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fanplan.cli import options
from fanplan.cli.show import say, show_json
from fanplan.core.errors import InputError, Problem


def sign(
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN", help="Plan folder.")] = None,
    key: Annotated[Path | None, typer.Option(help="Private key to sign with.")] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(help="Make a pair of keys first: FILE, for you alone, and FILE.pub."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Sign a plan, so that `--key` of other commands accepts just this plan."""
    from fanplan import api

    if new_key is None and (plan is None or key is None):
        what = "there is nothing to sign, or nothing to sign with"
        raise InputError(Problem("sign", what, "Write `fanplan sign PLAN --key FILE`"))
    told: dict[str, str] = {}
    if new_key is not None:
        told |= {"private": str(new_key), "public": str(api.new_key(new_key))}
    if plan is not None:
        told["signature"] = str(api.sign(plan, key or new_key or ""))
    if json:
        show_json(told)
    else:
        for name, path in told.items():
            say(f"{name.capitalize()} key: {path}" if name != "signature" else f"Signed: {path}")
