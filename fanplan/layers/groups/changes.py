"""From one choice of groups to another: a group is used only while all its entries are there.

What is in no group goes by default routing, which needs nothing set up. So a group can end at any
time, and a new one begins when its entries stand and no group in use has the same messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
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


class Meeting:
    """Groups by what they share: finds all that meet a group without looking at the others."""

    def __init__(self, groups: Groups) -> None:
        self.groups, self.roots = groups, defaultdict[str, set[int]](set)
        self.celled = defaultdict[str, set[int]](set)
        self.alike = defaultdict[tuple[str, Hashable], set[int]](set)

    def shelves(self, group: Group) -> Iterator[set[int]]:
        """Where a group stands."""
        yield self.roots[group.root]
        if group.cells:
            yield self.celled[group.root]
        for mark in group.cells or (group.members,):
            yield self.alike[group.root, mark]

    def add(self, number: int) -> None:
        for shelf in self.shelves(self.groups[number]):
            shelf.add(number)

    def discard(self, number: int) -> None:
        for shelf in self.shelves(self.groups[number]):
            shelf.discard(number)

    def has(self, number: int) -> bool:
        return number in self.roots[self.groups[number].root]

    def meeting(self, group: Group) -> set[int]:
        """The groups here that may have a message of this one.

        Those have its root, and a cell in common with it, or the same members if neither has cells.
        Where only one of two has cells, nobody knows.
        """
        found = set().union(*(self.alike[group.root, m] for m in group.cells or (group.members,)))
        if group.cells:
            return found | (self.roots[group.root] - self.celled[group.root])
        return found | self.celled[group.root]


class Setting:
    """Groups that are known by their numbers, entries that stand, and groups in use.

    What does not hold is kept up to date change by change: judging costs what has changed.
    """

    def __init__(self, known: Groups, entries: set[tuple[int, str, str]], used: set[int]) -> None:
        self.known, self.entries, self.used = known, entries, set[int]()
        self._ways = defaultdict[int, set[Entry]](set)
        self._in_use, self._changed = Meeting(known), set[int]()
        self._short, self._twice = set[int](), set[tuple[int, int]]()
        self._messages = Fraction(0)  # Added to and taken from again and again, so exact.
        for number, *entry in entries:
            self._ways[number].add((entry[0], entry[1]))
        for number in used:
            self._use(number)

    def apply(self, row: Row) -> None:
        """Carry out one change."""
        action, group = row["action"], row["group"]
        if action in ("use_group", "end_group"):
            (self._use if action == "use_group" else self._end)(group)
            return
        entry = row["from_broker"], row["to_broker"]
        if action == "entry":
            self.entries.add((group, *entry))
            self._ways[group].add(entry)
        else:
            self.entries.discard((group, *entry))
            self._ways[group].discard(entry)
        self._changed.add(group)

    def _use(self, number: int) -> None:
        if number not in self.used:
            others = self._in_use.meeting(self.known[number])
            self._twice |= {(min(number, other), max(number, other)) for other in others}
            self._in_use.add(number)
            self.used.add(number)
            self._changed.add(number)
            self._messages += Fraction(self.known[number].messages)

    def _end(self, number: int) -> None:
        if number in self.used:
            self._twice = {pair for pair in self._twice if number not in pair}
            self._in_use.discard(number)
            self.used.discard(number)
            self._changed.add(number)
            self._messages -= Fraction(self.known[number].messages)

    def judge(self) -> State:
        """Every group in use reaches its members, and no message is in two of them."""
        for number in self._changed:
            wrong = number in self.used and not self.reaches(number)
            (self._short.add if wrong else self._short.discard)(number)
        self._changed.clear()
        findings = Findings()
        short = [repr(number) for number in sorted(self._short)]
        findings.violate("group in use that does not reach its members", len(short), short)
        twice = [f"{one} and {other}" for one, other in sorted(self._twice)]
        findings.violate("groups in use with the same messages", len(twice), twice)
        figures = {
            "groups": float(len(self.used)),
            "entries": float(len(self.entries)),
            "messages": float(self._messages),
        }
        return State(figures, tuple(findings.violations))

    def reaches(self, number: int) -> bool:
        after = defaultdict[str, list[str]](list)
        for a, b in self._ways[number]:
            after[a].append(b)
        reached, waiting = {self.known[number].root}, [self.known[number].root]
        while waiting:
            more = [b for b in after[waiting.pop()] if b not in reached]
            reached.update(more)
            waiting += more
        return self.known[number].members <= reached


def stage_groups(old: StoredPlan, new: StoredPlan, _dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    Nothing of it depends on a dataset.
    """
    both = GroupWorld.of(old, new)
    rows = list(ordered_rows(both.old, both.new, both.comparable))
    step = cut(np.arange(len(rows)), limit, "")
    states = tuple(state.judge() for state in group_states(both, rows, step))
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
        comparable = cell_axes(old) == cell_axes(new)
        running = running_numbers(before, after, comparable)
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


