"""What was asked of a design is proved of each of its layers, also if the plan is sealed again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
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


@pytest.mark.parametrize("layer", ["delivery", "channels", "overlay"])
def test_a_bound_is_no_higher_than_what_is_proved(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, layer: str
) -> None:
    plan, dataset = made
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    told = json.loads((plan / "plan.json").read_text())[layer]
    forge(forged, layer, "bound", to=told["bound"] * 1.001)
    found = check_plan(forged, dataset.path).violations
    assert any("bound" in text for text in found), found


def step_of(plan: Path, name: str) -> int:
    steps = json.loads((plan / "plan.json").read_text())["delivery"]["steps"]
    return [step["name"] for step in steps].index(name)


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ("flooding on a random tree", "forwarding"),
        ("flooding on a random tree", "matching"),
        ("flooding on a random tree", "last hop"),
        ("content routing on a random tree", "forwarding"),
        ("planned tree", "subscriptions"),
        ("layer by layer", "matching"),
        ("all together", "multicast"),
    ],
)
def test_a_cost_that_the_plan_is_set_beside_is_recounted(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, step: str, part: str
) -> None:
    """It is raised tenfold, the step's sum with it."""
    plan, dataset = made
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    at = step_of(plan, step)
    parts = json.loads((plan / "plan.json").read_text())["delivery"]["steps"][at]["parts"]
    parts[part] *= 10
    forge(forged, "delivery", "steps", str(at), "parts", to=parts)
    forge(forged, "delivery", "steps", str(at), "cost", to=sum(parts.values()))
    found = check_plan(forged, dataset.path).violations
    assert any(text.startswith(f"plan.json: delivery.steps, {step}") for text in found), found


def test_no_step_can_be_left_out(made: tuple[Path, fanplan.Dataset], tmp_path: Path) -> None:
    plan, dataset = made
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    steps = json.loads((plan / "plan.json").read_text())["delivery"]["steps"]
    forge(forged, "delivery", "steps", to=steps[1:])
    (found,) = check_plan(forged, dataset.path).violations
    assert found.startswith("plan.json: delivery.steps (1): not flooding")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", [{}, {"brokers": False}])
@pytest.mark.parametrize("exact", [True, False])
def test_steps_of_other_designs_hold(
    tmp_path: Path, seed: int, changes: dict[str, Any], exact: bool
) -> None:
    with stages_are_there():
        plan, dataset = planned(tmp_path, replace(world_of(seed), **changes), exact=exact)
    assert check_plan(plan, dataset.path).violations == ()
