"""Writes docs/api.md, the reference of the Python interface, from signatures and docstrings.

`make docs` runs it, and a test sees to it that the page is not behind the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fanplan

PAGE = Path(__file__).parent / "api.md"
INTRODUCTION = """# Python interface

`import fanplan` gives the verbs below; it costs nothing until one is used. Errors are
`fanplan.core.errors.FanplanError`: `InputError` has `problems`, each with the item, what is wrong
and the remedy. This page is written by `make docs` from the code.
"""
VERBS = {
    "Data": ("generate", "ingest", "open_dataset", "as_dataset", "Dataset", "Engine"),
    "All layers": ("design", "Design"),
    "One layer": (
        "channels", "compare_methods", "curve", "ChannelPlan", "Curve", "overlay", "allocate",
        "compare_trees", "OverlayPlan", "groups", "GroupsPlan", "mark", "MarkingPlan",
    ),
    "Proof": (
        "check", "replay", "replay_marks", "simulate", "churn", "Simulated", "Churned",
    ),
    "Change": ("compare", "diff", "apply_check"),
    "Report": ("report", "Report"),
}  # fmt: skip
ANSWERS = {
    "fanplan.plan.findings": ("CheckResult",),
    "fanplan.plan.replayed": ("Replayed",),
    "fanplan.verbs.compare": ("Comparison",),
    "fanplan.verbs.diff": ("Diff",),
    "fanplan.verbs.drift": ("Verdict",),
    "fanplan.core.errors": ("FanplanError", "InputError", "CheckError", "Problem"),
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
    """As it stands in the source, without a body."""
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
