"""Plans on real NATS servers: what was predicted is what servers and subscribers count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import delivery_datasets
import pytest
from delivery_datasets import World, world_of
from nats_worlds import dataset_of, designed, needs_nats, total, tried
from ready import stages_are_there

import fanplan
from fanplan.core.progress import quiet
from fanplan.layers.registry import load_plan
from fanplan.systems.nats.servers import server_program
from fanplan.systems.nats.trial import run_trial
from fanplan.systems.params import TrialParams
from fanplan.systems.traffic import read_traffic
from fanplan.systems.ways import TREE

pytestmark = needs_nats


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def test_an_overlay_is_carried_by_leafnodes_alone(tmp_path: Path) -> None:
    world = world_of(3)
    dataset = dataset_of(tmp_path, world)
    plan = fanplan.overlay(dataset).save(tmp_path / "plan")
    result = tried(plan, dataset)
    wanted = sum(len(world.wanting(p[2], p[4])) for p in world.sent)
    assert result.ok
    assert total(result, "subscriber wanted") == total(result, "broker last hops") == wanted
    assert total(result, "link leafnode") > 0
    assert result.facts["agents"] == total(result, "link agent") == 0


def test_several_trees_are_an_account_each(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path, world_of(4))
    plan = fanplan.overlay(dataset, trees=2).save(tmp_path / "plan")
    assert total(tried(plan, dataset), "link leafnode") > 0


def test_groups_leave_the_tree_by_agents(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path, world_of(1))
    overlay = fanplan.overlay(dataset).save(tmp_path / "overlay")
    plan = fanplan.groups(dataset, overlay=overlay, select="top:60%").save(tmp_path / "plan")
    result = tried(plan, dataset)
    assert total(result, "link leafnode") > 0
    assert total(result, "link agent") > 0


def test_channels_without_brokers_are_subjects_of_one_server(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path, replace(world_of(2), brokers=False))
    plan = fanplan.channels(dataset, channels=3).save(tmp_path / "plan")
    result = tried(plan, dataset, publications=200)
    assert total(result, "channel") > 0
    assert result.facts["servers"] == 1
    assert result.facts["publications"] + result.facts["wanted_by_nobody"] == 200


@pytest.mark.parametrize("seed", range(20))
def test_random_designs_do_what_they_say(seed: int, tmp_path: Path) -> None:
    result = tried(*designed(tmp_path, replace(world_of(seed), brokers=seed % 5 != 4)))
    assert total(result, "subscriber missed") == 0
    assert total(result, "channel") > 0


def test_names_that_no_subject_can_hold_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(name: str) -> str:
        return f'{name} ü.>*"{{#'

    def renamed(names: dict[str, Any]) -> dict[str, Any]:
        return {odd(name): of for name, of in names.items()}

    world = world_of(1)
    monkeypatch.setattr(delivery_datasets, "SITES", renamed(delivery_datasets.SITES))
    entries = {odd(who): odd(broker) for who, broker in delivery_datasets.PUBLISHERS.items()}
    monkeypatch.setattr(delivery_datasets, "PUBLISHERS", entries)
    world = World(
        {odd(who): odd(broker) for who, broker in world.homes.items()},
        tuple((odd(who), odd(topic), lo, hi) for who, topic, lo, hi in world.wants),
        tuple((time, odd(who), odd(t), size, x) for time, who, t, size, x in world.sent),
    )
    result = tried(*designed(tmp_path, world))
    assert total(result, "link leafnode") > 0
    assert total(result, "link agent") > 0


# ---- what goes wrong


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    """A design with more publications, so that some are under way at any time."""
    with stages_are_there():
        yield designed(tmp_path_factory.mktemp("made"), world_of(1, sent=1500))


def test_what_is_lost_while_a_server_is_away_is_counted(
    made: tuple[Path, fanplan.Dataset],
) -> None:
    result = tried(*made, kill="b3")
    assert result.facts["lost_while_away"] > 0
    assert total(result, "subscriber missed") == 0


@pytest.mark.parametrize("broker", ["b3", "b2"])
def test_durable_publications_are_not_lost(broker: str, made: tuple[Path, fanplan.Dataset]) -> None:
    result = tried(*made, kill=broker, durable=True)
    assert result.facts["sent_again"] == 1000
    assert total(result, "while away lost") == result.facts["lost_while_away"] == 0
    assert total(result, "while away neither planned nor marked") == 0


def test_a_plan_with_one_membership_removed_is_found_out(
    made: tuple[Path, fanplan.Dataset],
) -> None:
    plan, dataset = load_plan(made[0]), made[1].path
    traffic = read_traffic(plan, dataset, 200)
    channel, who = traffic.ways.members
    fewer = replace(traffic.ways, members=(channel[1:], who[1:]))
    control = replace(traffic, ways=fewer)
    result = run_trial(
        plan, dataset, traffic, TrialParams(), quiet(), server_program(), enacting=control
    )
    assert not result.ok
    name = traffic.ways.subscribers[who[0]]
    assert {row.key for row in result.differences} >= {
        ("subscriber", name, "missed"),
        ("subscriber", name, "wanted"),
    }
    assert "not ready" in result.notes[0]


def test_a_missing_link_is_found_out(made: tuple[Path, fanplan.Dataset]) -> None:
    plan, dataset = load_plan(made[0]), made[1].path
    traffic = read_traffic(plan, dataset, 200)
    hops = traffic.ways.hops
    at = list(hops.kind).index(TREE)
    ends = sorted((int(hops.tail[at]), int(hops.head[at])))
    (edges,) = traffic.ways.edges
    fewer = replace(traffic.ways, edges=(edges[~(edges == ends).all(axis=1)],))
    control = replace(traffic, ways=fewer)
    result = run_trial(
        plan, dataset, traffic, TrialParams(), quiet(), server_program(), enacting=control
    )
    assert not result.ok
    assert any(row.key[0] == "link" for row in result.differences)
