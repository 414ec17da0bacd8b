"""Designs over given links: parallel ones count as one in every layer, and latencies are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from delivery_datasets import EDGES, SITES, World, cell_of, flow_of, world_of, write_world
from delivery_walk import Walk
from hypothesis import given, settings
from hypothesis import strategies as st
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.simulated import planned_delays
from fanplan.layers.registry import load_plan

PLAIN = (
    ("b0", "b1", 1.0),
    ("b1", "b2", 20.0),
    ("b2", "b3", 2.0),
    ("b3", "b4", 7.0),
    ("b4", "b5", 5.0),
    ("b0", "b5", 3.0),
)
PARALLEL = (("b0", "b1", 4.0), *PLAIN, ("b1", "b0", None), ("b2", "b1", 21.0), ("b2", "b3", 2.0))
Planner = Callable[[fanplan.Dataset], fanplan.Made]
PLANNERS: dict[str, Planner] = {
    "overlay": fanplan.overlay,
    "mark": lambda dataset: fanplan.mark(dataset, "per-source"),
    "groups": lambda dataset: fanplan.groups(dataset, trees="per-publisher"),
    "design": lambda dataset: fanplan.design(dataset, channels=2),
}


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_parallel_links_change_nothing(planner: Planner, tmp_path: Path) -> None:
    """Every layer plans as if each link were there once, with its lowest latency."""
    plans = []
    with stages_are_there():
        for name, links in (("plain", PLAIN), ("parallel", PARALLEL)):
            folder = write_world(tmp_path / name, replace(world_of(4), links=links))
            plans.append(planner(fanplan.open_dataset(folder)).save(tmp_path / f"{name}.plan"))
    tables = [{t.name: pq.read_table(t) for t in plan.glob("*.parquet")} for plan in plans]
    assert tables[0].keys() == tables[1].keys()
    assert all(tables[0][name].equals(tables[1][name]) for name in tables[0])


# ---- delays, by a walk with lists and sets alone


class DelayWalk(Walk):
    """Every delivery through the tables of a plan, with what links take."""

    def __init__(self, world: World, plan: Path, hop_ms: float, client_ms: float) -> None:
        super().__init__(world, plan)
        # Without multicast in sites only home brokers serve.
        self.homes = load_plan(plan).section(DeliveryRecord).homes
        self.hop_ms, self.client_ms = hop_ms, client_ms
        self.latency = latencies_of(world, hop_ms)
        rows = {n: pq.read_table(plan / f"{n}.parquet").to_pylist() for n in GROUP_TABLES}
        roots = {r["group"]: r["root"] for r in rows["virtual_groups"]}
        members: dict[int, set[str]] = {group: set() for group in roots}
        for row in rows["group_members"]:
            members[row["group"]].add(row["broker"])
        self.own = {(roots[g], frozenset(members[g])): g for g in roots}
        self.entries: dict[int, dict[str, tuple[str, bool]]] = {g: {} for g in roots}
        for name in ("group_links", "shortcuts"):
            for row in rows[name]:
                way = (row["from_broker"], name == "shortcuts")
                self.entries[row["group"]][row["to_broker"]] = way

    def delays(self, naive: bool = False) -> Counter[float]:
        """How many deliveries take how long."""
        found: Counter[float] = Counter()
        for _, publisher, topic, _, value in self.world.sent:
            low, high = EDGES[cell_of(value)], EDGES[cell_of(value) + 1]
            for who in self.world.audience(topic, low, high):
                source, home = self.entry[publisher], self.home[who]
                if naive:
                    taken = self.on_tree(source, home)
                else:
                    taken = self.taken(flow_of(topic, value), source, who)
                found[round(taken + self.client_ms, 6)] += 1
        return found

    def taken(self, flow: str, source: str, who: str) -> float:
        """From where a message enters to the broker of one who wants it."""
        home = self.home[who]
        if self.row[flow] in self.direct:
            return self.shortest(source, home)
        needed = self.needed(flow, source)
        if who in self.alone[flow] and (self.homes or SITES[home] is None):
            return self.between_brokers(source, needed, home)
        sender = source
        if SITES[source] != SITES[home]:
            inside = [b for b in needed if SITES[b] == SITES[home]]
            sender = min(inside, key=lambda b: (len(self.way(source, b)), b))
        return self.between_brokers(source, needed, sender) + self.shortest(sender, home)

    def needed(self, flow: str, source: str) -> frozenset[str]:
        """Brokers that must get it: homes that serve their own, and one of each other site."""
        homes = {self.home[who] for who in self.alone[flow]}
        needed = {b for b in homes if self.homes or SITES[b] is None}
        sites = {self.domain[channel] for channel in self.channels[flow]}
        sites |= {SITES[b] for b in homes}
        for site in sites - {SITES[b] for b in needed} - {SITES[source], None}:
            inside = [b for b in sorted(SITES) if SITES[b] == site]
            needed.add(min(inside, key=lambda b: (len(self.way(source, b)), b)))
        return frozenset(needed)

    def between_brokers(self, source: str, needed: frozenset[str], end: str) -> float:
        """By the group that has just these members, or else on the tree."""
        group = self.own.get((source, needed))
        if group is None:
            return self.on_tree(source, end)
        taken, here = 0.0, end
        while here != source:
            above, shortcut = self.entries[group][here]
            taken += self.shortest(above, here) if shortcut else self.link(above, here)
            here = above
        return taken

    def on_tree(self, source: str, end: str) -> float:
        ways = [source, *self.way(source, end)]
        return sum(self.link(a, b) for a, b in pairwise(ways))

    def link(self, a: str, b: str) -> float:
        return self.latency[frozenset((a, b))] if self.latency else self.hop_ms

    def shortest(self, source: str, end: str) -> float:
        """Every link is tried again and again, until none makes a way shorter."""
        if not self.latency:
            return 0.0 if source == end else self.hop_ms
        far = dict.fromkeys(SITES, float("inf")) | {source: 0.0}
        for _ in SITES:
            for (a, b), ms in ((tuple(ends), ms) for ends, ms in self.latency.items()):
                far[a], far[b] = min(far[a], far[b] + ms), min(far[b], far[a] + ms)
        return far[end]


GROUP_TABLES = ("virtual_groups", "group_members", "group_links", "shortcuts")


def latencies_of(world: World, hop_ms: float) -> dict[frozenset[str], float]:
    best: dict[frozenset[str], float | None] = {}
    for a, b, ms in world.links:
        ends = frozenset((a, b))
        known = [value for value in (ms, best.get(ends)) if value is not None]
        best[ends] = min(known, default=None)
    known = [ms for ms in best.values() if ms is not None]
    return {ends: median(known or [hop_ms]) if ms is None else ms for ends, ms in best.items()}


latency = st.none() | st.sampled_from([0.0, 0.25, 1.0, 3.0, 20.0])


@st.composite
def networks(draw: st.DrawFn) -> tuple[tuple[str, str, float | None], ...]:
    """Nothing, or links that join all brokers, some of them parallel, some without a latency."""
    if draw(st.integers(0, 4)) == 0:
        return ()
    names, ways = sorted(SITES), [(b, draw(st.integers(0, b - 1))) for b in range(1, len(SITES))]
    pair = st.tuples(st.integers(0, len(names) - 1), st.integers(0, len(names) - 1))
    ways += draw(st.lists(pair.filter(lambda ends: ends[0] != ends[1]), max_size=8))
    return tuple((names[a], names[b], draw(latency)) for a, b in ways)


@settings(max_examples=25)
@given(networks(), st.integers(0, 50), st.sampled_from([0.0, 1.5]), st.data())
def test_deliveries_take_what_a_walk_over_links_takes(
    tmp_path_factory: pytest.TempPathFactory,
    links: tuple[tuple[str, str, float | None], ...],
    seed: int,
    client_ms: float,
    data: st.DataObject,
) -> None:
    """On an idle network, in the plan and by content-based routing of everything."""
    folder, world = tmp_path_factory.mktemp("links"), replace(world_of(seed, sent=120), links=links)
    asked: dict[str, Any] = {"channels": data.draw(st.integers(0, 3))}
    asked["prices"] = {"direct": data.draw(st.sampled_from([0.5, 1.5]))}
    with stages_are_there():
        dataset = fanplan.open_dataset(write_world(folder / "dataset", world))
        plan = fanplan.design(dataset, **asked).save(folder / "plan")
        made = fanplan.simulate(
            plan, dataset, congestion="none", latency_ms=7.0, client_ms=client_ms
        )
    walk = DelayWalk(world, plan, 7.0, client_ms)
    assert made.delivered is not None
    assert dict(walk.delays()) == counted(made.delivered.plan)
    assert dict(walk.delays(naive=True)) == counted(made.delivered.naive)
    # The report says the same, in hops if no latency is known.
    told = planned_delays(load_plan(plan), dataset.path)
    assert dict(DelayWalk(world, plan, 1.0, 0.0).delays()) == counted(told)


def counted(delays: Any) -> dict[float, float]:
    return dict(zip(delays.ms.tolist(), delays.count.tolist(), strict=True))


def test_what_is_not_known_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, as JSON, and on the page; for some links, for all, or for none."""
    some = tuple((a, b, None if b == "b2" else ms) for a, b, ms in PLAIN)
    none = tuple((a, b, None) for a, b, _ in PLAIN)
    expected = {"all": (PLAIN, None, ""), "some": (some, 3.0, "is assumed for each link"),
                "none": (none, 100.0, "No latency is known: a link takes 100 ms")}  # fmt: skip
    for name, (links, ms, words) in expected.items():
        with stages_are_there():
            folder = write_world(tmp_path / name, replace(world_of(5), links=links))
            plan = fanplan.design(fanplan.open_dataset(folder)).save(tmp_path / f"{name}.plan")
            code, told = answer(capsys, "simulate", plan, folder)
            assert (code, told["latency_assumed_ms"]) == (0, ms)
            assert (told["ways_assumed"] > 0) == (ms is not None)
            assert run("simulate", plan, folder) == 0
            said = " ".join(capsys.readouterr().out.split())
            assert words in said
            out = tmp_path / f"{name}.report"
            page = fanplan.report(plan, out, workload=folder, curve=False).page.read_text()
        assert ("in the input: 3 ms is assumed for each" in page) == (name == "some")
        assert ("delay, ms" in page) == (name != "none")


def test_only_a_design_knows_the_way_to_clients(tmp_path: Path) -> None:
    with stages_are_there():
        dataset = fanplan.open_dataset(write_world(tmp_path / "d", world_of(6)))
        for name in ("overlay", "groups"):
            asked = {"overlay": tmp_path / "overlay"} if name == "groups" else {}
            plan = getattr(fanplan, name)(dataset, **asked).save(tmp_path / name)
            with pytest.raises(InputError, match="client_ms: this plan does not include the way"):
                fanplan.simulate(plan, dataset, client_ms=1.0)
