"""From one choice of groups to another: groups in use are whole, and apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from group_datasets import write_group_dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import routes_of
from ready import stages_are_there
from sealing import amend

import fanplan
from fanplan.layers.groups.changes import Group, Setting, ordered_rows, running_numbers, size
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.registry import load_plan

BROKERS = "abcd"
CELLS = [("t", (i,)) for i in range(4)]


def meets(one: Group, other: Group) -> bool:
    """Whether a message may be in both."""
    if one.root != other.root:
        return False
    if one.cells and other.cells:
        return bool(one.cells & other.cells)
    return bool(one.cells or other.cells) or one.members == other.members


@st.composite
def choices(draw: st.DrawFn, cells: bool) -> dict[int, Group]:
    """Groups that have no message in common, each a chain from its root through its members."""
    found: list[Group] = []
    for _ in range(draw(st.integers(0, 4))):
        root = draw(st.sampled_from(BROKERS))
        others = sorted(set(BROKERS) - {root})
        chain = [root, *draw(st.permutations(others))[: draw(st.integers(1, 3))]]
        own = draw(st.frozensets(st.sampled_from(CELLS), min_size=1)) if cells else frozenset()
        entries = frozenset(itertools.pairwise(chain))
        group = Group(root, frozenset(chain[1:]), entries, own, 1.0)
        if not any(meets(group, other) for other in found):
            found.append(group)
    return dict(enumerate(found))


@settings(max_examples=40)
@given(st.booleans().flatmap(lambda c: st.tuples(choices(c), choices(c))), st.booleans())
def test_any_groups_become_any_others(both: Any, comparable: bool) -> None:
    old, new = both
    running = running_numbers(old, new, comparable)
    assert len(set(running.values())) == len(new)
    new = {running[number]: group for number, group in new.items()}
    entries = {(number, *entry) for number, group in old.items() for entry in group.entries}
    now = Setting(old | new, set(entries), set(old))
    rows = list(ordered_rows(old, new, comparable))
    for row in rows:
        now.apply(row)
        state = now.judge()
        assert state.broken == ()
        assert state.figures["entries"] <= max(size(old), size(new))
    assert now.used == set(new)
    target = {(number, *entry) for number, group in new.items() for entry in group.entries}
    assert now.entries == target
    assert len(rows) == len(entries ^ target) + len(old.keys() ^ new.keys())
    if comparable:
        kept = {group for group in old.values() if group in new.values()}
        assert len(old.keys() & new.keys()) == len(kept)


@pytest.fixture
def there() -> Iterator[None]:
    """Datasets come with the stages that Spark would make."""
    with stages_are_there():
        yield


def test_stored_groups(tmp_path: Path, there: None) -> None:
    """R over K and M, which have A, B and C, D."""
    names, links = ["A", "B", "C", "D", "K", "M", "R"], [(0, 4), (1, 4), (2, 5), (3, 5)]
    sent = {(6, (0, 2)): 2.0, (6, (0, 1, 2, 3)): 2.0, (6, (3,)): 10.0}
    folder = write_group_dataset(
        tmp_path / "d", names, routes_of(sent), links=[*links, (4, 6), (5, 6)]
    )
    dataset = fanplan.Dataset(folder)
    few, all_ = (
        fanplan.groups(dataset, select=select).save(tmp_path / select[4:-1])
        for select in ("top:30%", "top:100%")
    )
    for old, new in ((few, all_), (all_, few)):
        found = fanplan.diff(old, new, dataset, steps_of=2)
        (layer,) = found.layers
        assert (found.ok, layer.layer) == (True, "groups")
        assert layer.states[-1].figures["groups"] == load_plan(new).section(GroupsRecord).selected
    assert fanplan.compare(few, all_).json()["figures"]["groups"]["covered"]["best"] == ["100"]
    amend(folder, key="key-2")
    drifted = fanplan.apply_check(all_, dataset)
    assert (drifted.ok, drifted.layers["groups"].missed) == (False, 0)


def test_settings_that_do_not_hold_are_named() -> None:
    one = Group("a", frozenset("bc"), frozenset({("a", "b"), ("b", "c")}), frozenset(), 2.0)
    short = Setting({0: one}, {(0, "a", "b")}, {0})
    assert short.judge().broken == ("group in use that does not reach its members (1): 0",)
    twice = Setting({0: one, 1: one}, {(n, *e) for n in (0, 1) for e in one.entries}, {0, 1})
    assert twice.judge().broken == ("groups in use with the same messages (1): 0 and 1",)


class Counted(Group):
    """A group that counts how often it is looked at."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name in ("members", "entries", "cells"):
            Counted.looks += 1
        return super().__getattribute__(name)


def looks_per_step(groups: int) -> float:
    """How often groups are looked at for a change among many that stay."""
    old: dict[int, Group] = {
        n: Counted(f"r{n % 3}", frozenset({f"b{n}"}), frozenset({(f"r{n % 3}", f"b{n}")}),
                   frozenset(), 1.0)
        for n in range(groups)
    }  # fmt: skip
    new = {n + groups // 2: old[n + groups // 2] for n in range(groups // 2)}
    new |= {n + groups: Counted("r0", frozenset({f"c{n}"}), frozenset({("r0", f"c{n}")}),
                                frozenset(), 1.0) for n in range(groups // 2)}  # fmt: skip
    now = Setting(old | new, {(n, *e) for n, g in old.items() for e in g.entries}, set(old))
    now.judge()
    Counted.looks = 0
    rows = list(ordered_rows(old, new, comparable=True))
    for row in rows:
        now.apply(row)
        assert now.judge().broken == ()
    return Counted.looks / len(rows)


def test_a_step_costs_what_it_changes_however_many_groups_there_are() -> None:
    assert looks_per_step(80) < 2 * looks_per_step(20)
