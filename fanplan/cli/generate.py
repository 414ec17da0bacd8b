"""`fanplan generate KIND`: one command per kind, its options made from the kind's parameters."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fanplan.cli import options
from fanplan.cli.grouped import PlainCommand, PlainGroup
from fanplan.cli.run import engine
from fanplan.cli.show import show_facts, show_json
from fanplan.core.options import about
from fanplan.workload.generators import KINDS, load_kind


class Kinds(PlainGroup):
    """Kinds are imported when they are asked for, so that `fanplan --help` answers at once."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(KINDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in KINDS else None


app = typer.Typer(
    cls=Kinds, help="Generate a workload like those in the papers.", no_args_is_help=True
)


@app.callback()
def _kinds() -> None:
    """Generate a workload like those in the papers."""


def _command(name: str) -> Any:
    """The command of a kind: the common options and one per field of its parameters."""
    kind = load_kind(name)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=PlainCommand, help=f"Generate a workload: {kind.meaning}.")(
        _with_options(name, kind.params)
    )
    return typer.main.get_command(single)


def _with_options(name: str, params: type) -> Any:
    """`_generate` with a signature that lists the fields of the parameters."""

    def run(**given: Any) -> None:
        _generate(name, **given)

    common = list(inspect.signature(_generate, eval_str=True).parameters.values())[1:-1]
    own = [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=item.default,
            annotation=Annotated[type(item.default), typer.Option(help=titled(about(item).help))],
        )
        for item in fields(params)
    ]
    run.__signature__ = inspect.Signature([*common, *own])  # type: ignore[attr-defined]
    return run


def titled(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _generate(
    kind: str,
    *,
    out: options.Out,
    seed: options.Seed = 0,
    publications: Annotated[int, typer.Option(help="Publications to draw, on Spark.", min=0)] = 0,
    format: Annotated[
        Literal["parquet", "csv", "jsonl"], typer.Option(help="How tables are written.")
    ] = "parquet",
    replace: options.Replace = False,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
    **sizes: Any,
) -> None:
    from fanplan import api

    folder: Path = api.generate(
        kind,
        out,
        seed=seed,
        publications=publications,
        format=format,
        replace=replace,
        engine=engine(master, remote, json),
        **sizes,
    )
    facts = {"kind": kind, "workload": str(folder), "seed": seed, "publications": publications}
    show_json(facts) if json else show_facts("Generated", facts)
