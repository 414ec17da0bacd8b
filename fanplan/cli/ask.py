"""`fanplan ask`: questions to a plan, answered in a table."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.show import say, show_json, show_table
from fanplan.core.errors import InputError, Problem, similar

if TYPE_CHECKING:
    from pyarrow import Table

    from fanplan.verbs.ask import Questions

Question = Annotated[
    str | None,
    typer.Argument(metavar="QUESTION", help="What to ask; without it, what can be asked."),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORD]…", help="What the question is about, in order or as NAME=VALUE."
    ),
]
OfPlan = Annotated[
    Path | None, typer.Option(metavar="DATASET", help="Dataset that the plan was made for.")
]
Against = Annotated[
    Path | None, typer.Option(metavar="PLAN", help="Another plan to compare the answer with.")
]
Rows = Annotated[int, typer.Option(help="Rows to show at most; --json has all of them.", min=1)]

USAGE = {
    "receivers": "TOPIC [ATTRIBUTE=VALUE]… [publisher=NAME]",
    "path": "PUBLISHER SUBSCRIBER",
    "why": "FLOW|TOPIC",
    "unwanted": "[subscriber|channel]",
    "bottlenecks": "",
    "without": "broker=NAME|link=BROKER,BROKER",
    "if_traffic": "TOPIC times=FACTOR",
    "cheapest_change": "[NUMBER]",
}
"""What stands after each question."""


def ask(
    plan: options.PlanFolder,
    question: Question = None,
    words: Words = None,
    workload: OfPlan = None,
    against: Against = None,
    rows: Rows = 20,
    json: options.Json = False,
) -> None:
    """Ask a plan who gets what and how, what arrives unwanted, and what would happen if."""
    from fanplan import api
    from fanplan.verbs.ask import QUESTIONS

    if question is None and json:
        show_json({"questions": QUESTIONS})
        return
    if question is None:
        told = [(f"{name} {USAGE[name]}".strip(), answer) for name, answer in QUESTIONS.items()]
        show_table("Questions", ("question", "answer"), told)
        say("Ask: fanplan ask PLAN QUESTION … --workload DATASET", err=True)
        return
    question = question.replace("-", "_")
    if question not in QUESTIONS:
        remedy = similar(question, list(QUESTIONS)) or f"Ask one of: {', '.join(QUESTIONS)}"
        raise InputError(Problem("QUESTION", f"{question!r} is not known", remedy))
    if workload is None:
        what = "an answer needs the dataset that the plan was made for"
        raise InputError(Problem("--workload", what, "Name it: --workload DATASET"))
    asked = api.open_plan(plan).ask(workload, "arrow")
    given = keywords_of(asked, question, words or [])
    if against is not None:
        given["against"] = api.open_plan(against)
    answer = getattr(asked, question)(**given)
    if json:
        show_json({"question": question, "rows": answer.to_pylist()})
        return
    told = answer.select(telling(answer)).slice(0, rows)
    table = [["" if value is None else value for value in row.values()] for row in told.to_pylist()]
    show_table(question, [name.replace("_", " ") for name in told.column_names], table)
    if answer.num_rows > rows:
        say(f"{answer.num_rows - rows:,} more rows: --rows {answer.num_rows}", err=True)


def telling(answer: Table) -> list[str]:
    """Columns worth their place on a screen: not empty, and beside another answer what differs."""
    names = answer.column_names
    left = {name for name in names if answer[name].null_count == answer.num_rows}
    for name in names:
        for word in ("now", "other"):
            if f"{name}_{word}" in names and answer[name].equals(answer[f"{name}_{word}"]):
                between = f"{name}_{word}_change"
                left |= {f"{name}_{word}", between if between in names else f"{name}_change"}
    return [name for name in names if name not in left] if answer.num_rows else names


def keywords_of(asked: Questions, question: str, words: list[str]) -> dict[str, Any]:
    """Words as the keywords of a question; what else is named is an attribute of a message."""
    known = inspect.signature(getattr(asked, question)).parameters
    names = [name for name in known if name not in ("against", "attributes")]
    given: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            free = [n for n in names if n not in given]
            if not free:
                remedy = f"It takes {' and '.join(names) or 'nothing'}"
                raise InputError(Problem(question, f"{word!r} is too much", remedy))
            given[free[0]] = word
        elif name in names:
            given[name] = value
        elif "attributes" in known:
            attributes[name] = number_or_text(value)
        else:
            remedy = similar(name, names) or f"It takes {' and '.join(names) or 'nothing'}"
            raise InputError(Problem(question, f"{name!r} is not known", remedy))
    missing = [n for n in names if known[n].default is inspect.Parameter.empty and n not in given]
    if missing:
        what = f"{missing[0]} is missing"
        remedy = f"fanplan ask PLAN {question} {USAGE[question]}"
        raise InputError(Problem(question, what, remedy))
    if attributes:
        given["attributes"] = attributes
    return {name: typed_word(name, value) for name, value in given.items()}


def typed_word(name: str, value: Any) -> Any:
    """Factors and counts are numbers."""
    if name in ("times", "n"):
        try:
            return float(value) if name == "times" else int(value)
        except ValueError:
            raise InputError(Problem(name, f"{value!r} is not a number", f"Use {name}=2")) from None
    return value


def number_or_text(text: str) -> str | float:
    """An attribute is a number where it can be one."""
    try:
        return float(text)
    except ValueError:
        return text
