"""Planning: one function for each command, made from the options that its layer states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, about, default_of, types_of
from fanplan.core.prices import PAPER, Prices
from fanplan.core.stop import Stop, Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers import command_of, plan_by
from fanplan.plan.made import Job, Planned


@dataclass(frozen=True, eq=False)
class Made:
    """A plan together with the dataset it is for."""

    planned: Planned
    dataset: Dataset
    command: Command

    @property
    def sections(self) -> tuple[Any, ...]:
        return self.planned.sections

    @property
    def section(self) -> Any:
        """The section of a plan that has one."""
        return self.planned.section

    @property
    def ended(self) -> str | None:
        """What ended the search early."""
        return self.planned.ended

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        return self.planned.summary()

    def compared(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Other ways beside the plan; without names those that the command shows."""
        return self.planned.compared(self.command.beside if names is None else names)

    def beside(self, name: str) -> list[dict[str, Any]]:
        """Further rows about the plan, by their name."""
        return self.planned.beside[name]

    def explain(self, name: str) -> list[dict[str, Any]]:
        """Why the item of that name is where it is."""
        return self.planned.explained(name)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_layers

        return save_layers(self.sections, self.dataset.path, Path(out), replace).folder


def planner(name: str) -> Callable[..., Made]:
    """The function that plans as the command of that name does."""
    command = command_of(name)

    def plan(
        dataset: Dataset,
        *first: Any,
        seed: int = 0,
        time: float | None = None,
        stop: Stop | None = None,
        explain: Iterable[str] = (),
        engine: Engine = EMBEDDED,
        **options: Any,
    ) -> Made:
        params = options_of(command, first, options)
        job = Job(dataset, seed, Watch(time, stop), engine, tuple(explain))
        planned = plan_by(name)(job, params)
        return Made(planned, dataset, command)

    plan.__name__ = plan.__qualname__ = name
    plan.__doc__ = documented(command)
    plan.__signature__ = signature_of(command)  # type: ignore[attr-defined]
    return plan


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


def signature_of(command: Command) -> inspect.Signature:
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
    common = {"seed": (int, 0), "time": (float | None, None), "stop": (Stop | None, None)}
    asked = [n for n, on in (("seed", command.seeded), ("time", command.timed)) if on]
    asked += ["stop"] if command.timed else []
    own += [
        kind(name, kind.KEYWORD_ONLY, default=common[name][1], annotation=common[name][0])
        for name in asked
    ]
    own.append(kind("engine", kind.KEYWORD_ONLY, default=EMBEDDED, annotation=Engine))
    return inspect.Signature(
        [kind("dataset", kind.POSITIONAL_OR_KEYWORD, annotation=Dataset), *own],
        return_annotation=Made,
    )


def keyword_type(hint: Any) -> Any:
    """Prices may be given as a mapping."""
    if isinstance(hint, type) and issubclass(hint, Prices):
        return hint | Mapping[str, float]
    return hint
