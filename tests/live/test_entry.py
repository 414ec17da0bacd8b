"""Flows found at the entry are those that ingest found, and audiences those of a plain count."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from live_worlds import SILENT, TOPICS, Market, draw_market, draw_point, ingested
from pyspark.sql import SparkSession

from fanplan.core.errors import InputError
from fanplan.data.reader import read_stage
from fanplan.live.entry import (
    DEFAULT,
    NOBODY,
    Entry,
    EntryTables,
    Selectors,
    load_entry,
    read_entry,
    save_entry,
)
from fanplan.systems.publications import read_published


@pytest.fixture(scope="module")
def world() -> Market:
    return draw_market(3)


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, world: Market, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingested(spark, world, tmp_path_factory.mktemp("market") / "exact")


@pytest.fixture(scope="module")
def tables(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> EntryTables:
    """As an export has stored them."""
    folder = tmp_path_factory.mktemp("export")
    save_entry(read_entry(dataset), folder)
    return load_entry(folder)


def require_same_flows(dataset: Path, tables: EntryTables) -> None:
    """Every flow of the dataset gets as many publications as it has there."""
    flows = read_stage(dataset, "flows", ("messages", "audience_class"))
    sent = read_published(dataset, tables)
    entry = Entry(tables)
    found = np.concatenate(
        [entry.flows(sent.topic[at : at + 7], sent.x[at : at + 7]) for at in range(0, sent.size, 7)]
    )
    assert np.array_equal(found, entry.matched_flows(sent.topic, sent.x))
    wanted = flows["audience_class"].to_numpy() >= 0
    messages = flows["messages"].to_numpy()
    assert np.array_equal(np.bincount(found[found >= 0], minlength=len(flows)), messages * wanted)
    assert np.count_nonzero(found == NOBODY) == messages[~wanted].sum()
    assert not np.any(found == DEFAULT)


def test_flows_are_those_of_the_dataset(dataset: Path, tables: EntryTables) -> None:
    assert np.unique(tables.dimensions).tolist() == [0, 1, 3]
    require_same_flows(dataset, tables)


@pytest.mark.parametrize("grid", ["uniform", "atomic"])
def test_flows_are_those_of_a_grid(
    spark: SparkSession, world: Market, tmp_path: Path, grid: str
) -> None:
    dataset = ingested(spark, world, tmp_path / grid, grid)
    require_same_flows(dataset, read_entry(dataset))


def test_audiences_are_those_of_a_plain_count(world: Market, tables: EntryTables) -> None:
    """Publications that were never seen, on silent topics too: nobody is forgotten."""
    entry, draw = Entry(tables), Random(5)
    sent = [draw_point(draw, (*TOPICS, *SILENT)) for _ in range(400)]
    points = [entry.topics.point(entry.topics.find(topic), values) for topic, values in sent]
    numbers, x = entry.batch([topic for topic, _ in sent], points)
    offsets, people = entry.audiences(numbers, x)
    found = entry.flows(numbers, x)
    assert np.array_equal(found, entry.matched_flows(numbers, x))
    assert np.array_equal(found, entry.flows(numbers, x))
    known = {(topic, world.audience(topic, point)) for _, topic, point in world.published}
    for i, (topic, values) in enumerate(sent):
        audience = world.audience(topic, values)
        own = {tables.subscribers[s] for s in people[offsets[i] : offsets[i + 1]]}
        assert own == audience
        assert (found[i] == NOBODY) == (not audience)
        if audience and TOPICS.get(topic):
            assert (found[i] == DEFAULT) == ((topic, audience) not in known)
        assert entry.flow(topic, points[i]) == found[i]
        assert entry.topics.attributes(topic, points[i]) == values
    assert {DEFAULT, NOBODY} <= set(found)
    hush = tables.topics.find("hush")
    assert all(flow >= 0 for flow, number in zip(found, numbers, strict=True) if number == hush)
    old = tables.topics.find("quotes.old")
    assert {*found[numbers == old]} == {DEFAULT}


def test_a_subscriber_sees_what_it_asked_for(world: Market, tables: EntryTables) -> None:
    draw = Random(6)
    sent = [draw_point(draw, (*TOPICS, *SILENT)) for _ in range(100)]
    for who in tables.subscribers:
        selectors = Selectors(tables, who)
        for topic, values in sent:
            x = tables.topics.point(tables.topics.find(topic), values)
            assert selectors.wants(topic, x) == (who in world.audience(topic, values))
    assert not selectors.wants("no such topic", ())
    assert not selectors.wants("quotes.ibm", ())


@pytest.mark.parametrize(
    ("topic", "values", "told"),
    [
        ("quote.ibm", {}, "topic 'quote.ibm': is not in the plan. Did you mean 'quotes.ibm'?"),
        ("trades.ibm", {}, "has no price"),
        ("trades.ibm", {"prize": 1.0}, "Did you mean 'price'?"),
        ("trades.ibm", {"price": 101}, "101 is not a number from 0.0 to 100.0"),
        ("trades.ibm", {"price": float("nan")}, "nan is not a number"),
        ("trades.ibm", {"price": "7"}, "7 is not a number"),
        ("quotes.ibm", {"price": 1, "size": 1, "venue": "X"}, "X is not one of its values"),
        ("news", {"price": 1}, "has 'price', which the topic does not have"),
    ],
)
def test_what_a_topic_does_not_take_is_refused(
    tables: EntryTables, topic: str, values: dict[str, float], told: str
) -> None:
    with pytest.raises(InputError) as error:
        tables.topics.point(tables.topics.find(topic), values)
    assert told in str(error.value)


def test_who_is_unknown_is_named(tables: EntryTables, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'nobody': is not in the plan"):
        Selectors(tables, "nobody")
    with pytest.raises(InputError, match="is not an export"):
        load_entry(tmp_path)
