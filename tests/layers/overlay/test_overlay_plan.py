"""Overlay plans: what is written passes the check, and the check names whatever is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import forge
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay_worlds import OverlayWorld, random_world, write_overlay_dataset
from ready import stages_are_there

import fanplan
from fanplan.core.errors import CheckError, InfeasibleError, InputError
from fanplan.layers.overlay.params import RANKINGS, LoadKind, Tree
from fanplan.verbs.check import check_plan


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


@pytest.fixture
def dataset(tmp_path: Path) -> fanplan.Dataset:
    return fanplan.Dataset(write_overlay_dataset(tmp_path / "dataset", random_world(1)))


TREES = ("overlap", "cover", "hybrid", "interest", "random", "improved")


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(TREES), st.booleans())
def test_trees_of_all_kinds_pass(
    tmp_path_factory: pytest.TempPathFactory, seed: int, metric: Any, links: bool
) -> None:
    folder = tmp_path_factory.mktemp("world")
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "d", random_world(seed, links=links)))
    made = fanplan.overlay(dataset, metric=metric, seed=seed)
    plan = made.save(folder / "plan")
    result = check_plan(plan, dataset.path)
    assert (result.violations, result.missed) == ((), 0)
    told = made.summary()
    assert told["links"] == told["brokers"] - 1 == 4
    assert told["link_messages"] >= told["bound"]
    assert pq.read_table(plan / "links.parquet").num_rows == 4


@pytest.mark.parametrize("scale", ["all", "own"])
def test_hybrids_of_both_scales_pass_the_check(
    dataset: fanplan.Dataset, tmp_path: Path, scale: Any
) -> None:
    made = fanplan.overlay(dataset, metric="hybrid", alpha=0.4, scale=scale)
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).violations == ()
    other = {"all": "own", "own": "all"}[scale]
    path = tmp_path / "plan" / "plan.json"
    path.write_text(path.read_text().replace(f'"scale": "{scale}"', f'"scale": "{other}"'))
    assert any("weight" in one for one in check_plan(path.parent, dataset.path).violations)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(RANKINGS), st.sampled_from(["exact", "estimate"]))
def test_allocations_of_all_kinds_pass(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ranking: Any, load: LoadKind
) -> None:
    folder = tmp_path_factory.mktemp("world")
    world = random_world(seed, brokers=16, capacity=40.0)
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "d", world))
    made = fanplan.allocate(dataset, ranking=ranking, load=load, seed=seed)
    assert check_plan(made.save(folder / "plan"), dataset.path).violations == ()
    told = made.summary()
    assert told["brokers_bound"] <= told["brokers"]
    assert told["clients"] == len(world.publishers) + len(world.subscribers)


def test_several_trees_pass_and_never_cost_more(tmp_path: Path) -> None:
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", random_world(3, brokers=9)))
    one = fanplan.overlay(dataset, prices={"delayed": 1.0})
    made = fanplan.overlay(dataset, prices={"delayed": 1.0}, trees=3)
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok

    def objective(told: Any) -> Any:
        arrivals = told["link_messages"] / told["messages_per_arrival"]
        return told["link_messages"] + told["delay_mean"] * arrivals

    assert objective(made.summary()) <= objective(one.summary()) * (1 + 1e-9)
    if made.summary()["trees"] > 1:
        links = pq.read_table(tmp_path / "plan" / "tree_links.parquet")
        assert links.num_rows == made.summary()["trees"] * 8


def test_limits_hold_in_the_plan_and_are_recorded_by_name(
    dataset: fanplan.Dataset, tmp_path: Path
) -> None:
    within = [("p0", ["b1", "s3"], 3)]
    made = fanplan.overlay(dataset, diameter=4, degree=3, degrees={"b0": 2}, within=within)
    plan = made.save(tmp_path / "plan")
    section = json.loads((plan / "plan.json").read_text())["overlay"]
    assert (section["limits"]["degree"], section["limits"]["degrees"]) == (3, {"b0": 2})
    assert section["limits"]["diameter"] == 4
    world = random_world(1)
    ends = {(f"b{world.publishers[0]}", far) for far in ("b1", f"b{world.subscribers[3]}")}
    assert {(a, b) for a, b, _ in section["limits"]["hops"]} == ends


FORGED = {
    "degree": (9, "limit: degree"),
    "degrees": ({}, "limit: degrees"),
    "diameter": (1, "limit: diameter"),
    "within": ([["p0", ["b1", "s3"], 1]], "limit: hops, asked for but not kept to"),
}


@pytest.mark.parametrize("option", FORGED)
@pytest.mark.parametrize("where", ["params", "limits"])
def test_limits_are_those_that_were_asked_for(
    dataset: fanplan.Dataset, tmp_path: Path, option: str, where: str
) -> None:
    """Whichever of the two places is forged, and the plan sealed again."""
    within = [("p0", ["b1", "s3"], 3)]
    made = fanplan.overlay(dataset, diameter=4, degree=3, degrees={"b0": 2}, within=within)
    plan = made.save(tmp_path / "plan")
    assert check_plan(plan, dataset.path).ok
    value, told = FORGED[option]
    if (option, where) == ("within", "limits"):
        option, value = "hops", []
    forge(plan, "overlay", where, option, to=value)
    found = check_plan(plan, dataset.path).violations
    assert any(text.startswith(told) for text in found), found


def test_shares_and_numbers_are_those_that_were_asked_for(tmp_path: Path) -> None:
    world = random_world(3, brokers=16, capacity=40.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    plan = fanplan.allocate(dataset, lcf=0.8).save(tmp_path / "plan")
    used = json.loads((plan / "plan.json").read_text())["overlay"]["brokers"]
    assert used > 1
    for option, value in (("lcf", 0.1), ("brokers", used - 1)):
        forged = Path(shutil.copytree(plan, tmp_path / option))
        forge(forged, "overlay", "params", option, to=value)
        (found,) = check_plan(forged, dataset.path).violations
        assert found.startswith(f"limit: {option}")


def edit(folder: Path, table: str, change: Callable[..., Any]) -> None:
    path = folder / f"{table}.parquet"
    rows = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)


def amend(folder: Path, **changes: Any) -> None:
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"overlay": content["overlay"] | changes}))


def another_end(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first link leads elsewhere."""
    first = rows[0] | {"b": next(f"b{i}" for i in range(1, 5) if f"b{i}" != rows[0]["b"])}
    return [first, *rows[1:]]


