"""Exactly once: random churn on small random worlds, and what a run of it shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from group_churn_worlds import choose, churned, world_of
from group_worlds import way
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import CheckError, InputError
from fanplan.layers.groups.protocol.audit import Audit
from fanplan.layers.groups.protocol.churn import GroupSystem, groups_churn
from fanplan.layers.groups.protocol.messages import KINDS, Update
from fanplan.layers.groups.protocol.params import HOLD, GroupsChurn, Hold
from fanplan.layers.groups.protocol.root import Root


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    slow=st.sampled_from(["nothing", "in groups", *KINDS.values()]),
    hold=st.sampled_from(HOLD),
    every=st.integers(0, 6),
    loss=st.sampled_from([0.0, 0.0, 0.3]),
    shortcuts=st.booleans(),
    overlap=st.booleans(),
    roots=st.sampled_from([1, 3]),
    elsewhere=st.booleans(),
)
def test_every_publication_arrives_exactly_once(
    seed: int,
    slow: str,
    hold: Hold,
    every: int,
    loss: float,
    shortcuts: bool,
    overlap: bool,
    roots: int,
    elsewhere: bool,
) -> None:
    churn = GroupsChurn(60, seed, 0.4, every, hold, shortcuts, loss=loss)
    if elsewhere:
        names = world_of(seed, roots)[0].brokers.to_pylist()
        churn = replace(churn, coordinator=names[seed % len(names)])
    system = churned(seed, churn, slow, overlap, roots)
    state_is_that_of_standing_groups(system)
    tables_are_what_clients_want(system)


def tables_are_what_clients_want(system: GroupSystem) -> None:
    """Each broker knows how many below each child want a route, and nothing else."""
    found = Counter(
        {
            (route, at, child): wanting
            for (_, at), broker in system.brokers.items()
            for child, table in broker.table.items()
            for route, wanting in table.items()
        }
    )
    for route, broker in system.wants:
        up = way(system.problem, int(system.problem.tree[route]), broker)
        found.subtract((route, above, child) for child, above in pairwise(up))
    assert not any(found.values())
    assert system.tally.control["updates"] == system.tally.control["acceptances"]


def state_is_that_of_standing_groups(system: GroupSystem) -> None:
    """Nothing is left of old groups; of the others, as few entries as their trees need."""
    for (tree, at), broker in system.brokers.items():
        for group in broker.groups:
            assert group in system.roots[tree].standing, f"{at} still knows {group}"
    total = 0
    for root in system.roots:
        assert root.rebuild is None
        assert not root.held
        for group, members in root.standing.items():
            hops = list(hops_of(system, root, group))
            check_hops(system, root, hops, members)
            total += len(hops)
    assert total == system.tally.entries.sum()


def hops_of(system: GroupSystem, root: Root, group: int) -> Iterator[tuple[int, int]]:
    """From whom to whom a message of a group goes, from the root down."""
    here = [root.near.broker]
    while here:
        at = here.pop()
        for to in system.brokers[root.near.tree, at].groups[group].to:
            yield at, to
            here.append(to)


def check_hops(
    system: GroupSystem, root: Root, hops: list[tuple[int, int]], members: frozenset[int]
) -> None:
    """A tree that reaches each member once, and bypasses no member and no place where ways part."""
    reached = [to for _, to in hops]
    assert len(set(reached)) == len(reached)
    assert members <= {*reached, root.near.broker}
    ways = [way(system.problem, root.near.tree, member) for member in members]
    links = {pair for up in ways for pair in zip(up[1:], up, strict=False)}
    needed = {b for b in reached if b in members or sum(b == above for above, _ in links) > 1}
    if system.around.churn.shortcuts:
        assert needed == set(reached)
    else:
        assert set(hops) == links
    for tail, head in hops:
        up = way(system.problem, root.near.tree, head)
        between = up[1 : up.index(tail)]
        parting = {b for b in between if sum(b == above for above, _ in links) > 1}
        assert not parting | (set(between) & members)


def test_the_audit_names_what_is_wrong() -> None:
    audit = Audit(pa.array(["east", "west"]))
    subscribe = Update(1, 1, frozenset({7}), frozenset())
    audit.requested(0, subscribe)
    audit.accepted(0, subscribe)
    audit.entered()
    audit.ordered(0, 0, route=7)
    with pytest.raises(CheckError, match="on route 7: broker 'west' wanted it, but never got it"):
        audit.close()
    with pytest.raises(CheckError, match="broker 'east' got it, but did not want it"):
        audit.delivered(0, 0, 0)
    audit.delivered(0, 0, 1)
    with pytest.raises(CheckError, match=r"publication 0 .* broker 'west' got it twice"):
        audit.delivered(0, 0, 1)
    with pytest.raises(CheckError, match="update 1 of broker 'west' never came into force"):
        audit.close()
    with pytest.raises(CheckError, match="update 1 of broker 'west' is accepted out of order"):
        audit.accepted(0, subscribe)
    audit.confirmed(0, subscribe)
    audit.entered()
    with pytest.raises(CheckError, match="1 publications were never sent on"):
        audit.close()


def test_who_held_what() -> None:
    """Holding all costs the most time, holding nothing sends the most outside of groups."""
    problem, _ = world_of(6)
    runs = {
        hold: groups_churn(problem, GroupsChurn(400, 1, 0.05, 1, hold), choose) for hold in HOLD
    }
    assert {hold: len(run.tally.held_ms) > 0 for hold, run in runs.items()} == {
        "all": True,
        "affected": True,
        "none": False,
    }
    assert len(runs["all"].tally.held_ms) > len(runs["affected"].tally.held_ms)
    assert runs["none"].tally.grouped < runs["affected"].tally.grouped


def test_the_same_seed_gives_the_same_run() -> None:
    problem, cell = world_of(6)
    churn = GroupsChurn(100, 3, loss=0.1)
    first, second = (groups_churn(problem, churn, choose, cell).summary() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    other = groups_churn(problem, GroupsChurn(100, 4, loss=0.1), choose, cell)
    assert json.dumps(first) != json.dumps(other.summary())


def test_a_coordinator_elsewhere_is_told_and_tells_the_root() -> None:
    """One report per update, and three messages per rebuild; at the root there are none."""
    problem, _ = world_of(6)
    assert problem.trees.root.tolist() == [0]
    at_root, elsewhere = (
        groups_churn(problem, GroupsChurn(200, 1, 0.5, 10, coordinator=name), choose).summary()
        for name in ("b0", problem.brokers[len(problem.brokers) - 1].as_py())
    )
    kinds = ("reports", "orders", "begun", "ended")
    assert not any(at_root["control"][kind] for kind in kinds)
    told = elsewhere["control"]
    assert told["reports"] == elsewhere["updates"]
    assert told["orders"] == told["begun"] == told["ended"] == elsewhere["rebuilds"] >= 1
    assert elsewhere["deliveries"] > 0


def test_a_coordinator_that_is_not_there_is_named() -> None:
    problem, _ = world_of(6)
    with pytest.raises(InputError, match="coordinator: broker 'x' is not in the tree of 'b0'"):
        groups_churn(problem, GroupsChurn(coordinator="x"), choose)


def test_figures_of_a_run() -> None:
    problem, _ = world_of(6)
    run = groups_churn(problem, GroupsChurn(200, 1, 0.5, 10), choose)
    summary = run.summary()
    assert summary["publications"] + summary["updates"] == 200
    assert summary["control"]["confirmations"] <= summary["updates"]
    assert summary["matches"] >= summary["publications"]
    assert summary["rebuilds"] >= 1
    assert (run.tally.entries_most >= run.tally.entries).all()


def test_bad_churn_is_named() -> None:
    with pytest.raises(InputError, match="events: -1 is negative"):
        GroupsChurn(events=-1)
    with pytest.raises(InputError, match="seed: -1 is negative"):
        GroupsChurn(seed=-1)
    with pytest.raises(InputError, match="updates: 2 is not a share") as both:
        GroupsChurn(updates=2, every_ms=-1.0)
    assert "every_ms: -1.0 is out of range" in str(both.value)
    with pytest.raises(InputError, match=r"hold: some is unknown\. Choose one of all, affected"):
        GroupsChurn(hold="some")  # type: ignore[arg-type]


def test_nothing_published_is_named() -> None:
    problem, _ = world_of(6)
    silent = replace(problem, routes=replace(problem.routes, messages=0 * problem.routes.messages))
    with pytest.raises(InputError, match="routes: nothing is published"):
        groups_churn(silent, GroupsChurn(), choose)
