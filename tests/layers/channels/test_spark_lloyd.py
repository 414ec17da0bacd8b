"""Channels planned on Spark: the same as in memory, however the rows are dealt to tasks."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import CLASSES, Flow, World, save_plan, write_dataset
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from sealing import seal_dataset

from fanplan.core.errors import InputError
from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem, load_interest
from fanplan.data.reader import read_stage
from fanplan.layers.channels.ledger import analytic_ledger, completed, perfect
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.search.effort import Effort
from fanplan.layers.channels.search.free.lloyd import lloyd
from fanplan.layers.channels.search.free.search import search_free
from fanplan.layers.channels.search.model.cover import one_channel
from fanplan.layers.channels.search.model.demand import heaviest_demand, make_demand
from fanplan.layers.channels.search.model.rules import no_rules, recover
from fanplan.layers.channels.stages.decisions import (
    DecidedOnSpark,
    as_plan,
    decided_map,
    missed_on_spark,
    write_tables,
)
from fanplan.layers.channels.stages.lloyd import (
    LloydSetting,
    exponent_of,
    lloyd_pass,
    save_members,
    to_whole,
)
from fanplan.layers.channels.stages.scale import plan_on_spark
from fanplan.plan.tables import CHANNEL_TABLES

USERS, CORESET, SEED = 30, 20, 5
PARAMS = KmodesParams(6, swaps=32)


def make_world(seed: int, whole: bool) -> World:
    """Audiences of one theme or two, with noise; totals are whole numbers or not."""
    random = np.random.default_rng(seed)
    themes = random.random((12, USERS)) < 0.3
    flows = []
    for _ in range(200):
        one, other = themes[random.integers(len(themes), size=2)]
        wants = (one | other if random.random() < 0.4 else one) ^ (random.random(USERS) < 0.04)
        messages = random.integers(0, 40) if whole else random.lognormal(0, 2)
        audience = frozenset(map(int, np.flatnonzero(wants)))
        flows.append(Flow(audience, float(messages), 8.0 * float(messages)))
    return World(tuple(flows), USERS)


def in_memory(problem: InterestProblem, params: KmodesParams) -> ChannelMap:
    """What the passes on Spark must come to, from the planner's own steps."""
    demand = make_demand(problem, params.weights, np.full(problem.size, params.weights.unicast))
    heavy = heaviest_demand(demand, 0.0, CORESET)
    random = np.random.default_rng([SEED, 0])
    found, _ = search_free(heavy, params.channels, Effort(replace(params, heavy=1.0), random))
    members, choice = lloyd(demand, found, params.passes)
    assert not np.array_equal(members, found)
    cover = one_channel(members, choice.best)
    if params.multiple:
        cover = recover(demand, cover, no_rules(demand, params.channels))
    rows = np.repeat(np.arange(demand.size), np.diff(cover.starts))
    joined = map_pairs(*np.nonzero(cover.members.T))
    return completed(problem, params.channels, map_pairs(rows, cover.channels), joined)


def dealt(dataset: Path, parts: int) -> Path:
    """The same dataset with its classes in so many files, in another order."""
    rows = read_stage(dataset, "classes").to_pylist()
    shutil.rmtree(dataset / "classes")
    (dataset / "classes").mkdir()
    for part in range(parts):
        table = pa.Table.from_pylist(rows[part::parts], schema=CLASSES)
        pq.write_table(table, dataset / "classes" / f"part-{part}.parquet")
    return seal_dataset(dataset)


def planned(
    spark: SparkSession, folder: Path, world: World, params: KmodesParams, parts: int = 2
) -> tuple[DecidedOnSpark, Path]:
    dataset = dealt(write_dataset(folder / "dataset", world), parts)
    decided = plan_on_spark(spark, dataset, params, SEED, folder / "work", most=CORESET)
    return decided, dataset


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[DecidedOnSpark, Path]:
    """A plan made on Spark, and its dataset."""
    return planned(spark, tmp_path_factory.mktemp("made"), make_world(1, whole=True), PARAMS)


def test_spark_finds_what_memory_finds(made: tuple[DecidedOnSpark, Path]) -> None:
    decided, dataset = made
    problem, map = load_interest(dataset), decided_map(decided)
    assert problem.size > 2 * CORESET
    assert map == in_memory(problem, PARAMS)
    assert len(map.assigned) > len(np.unique(map.assigned.left))
    assert decided.ledger == analytic_ledger(problem, map)
    assert decided.ledger.missed == 0
    assert decided.perfect == perfect(problem, PARAMS.weights)


