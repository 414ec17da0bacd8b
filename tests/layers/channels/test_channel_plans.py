"""Channels from Python: limits by name, replanning, curves, comparison, interruption."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, write_dataset

import fanplan
from fanplan.api import Dataset
from fanplan.core.errors import InfeasibleError, InputError
from fanplan.core.progress import Quiet
from fanplan.core.stop import Interrupt
from fanplan.data.engine import Engine
from fanplan.layers.channels import command

SUBSCRIBERS = 12


def world() -> World:
    """Two crowds with a topic each that only one of them wants, and loners."""
    left, right = frozenset(range(6)), frozenset(range(6, 12))
    crowds = [Flow(left - {i % 6}, 10.0 + i) for i in range(8)]
    crowds += [Flow(right - {6 + i % 6}, 12.0 + i) for i in range(8)]
    loners = [Flow(frozenset({i}), 1.0) for i in range(4)]
    cells = [Flow(left, 5.0, cell=(i,)) for i in range(2)]
    return World((*crowds, *loners, *cells, Flow(frozenset(), 3.0)), SUBSCRIBERS)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset(write_dataset(tmp_path_factory.mktemp("channels") / "dataset", world()))


def table(plan: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(plan / f"{name}.parquet").to_pylist()
    return rows


def test_names_pin_flows_and_keep_them_off(dataset: Dataset, tmp_path: Path) -> None:
    made = fanplan.channels(dataset, 3, pinned=["t16"], off_multicast=["t0", "t20[0]"])
    plan = made.save(tmp_path / "plan")
    direct = {row["flow"] for row in table(plan, "unicast")}
    carried = {row["flow"] for row in table(plan, "channel_flows")}
    assert "t16" in carried - direct
    assert {"t0", "t20[0]"} <= direct - carried
    params = json.loads((plan / "plan.json").read_text())["channels"]["params"]
    assert (params["pinned"], params["off_multicast"]) == (["t16"], ["t0", "t20[0]"])
    (pinned,), (off,) = made.explain("t16"), made.explain("t0")
    assert (pinned["asked_for"], off["asked_for"]) == ("pinned", "off multicast")
    assert off["runner_up_cost"] is None


@pytest.mark.parametrize("in_a_file", [False, True])
@pytest.mark.parametrize("limit", [2, {"s0": 0, "s3": 1}])
def test_memberships_are_limited_for_all_or_by_name(
    dataset: Dataset, limit: int | dict[str, int], in_a_file: bool, tmp_path: Path
) -> None:
    given: int | dict[str, int] | Path = limit
    if in_a_file:
        each = {f"s{i}": 2 for i in range(SUBSCRIBERS)} if isinstance(limit, int) else limit
        rows = "".join(f"{name},{most}\n" for name, most in each.items())
        given = tmp_path / "limits.csv"
        given.write_text(f"subscriber,channels\n{rows}")
    made = fanplan.channels(dataset, 4, max_channels_per_subscriber=given)
    joined = [row["subscriber"] for row in table(made.save(tmp_path / "p"), "channel_subscribers")]
    for subscriber in (f"s{i}" for i in range(SUBSCRIBERS)):
        most = limit if isinstance(limit, int) else limit.get(subscriber, 4)
        assert joined.count(subscriber) <= most


def test_a_channel_carries_no_more_than_its_rate(dataset: Dataset, tmp_path: Path) -> None:
    plan = fanplan.channels(dataset, 4, max_channel_rate=12.0).save(tmp_path / "plan")
    rate = {row["flow"]: row["rate"] for row in table(plan, "flows")}
    load: dict[int, float] = {}
    for row in table(plan, "channel_flows"):
        load[row["channel"]] = load.get(row["channel"], 0.0) + rate[row["flow"]]
    assert load
    assert max(load.values()) <= 12.0


def test_replanning_counts_changes_and_keeps_to_their_number(
    dataset: Dataset, tmp_path: Path
) -> None:
    old = fanplan.channels(dataset, 3, method="random", seed=3).save(tmp_path / "old")
    free = fanplan.channels(dataset, 3, start=old)
    few = fanplan.channels(dataset, 3, start=old, max_changes=6)
    assert "joins" in few.summary()
    assert "joins" in free.summary()
    new = few.save(tmp_path / "new")
    changed = 0
    for name, column in (("channel_flows", "flow"), ("channel_subscribers", "subscriber")):
        before, after = (
            {(row["channel"], row[column]) for row in table(plan, name)} for plan in (old, new)
        )
        changed += len(before ^ after)
    churn = few.summary()
    assert changed == churn["joins"] + churn["leaves"] + churn["added"] + churn["removed"] <= 6
    assert few.section.cost >= free.section.cost
    assert churn["fresh_cost"] is not None
    percent = 100 * (few.section.cost / churn["fresh_cost"] - 1)
    assert churn["given_up_percent"] == pytest.approx(percent)
    dear = fanplan.channels(dataset, 3, start=old, change_price=1e9)
    assert "joins" in dear.summary()
    assert (dear.summary()["joins"], dear.summary()["added"], dear.summary()["gone"]) == (0, 0, 0)


def test_replanning_for_changed_interest_finds_flows_by_name(
    dataset: Dataset, tmp_path: Path
) -> None:
    old = fanplan.channels(dataset, 3).save(tmp_path / "old")
    fewer = World(world().flows[:10], SUBSCRIBERS, key="key-2")
    later = Dataset(write_dataset(tmp_path / "later", fewer))
    made = fanplan.channels(later, 3, start=old)
    kept = {f"t{i}" for i in range(10)}
    gone = [row for row in table(old, "channel_flows") if row["flow"] not in kept]
    assert "joins" in made.summary()
    assert made.summary()["gone"] == len(gone) > 0


def test_cost_never_rises_with_channels_and_margins_add_up(
    dataset: Dataset, tmp_path: Path
) -> None:
    curve = fanplan.curve(dataset, [4, 1, 2], method="random")
    points = curve.points()
    assert [point["channels"] for point in points] == [1, 2, 4]
    costs = [curve.unicast_cost, *(point["cost"] for point in points)]
    assert all(costs[i + 1] <= costs[i] for i in range(1, 3))
    steps = zip(points, (1, 1, 2), strict=True)
    saved = sum(point["marginal"] * step for point, step in steps)
    assert saved == pytest.approx(costs[0] - costs[-1])
    folder = curve.save(tmp_path / "curve")
    assert json.loads((folder / "curve.json").read_text())["points"] == points
    for point in points:
        assert fanplan.check(folder / str(point["channels"]), dataset).ok


def test_an_interrupt_ends_a_curve_and_a_comparison(dataset: Dataset) -> None:
    curve = fanplan.curve(dataset, [1, 2, 3], stop=lambda best: True)
    assert [made.ended for made in curve.plans] == ["interrupt"]
    assert fanplan.channels(dataset, 3, stop=lambda best: True).compared(["unicast"]) == []


def test_what_is_given_up_is_not_told_if_the_search_afresh_ended_early(
    dataset: Dataset, tmp_path: Path
) -> None:
    old = fanplan.channels(dataset, 3, method="random").save(tmp_path / "old")
    made = fanplan.channels(dataset, 3, start=old, stop=lambda best: True)
    assert "joins" in made.summary()
    assert (made.summary()["fresh_cost"], made.summary()["given_up_percent"]) == (None, None)


def test_a_method_that_cannot_is_told_and_does_not_end_the_others(dataset: Dataset) -> None:
    rows = fanplan.channels(dataset, 3).compared(["exact", "unicast"])
    assert "too many to enumerate" in rows[0]["refused"]
    assert rows[1]["cost"] > 0


def test_a_curve_that_would_be_refused_at_its_end_is_refused_at_once(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []
    monkeypatch.setattr(command, "planned_channels", lambda *_: planned.append(1))
    with pytest.raises(InputError, match="100000"):
        fanplan.curve(dataset, [1, 2, 100_000], method="round-robin")
    assert planned == []


def test_compared_methods_cost_what_their_plans_cost(dataset: Dataset) -> None:
    compared = fanplan.channels(dataset, 3).compared(["unicast", "tock+greedy-flow"])
    alone = fanplan.channels(dataset, 3, method="tock", unicast="greedy-flow")
    assert [row["method"] for row in compared] == ["unicast", "tock+greedy-flow"]
    assert compared[1]["cost"] == alone.section.cost


def test_explanations_of_flow_topic_and_subscriber(dataset: Dataset) -> None:
    made = fanplan.channels(dataset, 3)
    (flow,) = made.explain("t3")
    assert (flow["flow"], flow["audience"], flow["rate"]) == ("t3", 5, 13.0 / 2.0)
    assert [item["flow"] for item in made.explain("t20")] == ["t20[0]"]
    (subscriber,) = made.explain("s3")
    wanted = sum(f.messages for f in world().wanted if 3 in f.audience) / 2.0
    assert subscriber["wanted_rate"] == wanted
    got = sum(joined["wanted_rate"] for joined in subscriber["joined"])
    assert got + subscriber["unicast_rate"] >= wanted


def test_the_first_interrupt_keeps_the_best_plan_so_far(dataset: Dataset, tmp_path: Path) -> None:
    class Interrupting(Quiet):
        def update(self, *, best: float) -> None:  # noqa: ARG002
            if not stop.asked:
                os.kill(os.getpid(), signal.SIGINT)

    with Interrupt() as stop:
        made = fanplan.channels(dataset, 3, stop=stop, engine=Engine(progress=Interrupting()))
    assert made.ended == "interrupt"
    assert made.summary()["ended_early_by"] == "interrupt"
    made.save(tmp_path / "plan")


BAD = {
    "more channels than flows": ({"channels": 99}, "22 flows"),
    "unknown pin": ({"pinned": ["t99"]}, "'t99'"),
    "nobody wants it": ({"pinned": ["t22"]}, "nobody wants"),
    "misspelt": ({"off_multicast": ["t2O"]}, "Did you mean"),
    "both": ({"pinned": ["t1"], "off_multicast": ["t1", "t2"]}, "'t1' must go by multicast and"),
    "off but no unicast": (
        {"off_multicast": ["t1"], "unicast_limit": 0},
        "'t1' must go by unicast",
    ),
    "unknown subscriber": ({"max_channels_per_subscriber": {"s99": 1}}, "'s99'"),
    "no such file": ({"max_channels_per_subscriber": "nowhere.csv"}, "nowhere.csv"),
    "changes of nothing": ({"max_changes": 3}, "no older plan"),
    "no such plan": ({"start": "nowhere"}, "nowhere"),
    "no time": ({"time": 0}, "0 seconds"),
    "negative rate": ({"max_channel_rate": -1.0}, "max_channel_rate"),
    "not an option": ({"method": "tock", "pinned": ["t1"]}, "not an option of the method tock"),
}


@pytest.mark.parametrize(("options", "named"), BAD.values(), ids=BAD.keys())
def test_bad_wishes_are_input_errors_that_name_the_item(
    dataset: Dataset, options: dict[Any, Any], named: str
) -> None:
    number = options.get("channels", 3)
    others = {name: value for name, value in options.items() if name != "channels"}
    with pytest.raises(InputError, match=named):
        fanplan.channels(dataset, number, **others)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("subscriber,limit\ns0,1\n", "no column channels"),
        ("subscriber,channels\ns0,-1\n", "row 1"),
        ("subscriber,channels\ns0,1\ns0,2\n", "twice"),
    ],
)
def test_a_bad_table_of_limits_is_told(
    dataset: Dataset, tmp_path: Path, content: str, named: str
) -> None:
    (tmp_path / "limits.csv").write_text(content)
    with pytest.raises(InputError, match=named):
        fanplan.channels(dataset, 3, max_channels_per_subscriber=tmp_path / "limits.csv")


def test_limits_that_cannot_be_met_name_the_binding_one_and_what_would_do(
    dataset: Dataset,
) -> None:
    with pytest.raises(InfeasibleError, match="max_channel_rate") as caught:
        fanplan.channels(dataset, 3, unicast_limit=0.0, max_channel_rate=20.0)
    enough = caught.value.value / 2.0
    made = fanplan.channels(dataset, 3, unicast_limit=0.0, max_channel_rate=enough * 1.001)
    assert made.section.counted == 0


def test_no_traffic_cannot_be_planned(tmp_path: Path) -> None:
    silent = World((Flow(frozenset({0}), 0.0),), 1)
    dataset = Dataset(write_dataset(tmp_path / "silent", silent))
    with pytest.raises(InputError, match="rates"):
        fanplan.channels(dataset, 1)
