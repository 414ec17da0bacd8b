"""The check passes valid plans and names what is wrong with every kind of broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import (
    BY_INTEREST,
    Flow,
    World,
    plan_dataset,
    save_plan,
    unhurried,
    worlds,
    write_dataset,
    write_manifest,
)
from forging import seal
from hypothesis import given
from hypothesis import strategies as st
from sealing import seal_dataset

from fanplan.core.errors import InputError
from fanplan.data.interest import load_interest
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import Bound, ChannelMap, ChannelsSection, map_pairs
from fanplan.verbs.check import check_plan

WORLD = World(
    (
        Flow(frozenset({0, 2}), 4.0, 40.0),
        Flow(frozenset(), 9.0, 90.0),
        Flow(frozenset({1}), 1.0, 10.0, (0, 1)),
        Flow(frozenset({0, 2}), 6.0, 60.0, (2,)),
        Flow(frozenset({0, 1, 2}), 3.0, 30.0),
    ),
    subscribers=4,
)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    return write_dataset(tmp_path / "dataset", WORLD)


@pytest.fixture
def hybrid(dataset: Any, tmp_path: Path) -> Any:
    """A plan that uses everything: classes 0 and 2 on channel 0, class 1 by unicast."""
    return save_plan(hybrid_plan(dataset), dataset, tmp_path / "plan").folder


def hybrid_plan(dataset: Any) -> ChannelsSection:
    """Subscriber 1 gets class 2 by unicast instead of joining."""
    base, problem = plan_dataset(dataset, "broadcast"), load_interest(dataset)
    map = ChannelMap(
        2, map_pairs([0, 2], [0, 0]), map_pairs([0, 0], [0, 2]), map_pairs([1, 2], [1, 1])
    )
    none = Bound(0.0, "distinct audiences")
    ledger = analytic_ledger(problem, map)
    return replace(base, map=map, ledger=ledger, bound=none, single_bound=none)


def rewrite(folder: Path, table: str, change: Callable[..., Any]) -> None:
    """Replace a table's rows by ``change(rows)``."""
    path = folder / f"{table}.parquet"
    schema = pq.read_schema(path)
    rows = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def amend(folder: Path, **changes: Any) -> None:
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"channels": content["channels"] | changes}))


def assert_violation(folder: Path, dataset: Any, *parts: str) -> None:
    """Among the violations is one with all these parts."""
    result = check_plan(folder, dataset)
    assert not result.ok
    found = [v for v in result.violations if all(part in v for part in parts)]
    assert found, result.violations


