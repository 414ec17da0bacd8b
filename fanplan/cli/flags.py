"""From options that are stated once to the flags of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from fanplan.core.options import Options, about, default_of, kinds_of, types_of

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_signature(
    run: Callable[..., None], params: type[Options], doc: str | None = None
) -> Callable[..., None]:
    """A command whose own parameters are followed by the options of a class as flags."""
    own = list(inspect.signature(run, eval_str=True).parameters.values())[:-1]

    def command(**given: Any) -> None:
        run(**given)

    given = [item.replace(kind=KEYWORD) for item in own]
    signature = inspect.Signature([*given, *option_parameters(params)])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__doc__ = doc or run.__doc__
    return command


def flags_named(params: type[Options]) -> dict[str, str]:
    """Options by the flags that set them, so that errors can name these."""
    found: dict[str, str] = {}
    for item in fields(params):
        found |= dict.fromkeys((item.name, *about(item).also), flag_of(item))
    return found


def parameter(name: str, kind: Any, default: Any = None) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, KEYWORD, default=given, annotation=kind)


def option_parameters(params: type[Options], swept: str = "") -> Iterator[inspect.Parameter]:
    """The options of a class as flags; ``swept`` may be given as a list of numbers."""
    hints = types_of(params)
    for item in fields(params):
        yield flag_parameter(item, hints[item.name], item.name == swept)


def flag_parameter(item: Field[Any], hint: Any, swept: bool) -> inspect.Parameter:
    """An option as a flag: as text where words must be read, else by its own type."""
    said, default = about(item), default_of(item)
    kinds = kinds_of(hint)
    names = [flag_of(item)]
    help = said.help + (f" [{said.unit}]" if said.unit else "")
    if kinds == (bool,):
        kind: Any = bool
        default = False
    elif said.read is not None or swept:
        kind = list[str] if said.many else str
        default = MISSING if default is MISSING else None
    else:
        kind = next((own for own in kinds if own in (int, float, Path)), str)
    asked = kind | None if default is None else kind
    shown: Any = said.shown if said.shown is not None else default not in (None, False)
    option = typer.Option(*names, help=help, metavar=said.metavar, show_default=shown)
    return parameter(item.name, Annotated[asked, option], default)


def flag_of(item: Field[Any]) -> str:
    return about(item).flag or "--" + item.name.replace("_", "-")
