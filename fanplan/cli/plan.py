"""The commands that plan: one maker for all of them, from the options that layers state."""

from __future__ import annotations

import inspect
import time as clock
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options as common
from fanplan.cli.flags import flags_named, option_parameters, parameter
from fanplan.cli.run import engine, named_by_flag, rehearsing
from fanplan.cli.show import show_json, show_part
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import CURVE, PLAN, claimed
from fanplan.core.options import Command, about, types_of
from fanplan.core.prices import PAPER
from fanplan.data.params import ReadParams
from fanplan.layers import commands
from fanplan.plan.made import Answer, Note

if TYPE_CHECKING:
    from fanplan.data.dataset import Dataset
    from fanplan.data.engine import Engine

NOTHING = "none"


def add_planning(app: typer.Typer) -> None:
    """A command for each that layers have."""
    for command in commands():
        app.command(command.name, help=command.help)(with_options(command))


def with_options(command: Command) -> Callable[..., None]:
    """A function whose signature lists the options of a command."""

    def run(**given: Any) -> None:
        with named_by_flag(flags_of(command)):
            refuse_renamed(command, given)
            run_plan(command, given)

    run.__signature__ = inspect.Signature(list(flag_parameters(command)))  # type: ignore[attr-defined]
    return run


# ---- from options to flags


def flag_parameters(command: Command) -> Iterator[inspect.Parameter]:
    """What the command line takes: the options of the layer, then those of all commands."""
    yield parameter("workload", common.Workload, MISSING)
    yield parameter("out", common.Out, MISSING)
    yield from option_parameters(command.params, command.swept)
    if command.compare:
        words = f"{command.compare_help}; or {NOTHING}."
        option = typer.Option(help=words, show_default=command.compare)
        yield parameter("compare", Annotated[str | None, option])
    if command.explains:
        yield parameter("explain", Annotated[list[str] | None, typer.Option(help=command.explains)])
    if command.timed:
        yield parameter("time", common.Time)
    if command.seeded:
        yield parameter("seed", common.Seed, 0)
    yield parameter("lost_limit", common.LostLimit)
    yield parameter("replace", common.Replace, False)
    yield parameter("json", common.Json, False)
    yield parameter("master", common.Master)
    yield parameter("remote", common.Remote)
    for old in hidden(command):
        option = typer.Option(f"--{old.rstrip('_').replace('_', '-')}", hidden=True)
        kind: Any = float if old in PAPER else str
        yield parameter(old, Annotated[kind | None, option])


def flags_of(command: Command) -> dict[str, str]:
    """Options by the flags that set them, so that errors can name these."""
    common_flags = {name: f"--{name}" for name in ("compare", "explain", "time", "seed")}
    return flags_named(command.params) | flags_named(ReadParams) | common_flags


def hidden(command: Command) -> list[str]:
    """Older flags, to be refused with the new spelling, and the papers' names of prices."""
    papers = [name for name, price in PAPER.items() if price in price_names(command)]
    return [*papers, *renamed_flags(command)]


def renamed_flags(command: Command) -> dict[str, str]:
    """Older flags, and what is written now."""
    found = {"prices_": "--price NAME=VALUE"} if price_names(command) else {}
    flags = flags_of(command)
    for old, new in command.renamed.items():
        field, _, price = new.partition(".")
        found[old] = f"{flags[field]} {price}=VALUE" if price else flags[field]
    return found


def price_names(command: Command) -> list[str]:
    prices = types_of(command.params).get("prices")
    return [] if prices is None else [item.name for item in fields(prices)]


def refuse_renamed(command: Command, given: dict[str, Any]) -> None:
    for old, new in renamed_flags(command).items():
        if given.pop(old, None) is not None:
            flag = "--" + old.rstrip("_").replace("_", "-")
            raise InputError(Problem(flag, f"is now {new}", f"Write {new}"))


# ---- running a command


def run_plan(command: Command, given: dict[str, Any]) -> None:
    """Plan, save, and show what was decided beside what it is compared with."""
    from fanplan.core.stop import Interrupt
    from fanplan.verbs.datasets import as_dataset
    from fanplan.verbs.keywords import options_of
    from fanplan.verbs.plan import require_plan_room

    call = Call.of(command, given)
    command.comparable(call.compare)
    options_of(command, (), call.options)  # Refused before a workload is ingested.
    with (
        claimed(call.out, CURVE if call.numbers else PLAN, call.replace),
        rehearsing() if command.rehearsed else nullcontext(),
        as_dataset(call.workload, call.engine, {"lost_limit": call.lost_limit}) as dataset,
        Interrupt() as stop,
    ):
        require_plan_room(dataset.path, call.out)
        job = call.job | ({"stop": stop} if command.timed else {}) | {"engine": call.engine}
        run_curve(call, dataset, job) if call.numbers else run_one(call, dataset, job)


