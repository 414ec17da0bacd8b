"""From one choice of groups to another: a group is used only while all its entries are there.

What is in no group goes by default routing, which needs nothing set up. So a group can end at any
time, and a new one begins when its entries stand and no group in use has the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fanplan.plan.changes import Row, of_rows
from fanplan.plan.findings import Findings
from fanplan.plan.steps import Staged, State, cut
from fanplan.plan.stored import StoredPlan

Entry = tuple[str, str]
Groups = dict[int, "Group"]


@dataclass(frozen=True)
class Group:
    """Messages that enter at ``root`` and go to ``members`` over ``entries``.

    It took ``control`` messages to set it up.
    ``cells`` tells which messages, if groups come from cells; else those for just these members.
    """

    root: str
    members: frozenset[str]
    entries: frozenset[Entry]
    cells: frozenset[tuple[str, tuple[int, ...]]]
    messages: float = field(compare=False)
    control: float = field(compare=False, default=0.0)

    def meets(self, other: Group) -> bool:
        """Whether a message may be in both."""
        if self.root != other.root:
            return False
        if self.cells and other.cells:
            return bool(self.cells & other.cells)
        return bool(self.cells or other.cells) or self.members == other.members


@dataclass
class Setting:
    """Groups that are known by their numbers, entries that stand, and groups in use."""

    known: Groups
    entries: set[tuple[int, str, str]]
    used: set[int]

    def apply(self, row: Row) -> None:
        """Carry out one change."""
        action, group = row["action"], row["group"]
        if action in ("use_group", "end_group"):
            (self.used.add if action == "use_group" else self.used.discard)(group)
        else:
            change = self.entries.add if action == "entry" else self.entries.discard
            change((group, row["from_broker"], row["to_broker"]))

    def judge(self) -> State:
        """Every group in use reaches its members, and no message is in two of them."""
        findings = Findings()
        short = [repr(n) for n in sorted(self.used) if not self.reaches(n)]
        findings.violate("group in use that does not reach its members", len(short), short)
        used = sorted(self.used)
        twice = [
            f"{one} and {other}"
            for place, one in enumerate(used)
            for other in used[place + 1 :]
            if self.known[one].meets(self.known[other])
        ]
        findings.violate("groups in use with the same messages", len(twice), twice)
        messages = sum(self.known[number].messages for number in self.used)
        figures = {"groups": len(used), "entries": len(self.entries), "messages": messages}
        return State({k: float(v) for k, v in figures.items()}, tuple(findings.violations))

    def reaches(self, number: int) -> bool:
        ways = [(a, b) for group, a, b in self.entries if group == number]
        reached, grown = {self.known[number].root}, True
        while grown:
            more = {b for a, b in ways if a in reached} - reached
            reached, grown = reached | more, bool(more)
        return self.known[number].members <= reached


def stage_groups(old: StoredPlan, new: StoredPlan, dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    Nothing of it depends on a dataset.
    """
    both = GroupWorld.of(old, new)
    rows = list(ordered(both.old, both.new, both.comparable))
    step = cut(np.arange(len(rows)), limit, "")
    states = tuple(state.judge() for state in states_of(both, rows, step))
    return Staged("groups", of_rows(rows), step, states, running={"groups": both.moved})


@dataclass(frozen=True)
class GroupWorld:
    """Groups of two plans under running numbers; ``moved`` has those that changed.

    ``comparable``: cells of both are of one grid.
    """

    old: Groups
    new: Groups
    moved: dict[int, int]
    comparable: bool

    @classmethod
    def of(cls, old: StoredPlan, new: StoredPlan) -> GroupWorld:
        before, after = groups_of(old), groups_of(new)
        comparable = axes_of(old) == axes_of(new)
        running = numbers(before, after, comparable)
        moved = {number: runs for number, runs in running.items() if number != runs}
        runs = {running[number]: group for number, group in after.items()}
        return cls(before, runs, moved, comparable)

    def setting(self) -> Setting:
        """The old groups."""
        entries = {(n, *entry) for n, group in self.old.items() for entry in group.entries}
        return Setting(self.old | self.new, entries, set(self.old))


