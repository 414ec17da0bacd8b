"""Replay of a design: the ledger, and a walk by hand through the plan's tables, agree with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from delivery_datasets import World, later, planned, world_of, write_world
from delivery_walk import walked
from forging import seal
from pyspark.sql import SparkSession
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.data.engine import Engine
from fanplan.layers.delivery.replayed import ReplayedDelivery

HERE = ("--master", "local[2]")
COUNTED = (
    *("sent_multicast", "sent_unicast", "received_wanted", "received_unwanted", "missed"),
    *("forwarded", "matched", "received_bytes"),
)


@pytest.fixture(autouse=True)
def _stages_are_there(spark: SparkSession) -> Iterator[None]:
    with stages_are_there():
        yield


def replayed(plan: Path, dataset: fanplan.Dataset) -> ReplayedDelivery:
    found = fanplan.replay(plan, dataset, engine=Engine("local[2]"))
    assert isinstance(found, ReplayedDelivery)
    return found


def counts(found: ReplayedDelivery) -> dict[str, float]:
    told = asdict(found.ledger) | {"direct": found.measured.direct}
    return {name: told[name] for name in (*COUNTED, "direct")}


def by_hand(world: World, plan: Path) -> dict[str, float]:
    walk = walked(world, plan)
    return {name: float(walk[name]) for name in (*COUNTED, "direct")}


def test_the_ledger_of_a_design_is_what_its_publications_measure(tmp_path: Path) -> None:
    """On another day strangers are missed, and new topics go by default routing."""
    world = world_of(4)
    plan, dataset = planned(tmp_path, world)
    found = replayed(plan, dataset)
    assert (found.ok, found.differences, found.verdict()) == (True, {}, "as planned")
    assert counts(found) == by_hand(world, plan)
    assert min(found.ledger.sent_multicast, found.measured.direct, found.ledger.forwarded) > 0
    assert found.marks is not None
    other = later(world, 5)
    dataset = fanplan.open_dataset(write_world(tmp_path / "later", other, key="later"))
    found = replayed(plan, dataset)
    assert counts(found) == by_hand(other, plan)
    assert (found.ok, found.same, found.differences) == (False, False, {})
    assert (found.entered.strangers, found.entered.unplanned > 0) == (2, True)
    dataset = fanplan.open_dataset(write_world(tmp_path / "new", other, key="new", grid="atomic"))
    with pytest.raises(InputError, match="was planned for other input, with other cells"):
        replayed(plan, dataset)


def test_who_is_taken_off_a_channel_misses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Filters cut cells here: what is wanted is counted by filters all the same."""
    world = world_of(2, (0.0, 30.0, 50.0, 80.0, 100.0))
    plan, dataset = planned(tmp_path, world, exact=False)
    path = plan / "channel_subscribers.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    assert run("replay", plan, dataset.path, *HERE) == 2
    assert "channel_subscribers.parquet (hash differs)" in capsys.readouterr().err
    seal(plan)
    code, told = answer(capsys, "replay", plan, dataset.path, *HERE)
    walk = by_hand(world, plan)
    assert (code, told["ok"], told["missed"]) == (1, False, walk["missed"])
    assert walk["missed"] > 0
    assert {name: told["ledger"][name] for name in COUNTED} == {n: walk[n] for n in COUNTED}
    assert {"received_wanted", "missed", "received_bytes", "multicast"} <= {*told["broken"]}


def test_without_brokers_there_is_nothing_but_channels(tmp_path: Path) -> None:
    world = replace(world_of(3), brokers=False)
    plan, dataset = planned(tmp_path, world)
    found = replayed(plan, dataset)
    assert (found.ok, found.differences) == (True, {})
    assert counts(found) == by_hand(world, plan)
