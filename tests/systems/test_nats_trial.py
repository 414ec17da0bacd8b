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


def test_groups_on_a_tree_for_each_entry(tmp_path: Path) -> None:
    links = (("b0", "b1", 1.0), ("b1", "b2", 1.0), ("b2", "b3", 1.0), ("b3", "b4", 1.0),
             ("b4", "b5", 1.0), ("b0", "b5", 1.0), ("b1", "b4", 1.0))  # fmt: skip
    dataset = dataset_of(tmp_path, replace(world_of(6), links=links))
    plan = fanplan.groups(dataset, trees="per-publisher", select="top:40%").save(tmp_path / "plan")
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


def test_times_are_kept_at_a_speed(tmp_path: Path) -> None:
    plan, dataset = designed(tmp_path, world_of(5))
    result = tried(plan, dataset, publications=100, speed=100.0)
    assert result.ok
    assert 0.9 < result.facts["seconds"] < 10