def groups_of(plan: StoredPlan) -> Groups:
    """The groups of a stored plan by their numbers."""
    members: dict[int, set[str]] = {}
    for row in plan.read("group_members", ("group", "broker")).to_pylist():
        members.setdefault(row["group"], set()).add(row["broker"])
    entries: dict[int, set[Entry]] = {}
    for table in ("group_links", "shortcuts"):
        for row in plan.read(table, ("group", "from_broker", "to_broker")).to_pylist():
            entries.setdefault(row["group"], set()).add((row["from_broker"], row["to_broker"]))
    cells: dict[int, set[tuple[str, tuple[int, ...]]]] = {}
    if plan.path("group_cells").is_file():
        for row in plan.read("group_cells", ("group", "topic", "cell")).to_pylist():
            cells.setdefault(row["group"], set()).add((row["topic"], tuple(row["cell"])))
    return {
        row["group"]: Group(
            row["root"],
            frozenset(members.get(row["group"], ())),
            frozenset(entries.get(row["group"], ())),
            frozenset(cells.get(row["group"], ())),
            row["messages"],
            row["control"],
        )
        for row in plan.read("virtual_groups", ("group", "root", "messages", "control")).to_pylist()
    }


def axes_of(plan: StoredPlan) -> list[Row]:
    """The grid of cells; cells of other grids have nothing to do with each other."""
    if not plan.path("group_axes").is_file():
        return []
    result: list[Row] = plan.read("group_axes", ("topic", "axis", "edges")).to_pylist()
    return result


def numbers(old: Groups, new: Groups, comparable: bool) -> dict[int, int]:
    """The number under which each new group runs: that of the same old one, or one that is free."""
    place = {group: number for number, group in old.items()} if comparable else {}
    free = 1 + max(old, default=-1)
    running = {}
    for number, group in sorted(new.items()):
        running[number] = place.get(group, free)
        free += group not in place
    return running


def ordered(old: Groups, new: Groups, comparable: bool, most: float | None = None) -> Iterator[Row]:
    """New groups best first; before each, old ones end that are in the way or leave no room.

    So there are never more entries than ``most``, or else than the larger plan has.
    """
    going = sorted(old.keys() - new.keys())
    room = (max(size(old), size(new)) if most is None else most) - size(old)
    for number in sorted(new.keys() - old.keys()):
        group = new[number]
        for gone in reversed(going.copy()):
            meets = group.meets(old[gone]) or (not comparable and group.root == old[gone].root)
            if meets or room < len(group.entries):
                going.remove(gone)
                room += len(old[gone].entries)
                yield from end(gone, old[gone])
        room -= len(group.entries)
        yield from begin(number, group)
    for number in going:
        yield from end(number, old[number])


def size(groups: Groups) -> int:
    """Entries of all groups."""
    return sum(len(group.entries) for group in groups.values())


def begin(number: int, group: Group) -> Iterator[Row]:
    for a, b in sorted(group.entries):
        yield {"action": "entry", "group": number, "from_broker": a, "to_broker": b}
    yield {"action": "use_group", "group": number, "broker": group.root}


def end(number: int, group: Group) -> Iterator[Row]:
    yield {"action": "end_group", "group": number, "broker": group.root}
    for a, b in sorted(group.entries):
        yield {"action": "end_entry", "group": number, "from_broker": a, "to_broker": b}


def states_of(both: GroupWorld, rows: list[Row], step: np.ndarray) -> Iterator[Setting]:
    """The old groups, and what stands after each step."""
    now = both.setting()
    yield now
    for number in range(int(step.max(initial=-1)) + 1):
        for place in np.flatnonzero(step == number).tolist():
            now.apply(rows[place])
        yield now
