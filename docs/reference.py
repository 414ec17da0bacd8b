"""Writes what the documentation says of the code from the code.

That is docs/api.md, the reference of the Python interface; the tables of options on the pages of
layers; the stages of a dataset in docs/dataset.md; and fanplan/api.pyi, the types of the planning
functions, whose keywords are the options that layers state. `make docs` runs it, and a test sees to
it that nothing is behind the code.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args

import fanplan
from fanplan import api
from fanplan.cli.flags import flag_of
from fanplan.core.options import Options, about, default_of, types_of
from fanplan.core.tables import Column, Table
from fanplan.data.tables import STAGES
from fanplan.layers import LAYERS, command_of, commands
from fanplan.workload.generators import KINDS, load_kind
from fanplan.workload.tables import INPUT_TABLES

PAGE = Path(__file__).parent / "api.md"
INTRODUCTION = """# Python interface

`import fanplan` gives the functions below, and takes no time until one of them is used. Datasets
and plans may be given as objects or as paths, tables as files or as frames. Whatever a function
returns shows itself in a short line, in a notebook as a small table with a picture, and has
`summary()` and `json()`. Keywords that are None are taken as not given.

What goes wrong raises a `fanplan.core.errors.FanplanError`, also if Spark or the disk fails. It
has `problems`, each with the item, what is wrong and what to do about it, and an `exit_code`: 2
for `InputError`, 3 for `MachineError` (see [failures](failures.md)). `make docs` writes this page
from the code.
"""
VERBS = {
    "Data": (
        "generate", "observe_nats", "observe_pcap", "observe_graphml",
        "ingest", "quarantine", "open_dataset", "as_dataset", "Dataset", "Quarantine",
        "Engine",
    ),
    "Plans": (
        "design", "channels", "overlay", "allocate", "groups", "mark", "mesh", "Made", "curve",
        "Curve", "open_plan", "Plan", "Questions",
    ),
    "Proof": (
        "check", "replan", "sign", "new_key",
        "replay", "replay_marks", "simulate", "churn", "Simulated", "Churned",
    ),
    "Systems": ("export", "Exported", "trial", "switch"),
    "Change": ("compare", "diff", "apply_check", "watch", "Watched"),
    "Report": ("report", "Report"),
}  # fmt: skip
ANSWERS = {
    "fanplan.plan.findings": ("CheckResult",),
    "fanplan.plan.replayed": ("Replayed",),
    "fanplan.layers.groups.replayed": ("ReplayedGroups",),
    "fanplan.layers.marking.replayed": ("ReplayedMarks",),
    "fanplan.layers.delivery.replayed": ("ReplayedDelivery",),
    "fanplan.systems.trial": ("Tried", "Row"),
    "fanplan.live.switch": ("SwitchReport",),
    "fanplan.systems.observed.tables": ("Observed",),
    "fanplan.verbs.compare": ("Comparison",),
    "fanplan.verbs.diff": ("Diff",),
    "fanplan.verbs.drift": ("Verdict",),
    "fanplan.core.result": ("Result",),
    "fanplan.core.errors": (
        "FanplanError",
        "InputError",
        "InfeasibleError",
        "CheckError",
        "Problem",
    ),
}
"""What verbs return and raise, beside what `fanplan` has itself."""


def page() -> str:
    """The whole page."""
    told = [INTRODUCTION]
    for title, names in VERBS.items():
        told.append(f"## {title}\n")
        told += [entry(name, getattr(fanplan, name)) for name in names]
    told.append("## Answers and errors\n")
    for module, names in ANSWERS.items():
        own = importlib.import_module(module)
        told += [entry(f"{module}.{name}", getattr(own, name)) for name in names]
    return "\n".join(told)


def entry(name: str, what: Any) -> str:
    """A function, or a class with its methods."""
    if not inspect.isclass(what):
        return f"### {name}\n\n```python\n{signature(what)}\n```\n\n{described(what)}\n"
    own = "\n".join(members(what))
    return f"### {name}\n\n{described(what)}\n" + (f"\n{own}\n" if own else "")


def members(cls: type) -> Iterator[str]:
    """Methods and properties that are public and explained."""
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        shown = name if isinstance(member, property) else signature(function).removeprefix("def ")
        yield f"- `{' '.join(shown.split())}`: {' '.join(described(function).split())}"


def signature(function: Any) -> str:
    """As it stands in the source, without a body; of a planning function, as layers state it."""
    if hasattr(function, "__signature__"):
        return planning_signature(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list, tree.body = [], []
    one = ast.unparse(tree).rstrip(":")
    if len(one) <= 100:
        return one
    head, _, back = one.rpartition(" -> ")
    start = head.index("(") + 1
    given = ast.unparse(tree.args)
    lines = ",\n".join(f"    {part}" for part in separated(given))
    return f"{head[:start]}\n{lines},\n) -> {back}"


def separated(arguments: str) -> Iterator[str]:
    """Arguments one by one: commas inside brackets separate none."""
    depth, begun = 0, 0
    for at, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            yield arguments[begun:at].strip()
            begun = at + 1
    yield arguments[begun:].strip()


def described(what: Any) -> str:
    """The docstring in the marks of the page."""
    return (inspect.getdoc(what) or "").replace("``", "`")


# ---- options


OPTION_PAGES = {
    "channels": "channels",
    "overlay": "overlay",
    "allocate": "allocation",
    "groups": "groups",
    "mark": "marking",
    "mesh": "mesh",
    "design": "design",
}
"""Commands by the pages that have their options."""

MARKS = re.compile(r"<!-- options: (\S+) -->\n.*?<!-- end of options -->", re.DOTALL)


def with_options(text: str) -> str:
    """A page with its tables of options as the code states them."""
    return MARKS.sub(lambda found: option_table(found.group(1)), text)


def option_table(name: str) -> str:
    """The options of a command: flag, default, meaning; an inherited option is not told again."""
    command = command_of(name)
    inherited = {item.name for own in command.params.__mro__[1:] if own is not Options
                 and issubclass(own, Options) for item in fields(own)}  # fmt: skip
    rows = [
        f"| `{flag_of(item)}` | {default_told(item)} | {about(item).help} |"
        for item in fields(command.params)
        if item.name not in inherited and item.name != "prices"
    ]
    prices = types_of(command.params).get("prices")
    if prices is not None and "prices" not in inherited:
        rows += [
            f"| `--price {item.name}=VALUE` | {item.default:g} | {about(item).help} |"
            for item in fields(prices)
        ]
    table = "\n".join(("| option | default | meaning |", "| --- | --- | --- |", *rows))
    return f"<!-- options: {name} -->\n{table}\n<!-- end of options -->"


def default_told(item: Field[Any]) -> str:
    said, default = about(item), default_of(item)
    if said.shown:
        return said.shown
    if default is MISSING:
        return "must be given"
    plain = default is None or isinstance(default, bool) or default in ((), {})
    return "" if plain else f"`{default}`"


# ---- stages


STAGE_MARKS = re.compile(r"(<!-- stages: (\w+) -->\n).*?(<!-- end of stages -->)", re.DOTALL)


def with_stages(text: str) -> str:
    """The page on datasets with its tables as the code describes them."""
    derived = {name: layer_stages(name) for name in LAYERS}
    tables = [*STAGES, *(table for own in derived.values() for table in own)]
    made = [table for table in tables if table not in INPUT_TABLES]
    where: dict[tuple[str, ...], list[str]] = {}
    for table in made:
        for column in table.columns:
            where.setdefault(column_row(column), []).append(f"`{table.name}`")
    found = {
        "ingest": [("stage", "what is in it", "columns"), *map(stage_row, STAGES)],
        "layers": [
            ("layer", "stage", "what is in it", "columns"),
            *((name, *stage_row(table)) for name, own in derived.items() for table in own),
        ],
        "columns": [
            ("column", "type", "meaning", "in"),
            *((*row, ", ".join(stages)) for row, stages in where.items()),
        ],
    }
    return STAGE_MARKS.sub(lambda mark: f"{mark[1]}{as_table(found[mark[2]])}{mark[3]}", text)


def layer_stages(name: str) -> tuple[Table, ...]:
    """The stages that a layer makes when it first needs them; some need none."""
    place = f"fanplan.layers.{name}"
    if importlib.util.find_spec(f"{place}.stages") is None:
        return ()
    return getattr(importlib.import_module(f"{place}.stages.tables"), "STAGES", ())


def stage_row(table: Table) -> tuple[str, ...]:
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    if table in INPUT_TABLES:
        columns = "as [the input table](workload.md)"
    return f"`{table.name}`", table.meaning, columns


def column_row(column: Column) -> tuple[str, ...]:
    unit = f" ({column.unit})" if column.unit else ""
    return column.name, column.type, f"{column.meaning}{unit}"


def as_table(rows: list[tuple[str, ...]]) -> str:
    """The first row is that of the titles."""
    lines = (rows[0], ("---",) * len(rows[0]), *rows[1:])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# ---- types


STUB = Path(fanplan.__path__[0]) / "api.pyi"
TYPED = """from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from fanplan.core.prices import LedgerPrices
from fanplan.core.stop import Stop
from fanplan.data.engine import EMBEDDED
from fanplan.layers.channels.params import ChannelPrices
from fanplan.layers.groups.params import GroupPrices
from fanplan.layers.marking.params import MarkingPrices
from fanplan.layers.overlay.params import LinkPrices
from fanplan.workload.generators.generated import TableFormat
"""


OWN_TYPES = re.compile(r", curve\b| generate,")
"""What is not passed on as it is, but with types of its own."""


def stub() -> str:
    """The interface with the types of all keywords: written, so that type checkers see them."""
    passed = [OWN_TYPES.sub("", f"from {a} import {b}") for a, b in api.PLACES.items()]  # type: ignore[attr-defined]
    typed = [*(c.name for c in commands()), "curve"]
    functions = [planning_signature(getattr(fanplan, name)) + ": ..." for name in typed]
    functions += generating()
    names = ["__all__ = [", *(f'    "{name}",' for name in api.__all__), "]"]
    return "\n".join((TYPED, *passed, "", *functions, "", *names, ""))


def planning_signature(function: Any) -> str:
    """A planning function with its keywords, one a line."""
    lines, keyword = [], False
    given = inspect.signature(function)
    for item in given.parameters.values():
        if item.kind is item.KEYWORD_ONLY and not keyword:
            lines.append("    *,")
            keyword = True
        default = "" if item.default is item.empty else f" = {default_word(item.default)}"
        lines.append(f"    {item.name}: {type_word(item.annotation)}{default},")
    inner = "\n".join(lines)
    return f"def {function.__name__}(\n{inner}\n) -> {type_word(given.return_annotation)}"


def generating() -> Iterator[str]:
    """`generate` with the sizes of each kind as its keywords; a kind known only later takes any."""
    own = inspect.signature(fanplan.generate).parameters
    common = [f"    {n}: {p.annotation} = ...," for n, p in own.items() if n in GENERATING]
    for kind in KINDS:
        params = load_kind(kind).params
        sizes = [f"    {item.name}: {type_word(types_of(params)[item.name])} = {item.default!r},"
                 for item in fields(params)]  # fmt: skip
        head = f'    kind: Literal["{kind}"],\n    out: str | Path,\n    *,'
        yield "\n".join(("@overload\ndef generate(", head, *common, *sizes, ") -> Path: ..."))
    head = "    kind: str,\n    out: str | Path,\n    *,"
    yield "\n".join(
        ("@overload\ndef generate(", head, *common, "    **sizes: float,", ") -> Path: ...")
    )


GENERATING = ("seed", "publications", "format", "replace", "engine")


def default_word(value: Any) -> str:
    if isinstance(value, Options):
        return "..."
    return "EMBEDDED" if isinstance(value, fanplan.Engine) else repr(value)


def type_word(kind: Any) -> str:
    """A type as it is written in source."""
    text = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    text = re.sub(r"\b(?:typing|collections\.abc|pathlib|builtins)\.", "", text)
    text = re.sub(r"\bfanplan(?:\.\w+)*\.", "", text)
    return re.sub(r"Optional\[(.*)\]$", r"\1 | None", text).replace("NoneType", "None")


def written() -> dict[Path, str]:
    """Every file that is written from the code, and what must stand in it."""
    found = {PAGE: page(), STUB: stub()}
    for name in OPTION_PAGES.values():
        path = PAGE.with_name(f"{name}.md")
        found[path] = with_options(path.read_text(encoding="utf-8"))
    dataset = PAGE.with_name("dataset.md")
    found[dataset] = with_stages(dataset.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
