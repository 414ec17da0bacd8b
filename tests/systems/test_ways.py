"""Ways say of each flow what replay, simulation and a walk by hand say of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from delivery_datasets import World, flow_of, planned, world_of, write_world
from delivery_walk import Walk
from ready import stages_are_there
from system_worlds import design

import fanplan
from fanplan.core.arrays import Longs
from fanplan.data.reader import read_stage
from fanplan.layers.registry import load_plan
from fanplan.live.entry import read_entry
from fanplan.systems import publications
from fanplan.systems.traffic import planned_ways
from fanplan.systems.ways import Figures, Ways, read_clients, read_ways


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def ways_of(plan: Path, dataset: fanplan.Dataset, world: World) -> tuple[Ways, Figures]:
    """The ways of all that a world sends, and what they predict."""
    stored = load_plan(plan)
    clients = read_clients(stored, dataset.path)
    names = read_stage(dataset.path, "flows", ("flow",))["flow"].to_pylist()
    entry = clients.entry_of()
    sent = Counter((names.index(flow_of(p[2], p[4])), entry[p[1]]) for p in world.sent)
    flow, at = np.array([*sent], np.int64).T
    ways = read_ways(stored, dataset.path, flow, at)
    found = ways.parcels(flow, at)
    messages: Longs = np.zeros(len(ways.flow), np.int64)
    np.add.at(messages, found[found >= 0], np.array([*sent.values()])[found >= 0])
    return ways, ways.counted(messages)


def total(figures: Figures, *want: str) -> int:
    return sum(n for key, n in figures.items() if {*want} <= {*key})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("brokers", [True, False])
def test_a_design_is_what_a_walk_counts(seed: int, brokers: bool, tmp_path: Path) -> None:
    world = replace(world_of(seed), brokers=brokers)
    plan, dataset = planned(tmp_path, world)
    _, figures = ways_of(plan, dataset, world)
    walk = Walk(world, plan).run()
    assert total(figures, "link") == walk["forwarded"]
    assert total(figures, "channel") == walk["sent_multicast"]
    assert total(figures, "broker") == walk["sent_unicast"]
    assert total(figures, "subscriber", "wanted") == walk["received_wanted"]
    unwanted = total(figures, "subscriber", "unwanted") + total(figures, "subscriber", "twice")
    assert unwanted == walk["received_unwanted"]
    assert total(figures, "subscriber", "missed") == 0
    if brokers:
        assert links_of(figures) == simulated_links(plan, dataset)


def links_of(figures: Figures) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for key, count in figures.items():
        if key[0] == "link":
            found[key[1], key[2]] += count
    return found


def simulated_links(plan: Path, dataset: fanplan.Dataset) -> Counter[tuple[str, str]]:
    """Messages in each direction of each link of a run."""
    found: Counter[tuple[str, str]] = Counter()
    for row in fanplan.simulate(plan, dataset, times="drawn").link_table.to_pylist():
        found[row["a"], row["b"]] += row["a_to_b"]
        found[row["b"], row["a"]] += row["b_to_a"]
    return +found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("groups", [False, True])
def test_overlays_and_groups_are_what_a_simulation_counts(
    seed: int, groups: bool, tmp_path: Path
) -> None:
    world = world_of(seed)
    dataset = fanplan.open_dataset(write_world(tmp_path / "dataset", world))
    plan = fanplan.overlay(dataset).save(tmp_path / "overlay")
    if groups:
        made = fanplan.groups(dataset, overlay=plan, select="top:60%")
        plan = made.save(tmp_path / "groups")
    ways, figures = ways_of(plan, dataset, world)
    assert links_of(figures) == simulated_links(plan, dataset)
    wanted = sum(len(world.wanting(p[2], p[4])) for p in world.sent)
    assert total(figures, "subscriber", "wanted") == total(figures, "last hops") == wanted
    assert total(figures, "subscriber", "unwanted") == 0
    assert (total(figures, "link", "tree") < total(figures, "link")) == groups
    assert ways.size < len(ways.flow)


@pytest.mark.parametrize("rows", [7, 1 << 18])
def test_publications_are_read_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """However few are looked at together, an export has all ways, and a trial the first by time."""
    monkeypatch.setattr(publications, "BATCH_ROWS", rows)
    stored, dataset, traffic = design(tmp_path)
    ways = planned_ways(stored, dataset)
    for name in ("flow", "entry", "way"):
        assert np.array_equal(getattr(ways, name), getattr(traffic.ways, name)), name
    tables = read_entry(dataset)
    first = publications.read_published(dataset, tables, 40)
    whole = publications.read_published(dataset, tables).only(slice(40))
    assert np.array_equal(first.time, whole.time)
    assert np.array_equal(first.topic, whole.topic)
    who = [[own.publishers[i] for i in own.publisher] for own in (first, whole)]
    assert who[0] == who[1]