@dataclass(frozen=True)
class Call:
    """A command as it was given: where from and to, its options, and what to show beside it."""

    command: Command
    workload: Path
    out: Path
    lost_limit: float | None
    replace: bool
    json: bool
    engine: Engine
    job: dict[str, Any]
    options: dict[str, Any]
    compare: list[str]
    explain: list[str]
    numbers: list[int]

    @classmethod
    def of(cls, command: Command, given: dict[str, Any]) -> Call:
        names = ("workload", "out", "lost_limit", "replace", "json")
        rest = {name: value for name, value in given.items() if name not in names}
        run = engine(rest.pop("master"), rest.pop("remote"), given["json"])
        compare, explain = rest.pop("compare", None), rest.pop("explain", None) or []
        asked = [name for name in rest if name in ("seed", "time")]
        job = {name: rest.pop(name) for name in asked}
        numbers, options = swept(command, read_words(command, rest))
        single = {"--compare": compare, "--explain": explain, "--from": options.get("start")}
        flag = next((flag for flag, given in single.items() if given), None)
        if numbers and flag:
            what = "is for one plan, not for a curve"
            raise InputError(Problem(flag, what, f"Give one number of {command.swept}"))
        beside = compare.split(",") if compare else command.beside
        return cls(
            command=command,
            workload=given["workload"],
            out=given["out"],
            lost_limit=given["lost_limit"],
            replace=given["replace"],
            json=given["json"],
            engine=run,
            job=job,
            options=options,
            compare=[] if compare == NOTHING else beside,
            explain=explain,
            numbers=numbers,
        )


def read_words(command: Command, given: dict[str, Any]) -> dict[str, Any]:
    """Values of options from what was typed; what was not typed is left to its default."""
    values = {name: given[name] for name in PAPER if given.get(name) is not None}
    for item in fields(command.params):
        said, value = about(item), given[item.name]
        if value is None or value == []:
            continue
        if said.read is not None:
            value = said.read(value)
        elif types_of(command.params)[item.name] is bool:
            # A flag turns its option away from the default.
            value = bool(value) != item.default
        values[item.name] = value
    return values


def swept(command: Command, values: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    """Several values of the option that gives a curve, or else none."""
    if not command.swept:
        return [], values
    text = values[command.swept]
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        what = f"{text!r} is not a number, nor a list of numbers"
        raise InputError(Problem(command.swept, what, "Write, say, 100 or 10,20,50")) from None
    require_different(command, numbers)
    return numbers if len(numbers) > 1 else [], values | {command.swept: numbers[0]}


def require_different(command: Command, numbers: list[int]) -> None:
    """Of a curve each number once."""
    if len(set(numbers)) < len(numbers):
        what = f"a curve needs different numbers of {command.swept}"
        raise InputError(Problem(command.swept, what, "Give each number once, such as 10,20,50"))


def run_one(call: Call, dataset: Dataset, job: dict[str, Any]) -> None:
    from fanplan.verbs.plan import planner

    began = clock.perf_counter()
    explain = {"explain": call.explain} if call.explain else {}
    made = planner(call.command.name)(dataset, **job, **explain, **call.options)
    made.save(call.out, call.replace)
    facts = made.summary() | {"seconds": clock.perf_counter() - began}
    compared = made.compared(call.compare)
    explained = [row for name in call.explain for row in made.explain(name)]
    shown_by = call.command.part("show").SHOWS
    answer = Answer(facts | {"plan": str(call.out)}, compared, made.planned.beside, explained)
    for part in shown_by[call.command.name](answer):
        if not call.json or isinstance(part, Note):
            show_part(part)
    for note in dataset.manifest.notes:
        show_part(Note(note))
    if call.json:
        told = {"compared": compared} if call.command.compare or compared else {}
        told |= {"explained": explained} if call.command.explains else {}
        show_json({**facts, **told, **made.planned.beside})


def run_curve(call: Call, dataset: Dataset, job: dict[str, Any]) -> None:
    from fanplan.verbs.curve import curve

    options = {name: v for name, v in call.options.items() if name != call.command.swept}
    made = curve(dataset, call.numbers, **job, **options)
    made.save(call.out, call.replace)
    if call.json:
        show_json(made.json())
        return
    for part in made.shown(str(call.out)):
        show_part(part)
