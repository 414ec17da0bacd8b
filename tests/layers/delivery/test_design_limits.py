"""What was asked of a design is proved of each of its layers, also if the plan is sealed again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from delivery_datasets import planned, world_of
from forging import forge
from ready import stages_are_there

import fanplan
from fanplan.verbs.check import check_plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    with stages_are_there():
        yield planned(tmp_path_factory.mktemp("made"), world_of(1))


FORGED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"delivery.params.channels": 1}, "plan.json: channels"),
    ({"delivery.channels": 1}, "plan.json: channels"),
    ({"channels.params.channels": 1}, "channels: more than 1"),
    (
        dict.fromkeys(
            ("delivery.params.channels", "delivery.channels", "channels.params.channels"), 1
        ),
        "channels: more than 1",
    ),
    ({"channels.params.unicast_limit": 0.0}, "plan.json: unicast_limit"),
    (
        dict.fromkeys(("channels.params.unicast_limit", "delivery.params.unicast_limit"), 0.0),
        "unicast: too much that several want",
    ),
    ({"channels.params.max_channel_rate": 0.001}, "channels: more than 0.001 messages/s"),
    ({"channels.params.max_channels_per_subscriber": 0}, "channel_subscribers: a subscriber"),
    ({"delivery.params.entries": 0}, "entries: too many"),
    ({"overlay.params.diameter": 1}, "limit: diameter"),
    ({"overlay.params.trees": 1, "overlay.params.degree": 1}, "limit: degree"),
)


def test_a_design_holds(made: tuple[Path, fanplan.Dataset]) -> None:
    plan, dataset = made
    assert check_plan(plan, dataset.path).violations == ()
    assert json.loads((plan / "plan.json").read_text())["delivery"]["unicast_counted"] > 0


@pytest.mark.parametrize(("changes", "told"), FORGED)
def test_a_limit_that_does_not_hold_is_told(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    plan, dataset = made
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    for place, value in changes.items():
        forge(forged, *place.split("."), to=value)
    found = check_plan(forged, dataset.path).violations
    assert any(text.startswith(told) for text in found), found