@unhurried
@given(worlds(), st.sampled_from(BY_INTEREST), st.integers(1, 4), st.integers(0, 3))
def test_plans_of_all_methods_pass(
    tmp_path_factory: pytest.TempPathFactory, world: Any, method: str, channels: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("world")
    dataset = write_dataset(folder / "dataset", world)
    save_plan(plan_dataset(dataset, method, channels, seed), dataset, folder / "plan")
    result = check_plan(folder / "plan", dataset)
    stated = ["version", "seed", "channels.params"]
    clean = {"ok": True, "missed": 0, "violations": [], "warnings": [], "stated": stated}
    assert result.json() == clean


def test_hybrid_plan_passes(hybrid: Any, dataset: Any) -> None:
    result = check_plan(hybrid, dataset)
    assert result.ok
    assert result.warnings == ()


def test_missing_unicast_is_named(hybrid: Any, dataset: Any) -> None:
    rewrite(hybrid, "unicast", lambda rows: rows[1:])
    result = check_plan(hybrid, dataset)
    assert result.missed == 1
    assert result.unserved == (("t2[0,1]", "s1"),)
    assert_violation(hybrid, dataset, "not served (1)", "'t2[0,1]'", "'s1'")


def test_missing_member_is_named(hybrid: Any, dataset: Any) -> None:
    rewrite(hybrid, "channel_subscribers", lambda rows: rows[:1])
    result = check_plan(hybrid, dataset)
    assert result.unserved == (("t0", "s2"), ("t3[2]", "s2"), ("t4", "s2"))
    assert result.missed == 3


def test_missing_channel_flow_is_named(hybrid: Any, dataset: Any) -> None:
    rewrite(hybrid, "channel_flows", lambda rows: rows[1:])
    assert_violation(hybrid, dataset, "not served (2)", "flow 't0' for subscriber 's0'")


def test_no_more_than_ten_are_named(tmp_path: Path) -> None:
    world = World(tuple(Flow(frozenset({0, 1})) for _ in range(10)), subscribers=2)
    dataset = write_dataset(tmp_path / "dataset", world)
    folder = save_plan(plan_dataset(dataset, "unicast"), dataset, tmp_path / "plan").folder
    rewrite(folder, "unicast", lambda rows: [])
    result = check_plan(folder, dataset)
    assert (result.missed, len(result.unserved)) == (20, 10)
    assert_violation(folder, dataset, "not served (20)", "and 10 more")


@pytest.mark.parametrize(
    ("table", "row", "named"),
    [
        ("channel_flows", {"channel": 0, "flow": "zz"}, "flow 'zz'"),
        ("channel_flows", {"channel": 2, "flow": "t0"}, "channel 2"),
        ("channel_flows", {"channel": -1, "flow": "t0"}, "channel -1"),
        ("channel_flows", {"channel": 0, "flow": "t1"}, "flow 't1'"),
        ("channel_subscribers", {"channel": 0, "subscriber": "zz"}, "subscriber 'zz'"),
        ("channel_subscribers", {"channel": 9, "subscriber": "s0"}, "channel 9"),
        ("unicast", {"flow": "zz", "subscriber": "s0"}, "flow 'zz'"),
        ("unicast", {"flow": "t0", "subscriber": "zz"}, "subscriber 'zz'"),
    ],
)
def test_unknown_items_are_named(
    hybrid: Any, dataset: Any, table: str, row: Any, named: str
) -> None:
    rewrite(hybrid, table, lambda rows: [*rows, row])
    assert_violation(hybrid, dataset, f"{table}: unknown", named)


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("channel_flows", "flow 't4' with channel 0"),
        ("channel_subscribers", "channel 0 with subscriber 's2'"),
        ("unicast", "flow 't4' with subscriber 's1'"),
    ],
)
def test_doubled_rows_are_named(hybrid: Any, dataset: Any, table: str, named: str) -> None:
    rewrite(hybrid, table, lambda rows: [rows[-1], *rows])
    assert_violation(hybrid, dataset, f"{table}: row given twice (1)", named)


def test_order_of_rows_does_not_matter(hybrid: Any, dataset: Any) -> None:
    for table in ("flows", "channel_flows", "channel_subscribers", "unicast"):
        rewrite(hybrid, table, lambda rows: rows[::-1])
    assert all(v.startswith("edited") for v in check_plan(hybrid, dataset).violations)


def first(**changes: Any) -> Any:
    return lambda rows: [rows[0] | changes, *rows[1:]]


@pytest.mark.parametrize(
    ("change", "what", "named"),
    [
        (lambda rows: rows[1:], "flows: missing", "'t0'"),
        (lambda rows: [*rows, rows[0]], "flows: given twice", "'t0'"),
        (first(flow="zz"), "flows: not a wanted flow", "'zz'"),
        (first(flow="t1"), "flows: not a wanted flow", "'t1'"),
        (first(rate=2.1), "flows: rate differs", "'t0'"),
        (first(bytes_rate=0.0), "flows: bytes_rate differs", "'t0'"),
        (first(audience_class=1), "flows: audience_class differs", "'t0'"),
        (first(topic="t2"), "flows: topic differs", "'t0'"),
        (first(cell=[0]), "flows: cell differs", "'t0'"),
        (first(description="all of it"), "flows: description differs", "'t0'"),
        (
            lambda rows: [*rows[:1], rows[1] | {"cell": [0, 2]}, *rows[2:]],
            "cell differs",
            "'t2[0,1]'",
        ),
    ],
)
def test_changed_flows_are_named(
    hybrid: Any, dataset: Any, change: Any, what: str, named: str
) -> None:
    rewrite(hybrid, "flows", change)
    assert_violation(hybrid, dataset, what, named)


