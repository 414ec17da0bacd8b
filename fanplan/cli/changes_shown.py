"""Comparisons, changes and drift as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fanplan.cli.show import say, show_table
from fanplan.core.result import plain_number
from fanplan.layers.registry import all_layers, load_layer
from fanplan.plan.drift import LayerNow, Moved
from fanplan.plan.steps import Staged
from fanplan.verbs.compare import Comparison
from fanplan.verbs.diff import Diff, layer_of_actions
from fanplan.verbs.drift import PLAN_ANEW, Verdict

SHOWN = 24
"""Steps that a person is shown before the middle is left out."""

NUMBERS = 12
"""Running numbers that a person is shown."""

MOST_COLUMNS = 6
"""Actions that have a column each."""


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"Note: {note}", err=True)


# ---- compare


def show_comparison(found: Comparison) -> None:
    for layer in dict.fromkeys(line.layer for line in found.lines):
        lines = [line for line in found.lines if line.layer == layer]
        cells = [[marked(v, i in line.best) for i, v in enumerate(line.values)] for line in lines]
        header, *rows = aligned(
            ["", *(line.name.replace("_", " ") for line in lines)],
            [[f"{name}  " for name in found.plans], *cells],
        )
        show_table(layer.capitalize(), header, rows)
        say("")
    if found.differing:
        rows = [
            [name, *("-" if value is None else clipped(str(value)) for value in values)]
            for name, values in found.differing.items()
        ]
        show_table("Parameters that differ", ("", *found.plans), rows)
    say_notes(found.notes)


def clipped(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def marked(value: float | None, best: bool) -> str:
    return ("-" if value is None else plain_number(value)) + (" *" if best else "  ")


def aligned(names: list[str], cells: list[list[str]]) -> list[list[str]]:
    """Names with their cells, these under each other to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        [name, *(cell.rjust(width) for cell, width in zip(row, widths, strict=True))]
        for name, row in zip(names, cells, strict=True)
    ]


# ---- diff


def show_diff(found: Diff) -> None:
    if not found.total:
        say("Nothing changes.")
        return
    of = layer_of_actions()
    rows = [
        (of[action], action, done[action], meaning)
        for layer in found.layers
        for done in (layer.counts(),)
        for action, meaning in meanings().items()
        if action in done
    ]
    show_table("Changes", ("layer", "action", "changes", "meaning"), rows)
    for layer in found.layers:
        show_modes(layer)
    steps = list(found.steps())
    for layer in found.layers:
        show_running(layer)
        show_steps(layer, [step for step in steps if step["layer"] == layer.layer])
        say_notes(layer.notes)
    say_notes(found.notes)
    for text in (text for layer in found.layers for s in layer.states for text in s.broken):
        say(f"A state on the way does not hold: {text}")
    if found.ok:
        say("Every step holds. To go back, undo the steps from the last to the first.")


def meanings() -> dict[str, str]:
    """What is done by each action, layer by layer."""
    return {action: said for layer in all_layers() for action, said in layer.actions.items()}


def show_modes(layer: Staged) -> None:
    """How many classes change the way in which they are delivered."""
    if layer.modes is None:
        return
    say("")
    if not layer.modes:
        say("No class changes between channel, last hop and direct.")
        return
    rows = [[m.before, m.after, m.classes, m.flows, m.messages] for m in layer.modes]
    title = "Classes that change how they are delivered"
    show_table(title, ("from", "to", "classes", "flows", "messages"), rows)


def show_running(layer: Staged) -> None:
    for what, numbers in layer.running.items():
        if numbers:
            told = ", ".join(f"{new} as {runs}" for new, runs in list(numbers.items())[:NUMBERS])
            more = f" and {len(numbers) - NUMBERS} more" if len(numbers) > NUMBERS else ""
            say(f"Of the new plan's {what} these run under other numbers: {told}{more}")


