"""Options that a layer states, as the keywords of a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, about, default_of, types_of
from fanplan.core.prices import PAPER, Prices
from fanplan.core.stop import Stop
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine


def options_of(command: Command, first: tuple[Any, ...], given: Mapping[str, Any]) -> Options:
    """The options of a call: the first of them may stand without its name."""
    known = [item.name for item in fields(command.params)]
    if len(first) > 1:
        what = f"{len(first)} values have no name"
        raise InputError(Problem(command.name, what, f"Write {known[0]}= and so on"))
    values = with_prices(command.params, dict(zip(known, first, strict=False)) | dict(given))
    return command.params.given(values, command.renamed)


def with_prices(params: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Prices by their names, as a mapping or by the names that Bickson et al. gave them."""
    values = {name: value for name, value in given.items() if value is not None}
    kind = types_of(params).get("prices")
    if kind is None:
        return values
    named = values.get("prices", {})
    if isinstance(named, Mapping):
        old = {name: values.pop(name) for name in PAPER if name in values}
        values["prices"] = kind.named({**named, **old})
    return values


def documented(command: Command) -> str:
    """What a command does, and what can be asked of it."""
    lines = [f"    {item.name}: {about(item).help}" for item in fields(command.params)]
    return "\n".join([command.help, "", "Options:", *lines])


def curve_signature(command: Command, returned: type) -> inspect.Signature:
    """As the command's, with numbers of what is swept in its place."""
    one = signature_of(command, returned)
    kind = inspect.Parameter
    numbers = kind("numbers", kind.POSITIONAL_OR_KEYWORD, annotation=Sequence[int])
    rest = [numbers if p.name == command.swept else p for p in one.parameters.values()]
    return one.replace(parameters=rest)


def signature_of(command: Command, returned: type) -> inspect.Signature:
    """The keywords of a planning function, each with its type and default."""
    kind = inspect.Parameter
    own = []
    hints = types_of(command.params)
    for place, item in enumerate(fields(command.params)):
        default = default_of(item)
        own.append(
            kind(
                item.name,
                kind.POSITIONAL_OR_KEYWORD if place == 0 else kind.KEYWORD_ONLY,
                default=kind.empty if default is MISSING else default,
                annotation=keyword_type(hints[item.name]),
            )
        )
    prices = {item.name for item in fields(hints["prices"])} if "prices" in hints else set()
    if prices >= set(PAPER.values()):
        own += [
            kind(name, kind.KEYWORD_ONLY, default=None, annotation=float | None) for name in PAPER
        ]
    common = {"seed": (int, 0), "time": (float | None, None), "stop": (Stop | None, None)}
    asked = [n for n, on in (("seed", command.seeded), ("time", command.timed)) if on]
    asked += ["stop"] if command.timed else []
    own += [
        kind(name, kind.KEYWORD_ONLY, default=common[name][1], annotation=common[name][0])
        for name in asked
    ]
    own.append(kind("engine", kind.KEYWORD_ONLY, default=EMBEDDED, annotation=Engine))
    return inspect.Signature(
        [kind("dataset", kind.POSITIONAL_OR_KEYWORD, annotation=Dataset | PathLike), *own],
        return_annotation=returned,
    )


def keyword_type(hint: Any) -> Any:
    """Prices may be given as a mapping."""
    if isinstance(hint, type) and issubclass(hint, Prices):
        return hint | Mapping[str, float]
    return hint
