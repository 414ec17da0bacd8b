"""Questions: answers are what a walk by hand through the plan finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from delivery_datasets import World, planned, world_of
from delivery_walk import Walk
from ready import stages_are_there
from system_worlds import SPACE

import fanplan
from fanplan.cli.ask import USAGE, keywords_of, telling
from fanplan.core.errors import CheckError, InputError
from fanplan.data.frames import FrameKind
from fanplan.verbs.ask import QUESTIONS, Questions

SECONDS = 10.0
"""Window of the worlds."""


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def asked(folder: Path, seed: int, brokers: bool = True) -> tuple[World, Path, Questions]:
    world = replace(world_of(seed), brokers=brokers)
    plan, dataset = planned(folder, world, **SPACE)
    return world, plan, fanplan.open_plan(plan).ask(dataset, "arrow")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("brokers", [True, False])
def test_receivers_are_those_who_want_it_and_members(
    seed: int, brokers: bool, tmp_path: Path
) -> None:
    world, _, questions = asked(tmp_path, seed, brokers)
    for _, publisher, topic, _, value in world.sent[:40]:
        rows = questions.receivers(topic, {"value": value}, publisher).to_pylist()
        assert {r["subscriber"] for r in rows if r["wanted"]} == world.wanting(topic, value)
        assert all(r["copies"] > 0 and r["how"] != "not at all" for r in rows if r["wanted"])
        for row in rows:
            if row["wanted"]:
                questions.assert_reaches(topic, row["subscriber"], {"value": value})


@pytest.mark.parametrize("seed", range(4))
def test_unwanted_and_loads_are_what_a_walk_counts(seed: int, tmp_path: Path) -> None:
    world, plan, questions = asked(tmp_path, seed)
    walk = Walk(world, plan).run()
    rows = questions.unwanted().to_pylist()
    received = walk["received_wanted"] + walk["received_unwanted"]
    assert sum(r["unwanted"] for r in rows) * SECONDS == pytest.approx(walk["received_unwanted"])
    assert sum(r["received"] for r in rows) * SECONDS == pytest.approx(received)
    assert rows == sorted(rows, key=lambda r: -r["unwanted"])
    loads: dict[str, float] = defaultdict(float)
    for row in questions.bottlenecks().to_pylist():
        loads[row["what"]] += row["rate"] * SECONDS
    assert loads["link"] == pytest.approx(walk["forwarded"])
    assert loads["channel"] == pytest.approx(walk["sent_multicast"])


@pytest.mark.parametrize("seed", range(4))
def test_a_path_leads_from_the_entry_to_who_sends_it_last(seed: int, tmp_path: Path) -> None:
    world, _, questions = asked(tmp_path, seed)
    rates = 0.0
    for publisher in {p[1] for p in world.sent}:
        for subscriber in world.homes:
            for row in questions.path(publisher, subscriber).to_pylist():
                steps = row["brokers"].split()
                assert steps[0] == {"p0": "b0", "p1": "b3", "p2": "b4"}[publisher]
                assert row["then"] in ("direct", "last hop") or row["then"].startswith("channel")
                if row["then"] == "last hop" and "site" not in row["then"]:
                    assert steps[-1].startswith("b")
                rates += row["rate"]
    received = sum(r["received"] for r in questions.unwanted().to_pylist())
    assert rates == pytest.approx(received)


def test_without_a_broker_or_link_those_behind_it_miss(tmp_path: Path) -> None:
    world, _, questions = asked(tmp_path, 1)
    for broker in ("b0", "b3"):
        missed = {r["subscriber"]: r for r in questions.without(broker=broker).to_pylist()}
        for who, home in world.homes.items():
            wanted = [p for p in world.sent if who in world.wanting(p[2], p[4])]
            if home == broker and wanted and who not in missed:
                # All that it wants comes past brokers, or from a site's other sender.
                ways = [questions.path(p, who).to_pylist() for p in ("p0", "p1", "p2")]
                assert all(broker not in r["brokers"].split() for way in ways for r in way)
        assert all(0 < row["share"] <= 1 for row in missed.values())
    rows = questions.bottlenecks().to_pylist()
    name = next(r["name"] for r in rows if r["what"] == "link")
    lost = questions.without(link=tuple(name.split(" – "))).to_pylist()
    assert lost
    assert questions.without(link=name).to_pylist() == lost
    with pytest.raises(InputError, match="one thing"):
        questions.without()


def test_more_traffic_moves_what_carries_it(tmp_path: Path) -> None:
    world, _, questions = asked(tmp_path, 2)
    topic = world.sent[0][2]
    same = questions.if_traffic(topic, 1.0).to_pylist()
    assert all(row["rate_change"] == pytest.approx(0) for row in same)
    total = sum(row["rate_change"] for row in questions.if_traffic(topic, 3.0).to_pylist())
    none = sum(row["rate_change"] for row in questions.if_traffic(topic, 0.0).to_pylist())
    assert total == pytest.approx(-2 * none)
    assert total > 0


def test_an_answer_stands_beside_that_of_another_plan(tmp_path: Path) -> None:
    _, plan, questions = asked(tmp_path, 3)
    other = fanplan.design(questions.dataset, channels=1, without=("groups",)).save(
        tmp_path / "other"
    )
    both = questions.unwanted(against=fanplan.open_plan(other)).to_pylist()
    alone = fanplan.open_plan(other).ask(questions.dataset, "arrow").unwanted().to_pylist()
    beside = {row["subscriber"]: row["unwanted_other"] for row in both}
    assert beside == {row["subscriber"]: row["unwanted"] for row in alone}
    for row in both:
        assert row["unwanted_change"] == pytest.approx(row["unwanted"] - row["unwanted_other"])
    assert all(row["rate_change"] == 0 for row in questions.bottlenecks(
        against=fanplan.open_plan(plan)).to_pylist())  # fmt: skip


def test_why_tells_the_place_and_the_next_best(tmp_path: Path) -> None:
    world, _, questions = asked(tmp_path, 0)
    rows = questions.why(world.sent[0][2]).to_pylist()
    assert rows
    assert all(row["channels"] or row["by_unicast"] for row in rows)


def test_every_question_has_an_answer_against_another_plan(tmp_path: Path) -> None:
    """By its path; against itself nothing differs, and a screen shows no column twice."""
    world, plan, questions = asked(tmp_path, 0)
    topic, value = world.sent[0][2], world.sent[0][4]
    link = next(r["name"] for r in questions.bottlenecks().to_pylist() if r["what"] == "link")
    given: dict[str, dict[str, Any]] = {
        "receivers": {"topic": topic, "attributes": {"value": value}},
        "path": {"publisher": "p0", "subscriber": "s00"},
        "why": {"flow": topic},
        "without": {"link": link},
        "if_traffic": {"topic": topic, "times": 2},
    }
    for name in QUESTIONS:
        alone = getattr(questions, name)(**given.get(name, {}))
        both = getattr(questions, name)(**given.get(name, {}), against=plan)
        assert alone.num_rows == both.num_rows > 0, name
        assert set(alone.column_names) < set(both.column_names), name
        assert telling(both) == telling(both.select(alone.column_names)), name


def test_a_plan_without_brokers_has_none_to_fail(tmp_path: Path) -> None:
    _, _, questions = asked(tmp_path, 0, brokers=False)
    with pytest.raises(InputError, match="The plan has no brokers"):
        questions.without(broker="b0")


def test_asserts_fail_where_they_must(tmp_path: Path) -> None:
    world, _, questions = asked(tmp_path, 0)
    topic, value = next((p[2], p[4]) for p in world.sent if len(world.wanting(p[2], p[4])) == 1)
    rows = questions.receivers(topic, {"value": value}).to_pylist()
    (other, *_) = sorted(set(world.homes) - {row["subscriber"] for row in rows})
    with pytest.raises(CheckError, match="does not get"):
        questions.assert_reaches(topic, other, {"value": value})
    questions.assert_no_unwanted_above(1.0)
    worst = max(row["share"] for row in questions.unwanted().to_pylist())
    if worst:
        with pytest.raises(CheckError, match="in vain"):
            questions.assert_no_unwanted_above(worst / 2)


def test_wrong_names_get_the_nearest_right_one(tmp_path: Path) -> None:
    _, _, questions = asked(tmp_path, 0)
    for call, words in (
        (lambda: questions.path("p9", "s00"), r"there is no 'p9'. The plan has 3, such as p0"),
        (lambda: questions.receivers("t99", {"value": 1.0}), "not in the plan"),
        (lambda: questions.receivers("t1", {"price": 1.0}), "value"),
        (lambda: questions.unwanted("topic"), "Use subscriber or channel"),  # type: ignore[arg-type]
        (lambda: questions.if_traffic("t1", -1.0), "0 or more"),
        (lambda: questions.if_traffic("t1", "x"), "'x' will not do"),  # type: ignore[arg-type]
        (lambda: questions.assert_no_unwanted_above("x"), "a share"),  # type: ignore[arg-type]
        (lambda: questions.without(broker="b77"), r"there is no 'b77'. The plan has 6"),
        (lambda: questions.without(link="b0"), "is not a link"),
        (lambda: questions.bottlenecks(against=3), "Give a stored plan"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_frames_are_of_the_kind_that_is_asked_for(tmp_path: Path) -> None:
    _, plan, questions = asked(tmp_path, 0)
    kinds: dict[FrameKind, type] = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.Table,
    }
    for kind, type_ in kinds.items():
        assert isinstance(replace(questions, kind=kind).bottlenecks(), type_)
        assert isinstance(fanplan.open_plan(plan).frame("flows", kind), type_)
    opened = fanplan.open_plan(plan)
    assert "flows" in opened.tables
    assert list(opened["flows"].columns)[:2] == ["flow", "topic"]
    assert len(repr(opened)) < 300
    assert "<table>" in opened._repr_html_()
    assert opened.summary()["delivery"]
    assert opened.json()["layers"] == list(opened.record.layers)
    with pytest.raises(InputError, match="Did you mean 'flows'"):
        opened["flow"]
    with pytest.raises(InputError, match="not a kind of frame"):
        opened.frame("flows", "excel")  # type: ignore[arg-type]


def test_words_of_the_command_line(tmp_path: Path) -> None:
    _, _, questions = asked(tmp_path, 0)

    def words(*given: str) -> dict[str, Any]:
        return keywords_of(questions, given[0], list(given[1:]))

    assert words("receivers", "t1", "value=3") == {"topic": "t1", "attributes": {"value": 3.0}}
    assert words("path", "p0", "s01") == {"publisher": "p0", "subscriber": "s01"}
    assert words("without", "link=b0,b1") == {"link": "b0,b1"}
    assert words("if_traffic", "t1", "times=2") == {"topic": "t1", "times": 2.0}
    for given, wrong in (
        (("path", "p0"), "subscriber is missing"),
        (("bottlenecks", "b0"), "too much"),
        (("if_traffic", "t1", "many"), "not a number"),
        (("path", "p0", "s01", "via=b0"), "not known"),
    ):
        with pytest.raises(InputError, match=wrong):
            words(*given)
    assert set(QUESTIONS) >= {"receivers", "path", "why", "unwanted", "bottlenecks", "without"}
    assert list(USAGE) == list(QUESTIONS)
