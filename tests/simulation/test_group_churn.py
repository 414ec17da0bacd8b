"""Exactly once: random churn on small random worlds, and protocols broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from group_worlds import way
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import routes_of

from fanplan.errors import CheckError, InputError
from fanplan.planners.groups.choose import GroupsParams, Top, choose_groups
from fanplan.problem.group_building import exact_groups, hung_at
from fanplan.problem.groups import GroupsProblem
from fanplan.simulation.group_protocol.audit import Audit
from fanplan.simulation.group_protocol.broker import Broker
from fanplan.simulation.group_protocol.churn import GroupsChurn, groups_churn, stir
from fanplan.simulation.group_protocol.interest import Interest
from fanplan.simulation.group_protocol.links import Link, Links
from fanplan.simulation.group_protocol.messages import (
    DEFAULT,
    KINDS,
    Message,
    Publication,
    Removal,
    Update,
)
from fanplan.simulation.group_protocol.root import HOLD, Hold, Rebuild, Root
from fanplan.simulation.group_protocol.system import System

Patch = pytest.MonkeyPatch

LATE_MS = 100.0


def choose(problem: GroupsProblem) -> np.ndarray:
    """Most groups, so that they come and go."""
    return choose_groups(problem, GroupsParams(Top(0.7), rank="nc")).selected


def world_of(seed: int, roots: int = 1) -> tuple[GroupsProblem, np.ndarray]:
    """A deep tree and few routes, so that much happens at once to each; and cells of the routes."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    links = np.array([(i, max(0, i - rng.integers(1, 3))) for i in range(1, size)])
    found = {}
    for _ in range(rng.integers(1, 7)):
        ends = np.flatnonzero(rng.random(size) < 0.4).tolist()
        found[int(rng.integers(min(roots, size))), tuple(ends)] = float(rng.integers(1, 5))
    routes = routes_of(found)
    trees = hung_at(links, np.unique(routes.source), size)
    names = pa.array([f"b{i}" for i in range(size)])
    return exact_groups(names, trees, routes), rng.integers(3, size=len(routes)).astype(np.int32)


def churned(seed: int, churn: GroupsChurn, slow: str, overlap: bool, roots: int = 1) -> System:
    """A system after churn; a CheckError if a publication did not arrive exactly once."""
    problem, cell = world_of(seed, roots)
    system = System(problem, churn.system_params(choose), cell if overlap else None)
    system.start()
    slow_down(system, slow)
    stir(system, churn)
    return system


def slow_down(system: System, kind: str) -> None:
    """Send messages of a kind late; what follows on the same link must wait, all else overtakes."""
    send = system.links.send

    def send_late(link: Link, message: Message, after_ms: float) -> None:
        in_group = isinstance(message, Publication) and message.group != DEFAULT
        late = in_group if kind == "in groups" else KINDS.get(type(message)) == kind
        send(link, message, after_ms + LATE_MS * late)

    system.links.send = send_late  # type: ignore[method-assign]


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
) -> None:
    churn = GroupsChurn(60, seed, 0.4, every, hold, shortcuts, loss=loss)
    state_is_that_of_standing_groups(churned(seed, churn, slow, overlap, roots))


def state_is_that_of_standing_groups(system: System) -> None:
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


def hops_of(system: System, root: Root, group: int) -> Iterator[tuple[int, int]]:
    """From whom to whom a message of a group goes, from the root down."""
    here = [root.near.broker]
    while here:
        at = here.pop()
        for to in system.brokers[root.near.tree, at].groups[group].to:
            yield at, to
            here.append(to)


def check_hops(
    system: System, root: Root, hops: list[tuple[int, int]], members: frozenset[int]
) -> None:
    """A tree that reaches each member once, and bypasses no member and no place where ways part."""
    reached = [to for _, to in hops]
    assert len(set(reached)) == len(reached)
    assert members <= {*reached, root.near.broker}
    ways = [way(system.problem, root.near.tree, member) for member in members]
    links = {pair for up in ways for pair in zip(up[1:], up, strict=False)}
    needed = {b for b in reached if b in members or sum(b == above for above, _ in links) > 1}
    if system.rules.shortcuts:
        assert needed == set(reached)
    else:
        assert set(hops) == links
    for tail, head in hops:
        up = way(system.problem, root.near.tree, head)
        between = up[1 : up.index(tail)]
        parting = {b for b in between if sum(b == above for above, _ in links) > 1}
        assert not parting | (set(between) & members)


# Protocols that are broken on purpose. Each must be caught.


def no_waiting(patch: Patch) -> None:
    """The root uses new groups at once, holding nothing back."""
    begin = Root.set_up

    def hasty(root: Root, groups: list[int]) -> None:
        assert root.rebuild
        root.carrier = dict(root.rebuild.carrier)
        begin(root, groups)

    patch.setattr(Root, "set_up", hasty)