def cell_axes(plan: StoredPlan) -> list[Row]:
    """The grid of cells; cells of other grids have nothing to do with each other."""
    if not plan.path("group_axes").is_file():
        return []
    result: list[Row] = plan.read("group_axes", ("topic", "axis", "edges")).to_pylist()
    return result


def running_numbers(old: Groups, new: Groups, comparable: bool) -> dict[int, int]:
    """The number under which each new group runs: that of the same old one, or one that is free."""
    place = {group: number for number, group in old.items()} if comparable else {}
    free = 1 + max(old, default=-1)
    running = {}
    for number, group in sorted(new.items()):
        running[number] = place.get(group, free)
        free += group not in place
    return running


def ordered_rows(
    old: Groups, new: Groups, comparable: bool, most: float | None = None
) -> Iterator[Row]:
    """New groups best first; before each, old ones end that are in the way or leave no room.

    So there are never more entries than ``most``, or else than the larger plan has.
    """
    going, left = sorted(old.keys() - new.keys()), Meeting(old)
    for number in going:
        left.add(number)
    room = (max(size(old), size(new)) if most is None else most) - size(old)
    for number in sorted(new.keys() - old.keys()):
        group = new[number]
        leaving = []
        while going and room < len(group.entries):
            gone = going.pop()
            if left.has(gone):
                leaving.append(gone)
                left.discard(gone)
                room += len(old[gone].entries)
        meeting = left.meeting(group) if comparable else set(left.roots[group.root])
        for gone in (*leaving, *sorted(meeting, reverse=True)):
            yield from group_ends(gone, old[gone])
        for gone in meeting:
            left.discard(gone)
            room += len(old[gone].entries)
        room -= len(group.entries)
        yield from group_begins(number, group)
    for number in filter(left.has, going):
        yield from group_ends(number, old[number])


def size(groups: Groups) -> int:
    """Entries of all groups."""
    return sum(len(group.entries) for group in groups.values())


def group_begins(number: int, group: Group) -> Iterator[Row]:
    for a, b in sorted(group.entries):
        yield {"action": "entry", "group": number, "from_broker": a, "to_broker": b}
    yield {"action": "use_group", "group": number, "broker": group.root}


def group_ends(number: int, group: Group) -> Iterator[Row]:
    yield {"action": "end_group", "group": number, "broker": group.root}
    for a, b in sorted(group.entries):
        yield {"action": "end_entry", "group": number, "from_broker": a, "to_broker": b}


def group_states(both: GroupWorld, rows: list[Row], step: np.ndarray) -> Iterator[Setting]:
    """The old groups, and what stands after each step."""
    now = both.setting()
    yield now
    order, steps = np.argsort(step, kind="stable"), np.arange(int(step.max(initial=-1)) + 1)
    for places in np.split(order, np.searchsorted(step[order], steps[1:]))[: len(steps)]:
        for place in places.tolist():
            now.apply(rows[place])
        yield now