WRONG = {
    "a link missing": ("links", lambda rows: rows[1:], "cut off"),
    "a cycle": ("links", lambda rows: [*rows, rows[0] | {"a": "b0", "b": "b4"}], "cycle|twice"),
    "a link elsewhere": ("links", another_end, "weight|rate|cut off|cycle"),
    "an unknown broker": ("links", lambda rows: [rows[0] | {"b": "b9"}, *rows[1:]], "no such"),
    "a wrong weight": ("links", lambda rows: [rows[0] | {"weight": 9.0}, *rows[1:]], "weight"),
    "a wrong rate": ("links", lambda rows: [rows[0] | {"rate": 9e9}, *rows[1:]], "rate"),
    "a loop": ("links", lambda rows: [rows[0] | {"b": rows[0]["a"]}, *rows[1:]], "itself"),
    "a wrong load": ("brokers", lambda rows: [rows[0] | {"load": 9e9}, *rows[1:]], "load"),
    "a wrong capacity": ("brokers", lambda r: [r[0] | {"capacity": 7.0}, *r[1:]], "capacity"),
    "a broker missing": ("brokers", lambda rows: rows[1:], "not those that are used"),
    "a client missing": ("clients", lambda rows: rows[1:], "clients: missing"),
    "a client elsewhere": ("clients", lambda r: [r[0] | {"broker": "b9"}, *r[1:]], "clients"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_a_table_is_named(
    dataset: fanplan.Dataset, tmp_path: Path, wrong: Any
) -> None:
    table, change, named = wrong
    plan = fanplan.overlay(dataset, metric="overlap").save(tmp_path / "plan")
    edit(plan, table, change)
    violations = check_plan(plan, dataset.path).violations
    assert any(part in text for text in violations for part in named.split("|")), violations


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"bound": 1e12}, "bound"),
        ({"links": 9}, "links"),
        ({"brokers": 9}, "brokers"),
        ({"ledger": {}}, "ledger: link_messages"),
        ({"limits": {"degree": 1}}, "limit: degree"),
        ({"limits": {"diameter": 1}}, "limit: diameter"),
        ({"limits": {"hops": [["b0", "b1", 1], ["b0", "b2", 1], ["b1", "b2", 1]]}}, "limit: hops"),
    ],
)
def test_what_is_wrong_in_the_record_is_named(
    dataset: fanplan.Dataset, tmp_path: Path, changes: Any, named: str
) -> None:
    plan = fanplan.overlay(dataset, metric="overlap").save(tmp_path / "plan")
    amend(plan, **changes)
    violations = check_plan(plan, dataset.path).violations
    assert any(named in text for text in violations), violations


