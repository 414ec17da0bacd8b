"""A stored plan is whole, repeatable and says what was decided in the user's own names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset
from meanings import as_markdown

from fanplan.core.errors import CheckError, InputError
from fanplan.core.ledger import Ledger
from fanplan.core.tables import Table, arrow_schema
from fanplan.layers.channels import record as write
from fanplan.layers.channels.map import NO_PAIRS, map_pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.registry import load_plan
from fanplan.plan.seal import edited
from fanplan.plan.tables import (
    CELL_TABLES,
    CHANNEL_TABLES,
    DELIVERY_TABLES,
    DUAL_VALUES,
    GROUPS_TABLES,
    MARKING_TABLES,
    OVERLAY_TABLES,
    SWITCH_ENTRIES,
    TREE_TABLES,
)
from fanplan.verbs.check import check_plan

WORLD = World(
    (
        Flow(frozenset({0, 2}), 4.0, 40.0),
        Flow(frozenset(), 9.0, 90.0),
        Flow(frozenset({1}), 1.0, 10.0, (0, 1)),
        Flow(frozenset({0, 2}), 6.0, 60.0),
    ),
    subscribers=3,
)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    return write_dataset(tmp_path / "dataset", WORLD)


def rows(folder: Path, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(folder / f"{table}.parquet").to_pylist()]


def test_tables_of_a_per_flow_plan(dataset: Any, tmp_path: Path) -> None:
    folder = save_plan(plan_dataset(dataset, "round-robin"), dataset, tmp_path / "plan").folder
    assert rows(folder, "flows") == [
        ("t0", "t0", None, 2.0, 20.0, 0, "all of it; 2 subscribers: s0 and s2"),
        ("t2[0,1]", "t2", [0, 1], 0.5, 5.0, 1, "a part of it; 1 subscriber: s1"),
        ("t3", "t3", None, 3.0, 30.0, 0, "all of it; 2 subscribers: s0 and s2"),
    ]
    # One wants the flow of t2 alone, so it has no channel.
    assert rows(folder, "channel_flows") == [(0, "t0"), (0, "t3")]
    assert rows(folder, "channel_subscribers") == [(0, "s0"), (0, "s2")]
    assert rows(folder, "unicast") == [("t2[0,1]", "s1")]


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_classes_are_expanded_to_flows_in_batches_of_any_size(
    dataset: Any, tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "BATCH_ROWS", batch)
    folder = save_plan(plan_dataset(dataset, "unicast"), dataset, tmp_path / "plan").folder
    assert rows(folder, "unicast") == [
        ("t0", "s0"),
        ("t0", "s2"),
        ("t2[0,1]", "s1"),
        ("t3", "s0"),
        ("t3", "s2"),
    ]
    assert rows(folder, "channel_flows") == rows(folder, "channel_subscribers") == []


def test_tables_have_their_described_columns(dataset: Any, tmp_path: Path) -> None:
    plan = save_plan(plan_dataset(dataset, "broadcast"), dataset, tmp_path / "plan")
    for table in CHANNEL_TABLES:
        found = pq.read_schema(plan.path(table.name))
        assert found.names == arrow_schema(table).names
        for column in table.columns:
            assert found.field(column.name).nullable != column.required


def test_record_says_what_was_decided(dataset: Any, tmp_path: Path) -> None:
    plan = plan_dataset(dataset, "random", seed=7)
    stored = save_plan(plan, dataset, tmp_path / "plan")
    record, section = stored.record, stored.section(ChannelsRecord)
    asked = section.params
    assert (section.method, asked.channels, asked.options, record.seed) == ("random", 2, {}, 7)
    assert (section.channels, section.flows, section.audience_classes) == (1, 3, 2)
    assert (section.seconds, record.input.key) == (2.0, "key-1")
    assert record.input.parameters == {"grid": "atomic"}
    assert Ledger(**section.ledger) == plan.ledger
    assert section.cost == plan.cost
    assert section.bound_percent == plan.bound_percent
    with pytest.raises(InputError, match="has no layer overlay, only channels"):
        _ = stored.section(OverlayRecord)


@pytest.mark.parametrize("method", ["round-robin", "random", "unicast", "broadcast"])
def test_same_plan_same_bytes(dataset: Any, tmp_path: Path, method: str) -> None:
    folders = [
        save_plan(plan_dataset(dataset, method), dataset, tmp_path / name).folder
        for name in ("one", "two")
    ]
    files = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    assert len(files[0]) == 1 + len(CHANNEL_TABLES)


def test_only_a_plan_is_replaced_and_only_when_asked(dataset: Any, tmp_path: Path) -> None:
    plan, out = plan_dataset(dataset, "broadcast"), tmp_path / "plan"
    save_plan(plan, dataset, out)
    with pytest.raises(InputError, match="is a plan already"):
        save_plan(plan, dataset, out)
    other = plan_dataset(dataset, "unicast")
    assert save_plan(other, dataset, out, replace=True).section(ChannelsRecord).method == "unicast"
    with pytest.raises(InputError, match="is not a plan"):
        save_plan(plan, dataset, dataset, replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dataset", "plan"]


def test_failure_leaves_nothing_behind_and_the_old_plan_in_place(
    dataset: Any, tmp_path: Path
) -> None:
    out = tmp_path / "plan"
    plan = plan_dataset(dataset, "unicast")
    before = save_plan(plan, dataset, out).record
    some = map_pairs(plan.map.unicast.left[1:], plan.map.unicast.right[1:])
    broken = replace(plan, map=replace(plan.map, unicast=some))
    with pytest.raises(CheckError, match="flow 't0' for subscriber 's0'"):
        save_plan(broken, dataset, out, replace=True)
    assert load_plan(out).record == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dataset", "plan"]


def test_plan_of_another_dataset_is_not_saved(dataset: Any, tmp_path: Path) -> None:
    plan = replace(plan_dataset(dataset, "broadcast"), source="other")
    with pytest.raises(InputError, match="was made for other"):
        save_plan(plan, dataset, tmp_path / "plan")


@pytest.fixture
def stored(dataset: Any, tmp_path: Path) -> Any:
    return save_plan(plan_dataset(dataset, "broadcast"), dataset, tmp_path / "plan").folder


def test_missing_parts_are_named(stored: Any, tmp_path: Path) -> None:
    (stored / "unicast.parquet").unlink()
    with pytest.raises(InputError, match="no table unicast"):
        load_plan(stored)
    with pytest.raises(InputError, match=r"no plan\.json"):
        load_plan(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "format 3 is not the format 4"),
        ({"seed": "x"}, "seed"),
        ({"channels": {"cost": None}}, r"channels\.cost"),
        (
            {"channels": {"params": {"channels": 2, "prices": {"sent": 0}}}},
            "sent: 0 is out of range",
        ),
        ({"colour": "red"}, "colour"),
        ({"layers": ["overlay"]}, "are not the sections"),
    ],
)
def test_wrong_records_are_named(stored: Any, change: Any, message: str) -> None:
    change = dict(change)
    path = stored / "plan.json"
    content = json.loads(path.read_text())
    content |= {"channels": content["channels"] | change.pop("channels", {})} | change
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        load_plan(stored)


def test_what_was_edited_is_named(stored: Any, dataset: Any) -> None:
    assert edited(load_plan(stored)) == []
    path = stored / "plan.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content))
    assert edited(load_plan(stored)) == [], "spaces do not matter"
    path.write_text(json.dumps(content | {"seed": content["seed"] + 1}))
    table = pq.read_table(stored / "flows.parquet")
    pq.write_table(table.slice(1), stored / "flows.parquet")
    assert edited(load_plan(stored)) == ["flows.parquet", "plan.json"]
    named = "edited since it was written, hash differs (2): flows.parquet, plan.json"
    assert named in check_plan(stored, dataset).violations


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_record_that_is_not_one(stored: Any, content: str) -> None:
    (stored / "plan.json").write_text(content)
    with pytest.raises(InputError, match=r"plan\.json"):
        load_plan(stored)


def test_truncated_table_is_named(stored: Any) -> None:
    path = stored / "flows.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"flows\.parquet"):
        load_plan(stored).read("flows", ("flow",))


def test_pairs_are_ascending_and_each_once() -> None:
    assert map_pairs([1, 0, 1, 0], [0, 5, 0, 2]) == map_pairs([0, 0, 1], [2, 5, 0])
    assert map_pairs([1, 0], [0, 5]) != NO_PAIRS
    assert map_pairs([0, 2, 2], [1, 0, 3]).starts(4).tolist() == [0, 1, 1, 3, 3]


ALL_TABLES: tuple[Table, ...] = CHANNEL_TABLES + OVERLAY_TABLES + TREE_TABLES + MARKING_TABLES
ALL_TABLES += (*GROUPS_TABLES, *CELL_TABLES, *DELIVERY_TABLES, DUAL_VALUES, SWITCH_ENTRIES)


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_documentation_has_every_table(table: Table) -> None:
    text = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
    assert as_markdown(table) in text


def test_no_flipped_byte_ends_in_a_traceback(dataset: Any, tmp_path: Path) -> None:
    """Each table is told from what was written, whichever byte differs."""
    folder = save_plan(plan_dataset(dataset, "broadcast"), dataset, tmp_path / "plan").folder
    for path in sorted(folder.glob("*.parquet")):
        whole = path.read_bytes()
        for at in range(0, len(whole), 29):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            try:
                told = " ".join(check_plan(folder, dataset).violations)
            except InputError as error:
                told = str(error)
            assert "hash differs" in told, (path.name, at)
        path.write_bytes(whole)