def show_steps(layer: Staged, steps: list[dict[str, Any]]) -> None:
    """What is done in each step of a layer, and what stands before and after it."""
    if not steps:
        return
    columns = action_columns(layer)
    counts = [[sum(s["actions"].get(a, 0) for a in c) for c in columns.values()] for s in steps]
    rows = [[s["step"], s["changes"], *count] for s, count in zip(steps, counts, strict=True)]
    say("")
    show_table(f"Steps of {layer.layer}", ("step", "changes", *columns), first_and_last(rows))
    names = [name for name in layer.states[0].figures if name not in LEFT_OUT]
    before = ["before", *(layer.states[0].figures[name] for name in names)]
    rows = [[f"step {s['step']}", *(s["after"].get(name, "-") for name in names)] for s in steps]
    say("")
    show_table("What stands after", ("", *map(spaced, names)), [before, *first_and_last(rows)])
    if len(steps) > SHOWN:
        say(f"{len(steps) - SHOWN} more steps in between; --out and --json have them all")
    for step in [s for s in steps if s["after"]["exceeded"]][:SHOWN]:
        say(f"After step {step['step']}: {'; '.join(step['after']['exceeded'])}")


def action_columns(layer: Staged) -> dict[str, tuple[str, ...]]:
    """A column for each action; for each layer, if there would be too many."""
    done = layer.counts()
    actions = [action for action in meanings() if action in done]
    if len(actions) <= MOST_COLUMNS:
        return {spaced(action): (action,) for action in actions}
    own = {layer.name: tuple(layer.actions) for layer in all_layers()}
    return {name: those for name, those in own.items() if any(a in done for a in those)}


LEFT_OUT = ("received_wanted", "matching", "state", "control", "used_channels", "direct_flows")
"""Figures that only --out and --json have."""

SHORT = {
    "direct_unicast": "direct",
    "forwarding": "forward",
    "received_unwanted": "unwanted",
    "sent_multicast": "multicast",
    "sent_unicast": "unicast",
    "excess_percent": "over %",
}
"""Words for narrow columns."""


def spaced(name: str) -> str:
    return SHORT.get(name, name).replace("_", " ")


def first_and_last(rows: list[list[Any]]) -> list[list[Any]]:
    """The first and the last of many rows."""
    half = SHOWN // 2
    return rows if len(rows) <= SHOWN else rows[:half] + rows[-half:]


# ---- apply-check


def show_verdict(found: Verdict) -> None:
    for text in found.refusals:
        say(f"Refused: {text}")
    for text in found.drift:
        say(f"Drifted: {text}")
    if found.tables:
        rows = [[t.name, told_rows(t.then), told_rows(t.now)] for t in found.tables]
        show_table("Input tables that changed", ("", "rows then", "rows now"), rows)
    show_moved("Input: what moved", found.rows)
    for name, layer in found.layers.items():
        show_layer(name, layer)
    if found.drift:
        say(served_words(found))
    say(said(found))


def show_layer(name: str, layer: LayerNow) -> None:
    show_moved(f"{name.capitalize()}: what moved", layer.moved)
    rows = [
        [what.replace("_", " "), *change_words(then, now, what.endswith("percent"))]
        for what, (then, now) in layer.figures.items()
    ]
    if rows:
        say("")
        show_table(f"{name.capitalize()}: the plan as it is", ("", "then", "now", "change"), rows)
    say_notes(layer.notes)


def show_moved(title: str, moved: Mapping[str, Moved]) -> None:
    if moved:
        rows = [[what, m.came, m.gone, m.changed] for what, m in moved.items()]
        say("")
        show_table(title, ("", "came", "gone", "changed"), rows)


def served_words(found: Verdict) -> str:
    missed = {name: layer.missed for name, layer in found.layers.items() if layer.missed}
    if not missed:
        return "Everybody who wants something is still reached."
    parts = "; ".join(
        f"{load_layer(name).unreached} ({plain_number(count)})" for name, count in missed.items()
    )
    return f"Some are no longer reached: {parts}."


def said(found: Verdict) -> str:
    """The verdict."""
    if found.refusals:
        return "The plan is refused. Write it again."
    if not found.drift:
        return "The plan holds, and the workload is the one it was made for."
    if found.ok:
        return f"Allowed: {found.reason}"
    return f"The plan is refused: the workload has drifted. {PLAN_ANEW} (--allow-drift REASON)"


def told_rows(rows: int | None) -> str:
    return "none" if rows is None else plain_number(rows)


def change_words(then: float, now: float | None, percent: bool) -> tuple[str, str, str]:
    """Two figures and how far the second lies from the first, percentages in points."""
    if now is None:
        return plain_number(then), "unknown", ""
    if percent:
        change = f"{now - then:+.1f} points"
    else:
        change = f"{100 * (now - then) / then:+.1f} %" if then else ""
    tiny = not any(digit in change for digit in "123456789")
    return plain_number(then), plain_number(now), "" if tiny else change