def test_wrong_allocations_are_named(tmp_path: Path) -> None:
    world = random_world(2, brokers=8, capacity=60.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    plan = fanplan.allocate(dataset, metric="overlap").save(tmp_path / "plan")
    content = json.loads((plan / "plan.json").read_text())["overlay"]
    amend(plan, allocation=content["allocation"] | {"lcf": 0.01})
    assert any("over their share" in text for text in check_plan(plan, dataset.path).violations)
    amend(plan, allocation=content["allocation"])
    assert check_plan(plan, dataset.path).ok
    edit(plan, "brokers", lambda rows: [rows[0] | {"client_load": 1e9}, *rows[1:]])
    assert any("client_load" in text for text in check_plan(plan, dataset.path).violations)
    edit(plan, "clients", lambda rows: [*rows, rows[0]])
    violations = check_plan(plan, dataset.path).violations
    assert any("not at exactly one broker" in text for text in violations)


def test_a_plan_that_fails_its_check_is_not_written(
    dataset: fanplan.Dataset, tmp_path: Path
) -> None:
    made = fanplan.overlay(dataset, metric="overlap")
    made.section.tables["links"] = made.section.tables["links"].slice(1)
    with pytest.raises(CheckError, match="cut off"):
        made.save(tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


def test_enough_brokers_or_an_answer_that_says_how_many(tmp_path: Path) -> None:
    world = random_world(2, brokers=8, capacity=36.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    needed = fanplan.allocate(dataset).summary()["brokers"]
    assert needed > 1
    with pytest.raises(InfeasibleError, match="brokers: ") as caught:
        fanplan.allocate(dataset, brokers=needed - 1)
    assert caught.value.value <= needed
    assert fanplan.allocate(dataset, brokers=needed).summary()["brokers"] == needed


def test_stable_leaves_no_broker_over_its_capacity(tmp_path: Path) -> None:
    world = random_world(4, brokers=8, capacity=70.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    made = fanplan.allocate(dataset, stable=True)
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok
    assert made.summary()["overloaded"] == []


def test_replanning_stays_near(tmp_path: Path) -> None:
    world = random_world(5, brokers=8, capacity=60.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    old = fanplan.allocate(dataset, ranking="gli", metric="overlap").save(tmp_path / "old")
    kept = fanplan.allocate(dataset, start=old, moves=2)
    assert kept.summary()["moved"] <= 2
    assert check_plan(kept.save(tmp_path / "new"), dataset.path).ok
    tree = fanplan.overlay(dataset, metric="random").save(tmp_path / "tree")
    near = fanplan.overlay(dataset, start=tree, changes=1)
    assert near.summary()["changed"] <= 1


BAD = {
    "metric": ({"metric": "nearest"}, "metric: 'nearest' is unknown"),
    "alpha": ({"alpha": 0.5}, "alpha: is for the metric hybrid"),
    "scale": ({"scale": "own"}, "scale: is for the metric hybrid"),
    "interest": ({"interest": "cover"}, "interest: is for the metrics hybrid and interest"),
    "alpha range": ({"metric": "hybrid", "alpha": 1.5}, "alpha"),
    "trees": ({"trees": 0}, "trees"),
    "degree": ({"degree": 0}, "degree"),
    "limits of a thesis tree": ({"metric": "overlap", "diameter": 3}, "diameter: cannot be asked"),
    "unknown broker": ({"degrees": {"x": 3}}, "no broker 'x'"),
    "unknown name": ({"within": [("x", ["b0"], 3)]}, "'x'"),
    "unknown option": ({"colour": 3}, "colour"),
    "changes of nothing": ({"changes": 3}, "no older plan"),
    "price": ({"prices": {"delayed": -1.0}}, "delayed: -1.0 is out of range"),
    "old price": ({"delay": 1.0}, "delay: is now prices={'delayed': …}"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_wishes_are_named(dataset: fanplan.Dataset, bad: Any) -> None:
    options, named = bad
    with pytest.raises(InputError, match=named):
        fanplan.overlay(dataset, **options)


def test_rates_are_no_wish_of_an_allocation(dataset: fanplan.Dataset) -> None:
    with pytest.raises(InputError, match="rates: the load of clients counts rates already"):
        fanplan.allocate(dataset, rates=True)


def test_impossible_limits_say_what_would_do(dataset: fanplan.Dataset) -> None:
    with pytest.raises(InfeasibleError, match="diameter") as caught:
        fanplan.overlay(dataset, degree=2, diameter=2)
    enough = int(caught.value.value)
    assert fanplan.overlay(dataset, degree=2, diameter=enough).summary()["diameter"] <= enough


def test_links_that_do_not_connect_are_named(tmp_path: Path) -> None:
    world = random_world(1, links=True)
    assert world.links is not None
    apart = replace(world, links=world.links[:2])
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", apart))
    with pytest.raises(InputError, match="no links lead from broker 'b0' to 'b3'"):
        fanplan.overlay(dataset)


@pytest.mark.parametrize("metric", ["improved", "overlap", "interest", "random"])
def test_one_broker_needs_none_of_the_given_links(tmp_path: Path, metric: Tree) -> None:
    world = random_world(1, links=True)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    made = fanplan.allocate(dataset, metric=metric)
    assert made.summary()["brokers"] == 1
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok


def test_a_broker_without_capacity_is_named(tmp_path: Path) -> None:
    world = OverlayWorld((5.0, 0.0), (0,), (1,), ((0, (0,), 4.0),))
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    with pytest.raises(InputError, match="broker 'b1' has no capacity"):
        fanplan.allocate(dataset)


def test_a_client_bigger_than_every_broker_stands_alone_and_is_named(tmp_path: Path) -> None:
    world = OverlayWorld((5.0,) * 4, (0, 1), (1, 2), ((0, (0,), 40.0), (1, (1,), 2.0)))
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    made = fanplan.allocate(dataset)
    assert made.summary()["lone"] == ["p0", "s0"]
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok
