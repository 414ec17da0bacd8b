"""Whatever a plan says is proved or named as stated, also if it is edited and sealed again.

`make chaos` runs the whole campaign; here is a part of it that begins elsewhere in each plan.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from delivered import holds
from forged_worlds import PLANS, Made, make_plans
from forging import campaign, corruptions, forge, forge_rows
from ready import stages_are_there

import fanplan
from fanplan.verbs.check import check_plan

EVERY = {"design": 40, "flat": 20, "switches": 20}
"""One of so many corruptions is tried here, of other plans one of eight."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Made]]:
    with stages_are_there():
        yield make_plans(tmp_path_factory.mktemp("forged"))


def test_there_are_enough_to_forge(made: dict[str, Made]) -> None:
    assert sum(1 for plan, _ in made.values() for _ in corruptions(plan)) >= 1_000


@pytest.mark.parametrize("name", PLANS)
def test_no_forged_claim_is_accepted(made: dict[str, Made], tmp_path: Path, name: str) -> None:
    every, seed = EVERY.get(name, 8), list(PLANS).index(name)
    fates = [
        (fate, corruption.name)
        for _, corruption, fate in campaign({name: made[name]}, tmp_path / "work", seed, every)
    ]
    assert [told for fate, told in fates if fate == "ACCEPTED"] == []
    count = Counter(fate for fate, _ in fates)
    assert count["refused"] > len(fates) / 2, count


@pytest.mark.parametrize("name", sorted(PLANS.keys() - {"cells", "marking", "merged", "switches"}))
def test_the_count_that_judges_finds_true_plans_true(made: dict[str, Made], name: str) -> None:
    assert check_plan(*made[name]).violations == ()
    assert holds(*made[name])


@pytest.mark.parametrize(
    ("name", "table"),
    [("channels", "channel_subscribers"), ("overlay", "links"), ("groups", "group_members")],
)
def test_the_count_that_judges_finds_missed_messages(
    made: dict[str, Made], tmp_path: Path, name: str, table: str
) -> None:
    plan, dataset = made[name]
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    forge_rows(forged, table, [])
    assert not holds(forged, dataset)


@pytest.mark.parametrize(
    ("name", "place", "value", "told"),
    [
        ("single", "channels.single_bound", 0.9999, "plan.json: single_bound"),
        ("channels", "channels.bound", 0.9999, "plan.json: bound"),
        ("groups", "groups.bound", 0.999, "plan.json: groups.bound"),
        ("best", "groups.bound", 0.999, "plan.json: groups.bound"),
        ("overlay", "overlay.weight", 2.0, "plan.json: overlay.weight"),
        ("allocate", "overlay.allocation.bound", 2, "plan.json: overlay.allocation.bound"),
        ("allocate", "overlay.allocation.cost", 2.0, "plan.json: overlay.allocation.cost"),
    ],
)
def test_a_forged_figure_is_told(
    made: dict[str, Made], tmp_path: Path, name: str, place: str, value: float, told: str
) -> None:
    """Bounds are raised to just below the cost, or lowered if they are of a benefit."""
    plan, dataset = made[name]
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    layer, *rest = place.split(".")
    section = check_content(plan)[layer]
    base = section["cost"] if rest[0] in ("bound", "single_bound") and layer == "channels" else None
    for key in rest[:-1]:
        section = section[key]
    forge(forged, layer, *rest, to=(base or section[rest[-1]]) * value)
    found = check_plan(forged, dataset).violations
    assert any(text.startswith(told) for text in found), found


def check_content(plan: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((plan / "plan.json").read_text())
    return content


def test_warnings_of_a_design_are_those_that_are_due(made: dict[str, Made], tmp_path: Path) -> None:
    plan, dataset = made["design"]
    forged = Path(shutil.copytree(plan, tmp_path / "plan"))
    forge(forged, "delivery", "warnings", to=["no marking: nobody advertises"])
    (found,) = check_plan(forged, dataset).violations
    assert found.startswith("plan.json: delivery.warnings: invented (1): no marking")


@pytest.mark.parametrize("name", ["single", "allocate", "best", "marking", "design"])
def test_what_is_stated_is_proved_by_planning_again(made: dict[str, Made], name: str) -> None:
    plan, dataset = made[name]
    assert fanplan.replan(plan, fanplan.open_dataset(dataset)) == []


def test_what_tables_do_not_prove_is_named(made: dict[str, Made]) -> None:
    assert check_plan(*made["channels"]).stated == ("version", "seed", "channels.params")
    told = check_plan(*made["design"]).json()["stated"]
    assert {"delivery.layered", "overlay.params"} <= set(told)