@pytest.mark.parametrize("entry", ["sent_multicast", "received_unwanted", "missed", "forwarded"])
def test_wrong_ledger_is_named(hybrid: Any, dataset: Any, entry: str) -> None:
    ledger = json.loads((hybrid / "plan.json").read_text())["channels"]["ledger"]
    amend(hybrid, ledger=ledger | {entry: ledger[entry] + 1})
    assert_violation(hybrid, dataset, f"ledger: {entry}", f"stated {ledger[entry] + 1}")


def test_incomplete_ledger_is_named(hybrid: Any, dataset: Any) -> None:
    ledger = json.loads((hybrid / "plan.json").read_text())["channels"]["ledger"]
    del ledger["sent_unicast"]
    amend(hybrid, ledger=ledger)
    assert_violation(hybrid, dataset, "ledger: sent_unicast")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cost", 1.0),
        ("perfect", 1.0),
        ("excess_percent", 3.0),
        ("bound_percent", 3.0),
        ("unicast_fraction", 0.9),
        ("bound", 1e9),
        ("single_bound", 1e9),
        ("single_bound_percent", 3.0),
        ("flows", 3),
        ("audience_classes", 9),
        ("seconds", 1.0),
    ],
)
def test_wrong_numbers_in_the_record_are_named(
    hybrid: Any, dataset: Any, name: str, wrong: float
) -> None:
    amend(hybrid, **{name: wrong})
    assert_violation(hybrid, dataset, f"plan.json: {name}")


def test_other_input_is_named(hybrid: Any, dataset: Any) -> None:
    write_manifest(dataset, World(WORLD.flows, WORLD.subscribers, key="key-2"))
    assert_violation(hybrid, dataset, "planned for other input", "key-1", "key-2")


@pytest.mark.parametrize(
    ("table", "row", "named"),
    [
        ("unicast", {"flow": "t0", "subscriber": "s0"}, "unicast and channel (1): flow 't0'"),
        ("unicast", {"flow": "t0", "subscriber": "s3"}, "unicast not wanted (1): flow 't0'"),
        ("channel_subscribers", {"channel": 0, "subscriber": "s3"}, "member needs nothing (1)"),
        ("channel_flows", {"channel": 1, "flow": "t0"}, "no member wants it (1): flow 't0'"),
    ],
)
def test_waste_is_a_warning(hybrid: Any, dataset: Any, table: str, row: Any, named: str) -> None:
    rewrite(hybrid, table, lambda rows: [*rows, row])
    result = check_plan(hybrid, dataset)
    assert [w for w in result.warnings if named in w], result.warnings
    assert result.missed == 0
    expected = ("edited", "ledger", "plan.json", "channels: fewer than 2 members")
    assert all(v.startswith(expected) for v in result.violations)


def test_unreadable_table_is_an_input_error(hybrid: Any, dataset: Any) -> None:
    (hybrid / "unicast.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"unicast\.parquet"):
        check_plan(hybrid, dataset)


def test_missing_column_is_an_input_error(hybrid: Any, dataset: Any) -> None:
    path = hybrid / "unicast.parquet"
    pq.write_table(pq.read_table(path).rename_columns(["flow", "user"]), path)
    with pytest.raises(InputError, match=r"unicast\.parquet \(hash differs\)"):
        check_plan(hybrid, dataset)
    seal(hybrid)
    with pytest.raises(InputError, match="no column subscriber"):
        check_plan(hybrid, dataset)


@pytest.mark.parametrize(
    ("stage", "column", "values"),
    [
        ("classes", "audience_class", [0, 0, 1]),
        ("classes", "subscribers", [[0, 9], [1], [2]]),
        ("subscribers", "subscriber_id", [0, 1, 2, 4]),
    ],
)
def test_broken_dataset_is_an_input_error(
    hybrid: Any, dataset: Any, stage: str, column: str, values: Any
) -> None:
    path = dataset / stage / "part-00000.parquet"
    table, schema = pq.read_table(path).to_pydict(), pq.read_schema(path)
    pq.write_table(pa.table(table | {column: values}, schema=schema), path)
    with pytest.raises(InputError, match=f"stage {stage}: .*: hash differs"):
        check_plan(hybrid, dataset)
    seal_dataset(dataset)
    with pytest.raises(InputError, match=stage):
        check_plan(hybrid, dataset)
