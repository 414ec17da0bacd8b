"""Every limit that plan.json states is proved from the tables, also if the plan is sealed again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset
from forging import forge

import fanplan
from fanplan.data.dataset import Dataset
from fanplan.data.interest import load_interest
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import NO_PAIRS, Bound, ChannelMap, map_pairs
from fanplan.verbs.check import check_plan

WORLD = World(
    (
        Flow(frozenset({0, 1, 2}), 9.0, 90.0),
        Flow(frozenset({1, 2, 3}), 8.0, 80.0),
        Flow(frozenset({4, 5}), 7.0, 70.0),
        Flow(frozenset({0, 1, 4, 5}), 6.0, 60.0),
        Flow(frozenset({2, 3, 4}), 5.0, 50.0),
        Flow(frozenset({3}), 4.0, 40.0),
        Flow(frozenset({0, 5}), 0.5, 5.0),
    ),
    subscribers=6,
)
TRUE: dict[str, Any] = {
    "channels": 4,
    "unicast_limit": 0.9,
    "max_channels_per_subscriber": 4,
    "max_channel_rate": 20.0,
    "pinned": ("t0",),
    "off_multicast": ("t6",),
}
FORGED = (
    ("channels", 1, "channels: more than 1"),
    ("unicast_limit", 0.0, "unicast: too much that several want"),
    ("max_channels_per_subscriber", 0, "channel_subscribers: a subscriber is on too many"),
    ("max_channels_per_subscriber", {"s1": 0}, "channel_subscribers: a subscriber is on too many"),
    ("max_channels_per_subscriber", {"zz": 4}, "max_channels_per_subscriber: no subscriber (1)"),
    ("max_channel_rate", 0.001, "channels: more than 0.001 messages/s"),
    ("pinned", ["t0", "t6"], "pinned: not as asked for (1): 't6'"),
    ("pinned", ["zz"], "pinned: no flow or topic (1): 'zz'"),
    ("off_multicast", ["t0", "t6"], "off_multicast: not as asked for (1): 't0'"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset and a plan within all limits that can be given."""
    folder = tmp_path_factory.mktemp("limits")
    dataset = Dataset(write_dataset(folder / "dataset", WORLD))
    plan = fanplan.channels(dataset, **TRUE).save(folder / "plan")
    assert check_plan(plan, dataset.path).json() == {
        "ok": True,
        "missed": 0,
        "violations": [],
        "warnings": [],
        "stated": ["version", "seed", "channels.params"],
    }
    return dataset.path, plan


@pytest.mark.parametrize(("option", "value", "told"), FORGED)
def test_a_limit_that_does_not_hold_is_told(
    made: tuple[Path, Path], tmp_path: Path, option: str, value: Any, told: str
) -> None:
    dataset, plan = made
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    forge(forged, "channels", "params", option, to=value)
    (found,) = check_plan(forged, dataset).violations
    assert told in found


def test_a_flow_on_several_channels_is_told_where_one_is_allowed(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", World((Flow(frozenset(range(4))),), 4))
    map = ChannelMap(2, map_pairs([0, 0], [0, 1]), map_pairs([0, 0, 1, 1], [0, 1, 2, 3]), NO_PAIRS)
    none, ledger = Bound(0.0, "distinct audiences"), analytic_ledger(load_interest(dataset), map)
    base = plan_dataset(dataset, "unicast", channels=2)
    section = replace(
        base,
        map=map,
        ledger=ledger,
        bound=none,
        single_bound=none,
        params=replace(base.params, channels=2),
    )
    plan = save_plan(section, dataset, tmp_path / "plan").folder
    assert check_plan(plan, dataset).ok
    forge(plan, "channels", "params", "options", to={"multiple": False})
    (found,) = check_plan(plan, dataset).violations
    assert found == "channel_flows: on several channels, not one (1): 't0'"