def early_removal(patch: Patch) -> None:
    """Brokers are told to forget a group ahead of its last publications."""
    send = Links.send

    def overtake(links: Links, link: Link, message: Message, after_ms: float) -> None:
        if isinstance(message, Removal):
            links.receivers[link[1]](link[0][1], message)
        else:
            send(links, link, message, after_ms)

    patch.setattr(Links, "send", overtake)


def no_eviction(patch: Patch) -> None:
    """A cell stays in its group though somebody else wants it now."""
    patch.setattr(Root, "evict", lambda root, cell: None)


def no_confirmation(patch: Patch) -> None:
    """Groups do not wait until brokers know what they have subscribed to."""
    patch.setattr(Rebuild, "ready", property(lambda rebuild: not rebuild.unfinished))


def interest_by_arrival(patch: Patch) -> None:
    """Brokers go by what they want now, not by what was in force at the root."""
    wanted = Interest.wanted
    patch.setattr(Interest, "wanted", lambda self, route, number: wanted(self, route, 10**9))


def repeating_links(patch: Patch) -> None:
    """Receivers take a publication again that was sent again."""
    arrive = Links._arrive

    def careless(links: Links, link: tuple, number: int, message: object) -> None:
        if isinstance(message, Publication) and not links.is_new(link, number):
            links.receivers[link[1]](link[0][1], message)
        arrive(links, link, number, message)

    patch.setattr(Links, "_arrive", careless)


def no_merging_of_entries(patch: Patch) -> None:
    """A bypassed broker's way stays beside the shortcut."""
    receive = Broker.receive

    def keep_both(broker: Broker, sender: int, message: object) -> None:
        via = getattr(message, "via", None)
        receive(broker, sender, message)
        if via is not None:
            broker.groups[message.group].to.add(via)
            broker.groups[message.group].complete.add(via)

    patch.setattr(Broker, "receive", keep_both)
    patch.setattr(Broker, "forget", lambda broker, group: broker.groups[group])


# With what is slow when it shows.
BROKEN = [
    (no_waiting, "group_messages"),
    (early_removal, "in groups"),
    (no_eviction, "nothing"),
    (no_confirmation, "acceptances"),
    (interest_by_arrival, "in groups"),
    (repeating_links, "nothing"),
    (no_merging_of_entries, "nothing"),
]


@pytest.mark.parametrize(("break_it", "slow"), BROKEN)
def test_a_broken_protocol_is_caught(
    break_it: Callable[[Patch], None], slow: str, monkeypatch: Patch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(CheckError, match=r"publication \d+ of tree 0, on route \d+: broker"):
        stir_worlds(slow, 0.3 if break_it is repeating_links else 0.0)


def stir_worlds(slow: str, loss: float) -> None:
    for seed in range(100):
        churn = GroupsChurn(150, seed, 0.3, 1, "none", loss=loss)
        churned(seed, churn, slow, overlap=True)


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
    with pytest.raises(
        CheckError, match="publication 0 of tree 0, on route 7: broker 'west' got it twice"
    ):
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
    assert {hold: len(run.held_ms) > 0 for hold, run in runs.items()} == {
        "all": True,
        "affected": True,
        "none": False,
    }
    assert len(runs["all"].held_ms) > len(runs["affected"].held_ms)
    assert runs["none"].grouped < runs["affected"].grouped


def test_the_same_seed_gives_the_same_run() -> None:
    problem, cell = world_of(6)
    churn = GroupsChurn(100, 3, loss=0.1)
    first, second = (groups_churn(problem, churn, choose, cell).summary() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    other = groups_churn(problem, GroupsChurn(100, 4, loss=0.1), choose, cell)
    assert json.dumps(first) != json.dumps(other.summary())


def test_figures_of_a_run() -> None:
    problem, _ = world_of(6)
    run = groups_churn(problem, GroupsChurn(200, 1, 0.5, 10), choose)
    summary = run.summary()
    assert summary["publications"] + summary["updates"] == 200
    assert summary["control"]["confirmations"] <= summary["updates"]
    assert summary["matches"] >= summary["publications"]
    assert summary["rebuilds"] >= 1
    assert run.broker_table(problem.brokers)["arrived"].to_numpy().sum() == summary["deliveries"]


def test_bad_churn_is_named() -> None:
    with pytest.raises(InputError, match="events: -1 is negative"):
        GroupsChurn(events=-1)
    with pytest.raises(InputError, match="updates: 2 is no share") as both:
        GroupsChurn(updates=2, every_ms=-1.0)
    assert "every_ms: -1.0 is no such time" in str(both.value)
    with pytest.raises(InputError, match="hold: some is unknown. Choose one of all, affected"):
        GroupsChurn(hold="some").system_params(choose)  # type: ignore[arg-type]
