"""Plans side by side: the best is marked where plans can be compared, and only there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset

import fanplan
from fanplan.core.errors import InputError
from fanplan.core.prices import Weights
from fanplan.data.interest import load_interest
from fanplan.layers.channels.methods import channels_by_method, find_method

FLOWS = (Flow(frozenset({0, 1}), 4.0), Flow(frozenset({1, 2}), 3.0), Flow(frozenset({2}), 1.0))
WORLD = World(FLOWS, subscribers=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("compare")
    dataset = write_dataset(folder / "dataset", WORLD)
    for method in ("broadcast", "unicast"):
        save_plan(plan_dataset(dataset, method), dataset, folder / method)
    found = find_method("unicast")
    dearer = found.params(1, Weights(1.0, 1.0, 3.0))
    plan = channels_by_method(load_interest(dataset, found.rows), found, dearer, 0)
    save_plan(plan, dataset, folder / "dearer")
    later = write_dataset(folder / "later", World(FLOWS[:2], 3, seconds=5.0, key="key-2"))
    save_plan(plan_dataset(later, "unicast"), later, folder / "other")
    return folder


def figures(folder: Path, *names: str) -> tuple[dict[Any, Any], list[str]]:
    told = fanplan.compare(*(folder / name for name in names)).json()
    return told["figures"]["channels"], told["notes"]


def test_the_best_is_marked(folder: Path) -> None:
    told, notes = figures(folder, "broadcast", "unicast")
    assert told["cost"] == {"values": [32.0, 30.0], "best": ["unicast"]}
    assert told["received_unwanted"] == {"values": [9.0, 0.0], "best": ["unicast"]}
    for part in ("sent_unicast", "sent_multicast", "unicast_fraction", "channels", "memberships"):
        assert told[part]["best"] == [], "parts and sizes are traded against each other"
    assert told["received_wanted"]["best"] == [], "all alike"
    assert told["memberships"]["values"] == [3.0, 0.0]
    assert notes == []


def test_other_weights_are_said_and_cost_has_no_best(folder: Path) -> None:
    told, notes = figures(folder, "unicast", "dearer")
    assert told["cost"]["best"] == []
    assert notes == ["costs of channels are weighed differently, so that no best is marked there"]
    told, _ = figures(folder, "broadcast", "dearer")
    assert told["received_unwanted"]["best"] == ["dearer"], "messages are messages"


def test_other_input_is_said_and_nothing_has_a_best(folder: Path) -> None:
    told, notes = figures(folder, "broadcast", "other")
    assert told["cost"]["values"][0] == 32.0
    assert not any(line["best"] for line in told.values())
    assert "other input" in notes[0]
    assert "the windows differ (2, 5 seconds)" in notes[1]


def test_parameters_that_differ(folder: Path) -> None:
    found = fanplan.compare(folder / "broadcast", folder / "unicast", folder / "dearer")
    assert found.differing["channels.method"] == ("broadcast", "unicast", "unicast")
    assert found.differing["channels.prices.unicast"] == (1.0, 1.0, 3.0)
    assert "channels.prices.received" not in found.differing


def test_one_plan_or_an_edited_one_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 is too few"):
        fanplan.compare(folder / "broadcast")
    dataset = folder / "dataset"
    edited = save_plan(plan_dataset(dataset, "broadcast"), dataset, tmp_path / "edited").folder
    content = json.loads((edited / "plan.json").read_text())
    content["channels"]["cost"] = 1.0
    (edited / "plan.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"edited since it was written: plan\.json"):
        fanplan.compare(folder / "broadcast", edited)