def test_a_plan_made_on_spark_passes_the_check(
    made: tuple[DecidedOnSpark, Path], tmp_path: Path
) -> None:
    decided, dataset = made
    plan = as_plan(decided, dataset, PARAMS, SEED)
    assert plan.cost == cost(decided.ledger, PARAMS.weights)
    assert save_plan(plan, dataset, tmp_path / "plan").section(ChannelsRecord).cost == plan.cost


def test_tables_written_by_spark_are_those_of_the_saved_plan(
    spark: SparkSession, made: tuple[DecidedOnSpark, Path], tmp_path: Path
) -> None:
    decided, dataset = made
    for file in dataset.glob("*/stage.json"):
        file.unlink()
    stored = save_plan(as_plan(decided, dataset, PARAMS, SEED), dataset, tmp_path / "plan")
    write_tables(spark, decided, dataset, tmp_path / "tables")
    for table in CHANNEL_TABLES:
        names = tuple(column.name for column in table.columns)
        by = [(name, "ascending") for name in table.key]
        expected = stored.read(table.name, names).sort_by(by).to_pylist()
        written = pq.read_table(tmp_path / "tables" / f"{table.name}.parquet", columns=list(names))
        assert written.sort_by(by).to_pylist() == expected
        assert expected


def test_spark_counts_who_is_missed(spark: SparkSession, made: tuple[DecidedOnSpark, Path]) -> None:
    decided, dataset = made
    assert missed_on_spark(spark, decided, dataset) == 0
    fewer = replace(decided, members=decided.members * (np.arange(6) > 0).astype(np.uint8))
    missed = analytic_ledger(load_interest(dataset), decided_map(fewer)).missed
    assert missed_on_spark(spark, fewer, dataset) == missed > 0


def test_fractions_with_other_weights_give_the_same_as_in_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    params = KmodesParams(6, Weights(0.7, 1.3, 0.9), passes=2, swaps=32, multiple=False)
    decided, dataset = planned(spark, tmp_path, make_world(2, whole=False), params, parts=4)
    assert decided_map(decided) == in_memory(load_interest(dataset), params)


def test_a_pass_is_the_same_on_any_number_of_tasks(spark: SparkSession, tmp_path: Path) -> None:
    write_dataset(tmp_path / "dataset", make_world(3, whole=False))
    rows = read_stage(tmp_path / "dataset", "classes")
    members = np.random.default_rng(1).integers(0, 2, (USERS, 6)).astype(np.uint8)
    total = sum(rows["messages"].to_pylist())
    setting = LloydSetting(USERS, 6, Weights(0.7, 1.3, 0.9), exponent_of(total))
    path = save_members(members, tmp_path)
    classes = spark.createDataFrame(rows)
    results = [lloyd_pass(classes.repartition(tasks), setting, path) for tasks in (1, 2, 4)]
    joined, gain = results[0]
    assert gain > 0
    assert 0 < joined.sum() < joined.size
    for other, its_gain in results[1:]:
        assert np.array_equal(other, joined)
        assert its_gain == gain


def test_limits_that_need_all_rows_are_refused_by_name(tmp_path: Path) -> None:
    params = KmodesParams(2, unicast_limit=0.5, pinned=(1,))
    with pytest.raises(InputError) as error:
        plan_on_spark(None, tmp_path, params, 0, tmp_path / "work")  # type: ignore[arg-type]
    assert [problem.where for problem in error.value.problems] == ["unicast_limit", "pinned"]
    assert not (tmp_path / "work").exists()


def test_more_channels_than_flows_leave_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    world = World((Flow(frozenset({0, 1})),), 2)
    with pytest.raises(InputError, match="2 channels are more than the 1 flows"):
        planned(spark, tmp_path, world, KmodesParams(2))
    assert not (tmp_path / "work").exists()


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=50))
def test_whole_numbers_lose_next_to_nothing_and_never_overflow(messages: list[float]) -> None:
    total = sum(map(Fraction, messages))
    exponent = exponent_of(float(total))
    amounts = to_whole(np.array(messages), exponent)
    assert all(amount >= 0 for amount in amounts)
    whole = sum(map(int, amounts))
    assert whole < 2**63
    assert abs(Fraction(whole) / Fraction(2) ** exponent - total) <= len(messages) * total / 2**61


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=50))
def test_whole_totals_stay_as_they_are(messages: list[int]) -> None:
    exponent = exponent_of(float(sum(messages)))
    amounts = to_whole(np.array(messages, dtype=np.float64), exponent)
    assert [int(amount) for amount in amounts] == [m << exponent for m in messages]
