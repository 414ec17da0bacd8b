"""What verbs give has one manner: a short line, a small table with a picture, summary and JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pytest
from delivery_datasets import planned, world_of
from ready import stages_are_there
from system_worlds import SPACE

import fanplan
from fanplan.core.errors import InputError, MachineError
from fanplan.core.result import Result, bars_drawn
from fanplan.layers.channels.explain import ALONE, NOWHERE, explain_row, next_best, place_name
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.fixed import fixed_map
from fanplan.layers.groups.protocol.params import GroupsChurn
from fanplan.layers.marking.protocol.churn import MarkingChurn
from fanplan.systems.params import ExportParams, TrialParams
from fanplan.systems.trial import Row, Tried
from fanplan.verbs.churn import Churning
from fanplan.verbs.given import in_our_words
from fanplan.watching.params import WatchParams
from fanplan.watching.watch import Watching


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


@pytest.fixture
def made(tmp_path: Path) -> tuple[fanplan.Plan, fanplan.Dataset]:
    plan, dataset = planned(tmp_path, replace(world_of(1), brokers=True), **SPACE)
    return fanplan.open_plan(plan), fanplan.open_dataset(dataset)


def test_all_results_are_short_and_have_summary_and_json(
    made: tuple[fanplan.Plan, fanplan.Dataset],
) -> None:
    plan, dataset = made
    tried = Tried("nats", "plan", (Row(("channel", "0"), 3, 4),), {"sent": 3.0}, {"p50": 1.5})
    found: list[Result] = [
        plan,
        dataset,
        fanplan.channels(dataset, 2),
        fanplan.check(plan, dataset),
        fanplan.diff(plan, plan),
        fanplan.compare(plan, plan),
        fanplan.apply_check(plan, dataset),
        fanplan.curve(dataset, [1, 2]),
        tried,
    ]
    for result in found:
        assert len(repr(result)) < 400
        assert "\n" not in repr(result)
        html = result._repr_html_()
        assert html.startswith("<b>")
        assert len(html) < 10_000
        for told in (result.summary(), result.json()):
            assert json.loads(json.dumps(told, allow_nan=False)) is not None
    assert all("<svg" in result._repr_html_() for result in (plan, found[2], tried))
    assert "1 of 1 figures differ" in tried._repr_html_()


def test_names_in_a_notebook_are_never_markup() -> None:
    drawn = bars_drawn({"<script>alert(1)</script>": 1.0, "b": 0.5})
    assert "<script" not in drawn
    assert "&lt;script" in drawn
    assert bars_drawn({}) == bars_drawn({"none": 0.0}) == ""


def test_a_layer_stands_for_its_main_table(made: tuple[fanplan.Plan, fanplan.Dataset]) -> None:
    plan, data = made
    assert plan["channels"].equals(plan["channel_flows"])
    assert plan["overlay"].equals(plan["links"])
    for layer in plan.record.layers:
        assert plan.record.sections[layer].main in plan.tables
    with pytest.raises(InputError, match=r"has no table 'chanels'.*'channels'"):
        plan["chanels"]
    arrow = fanplan.open_plan(plan, "arrow")
    assert isinstance(arrow["channels"], pa.Table)
    assert isinstance(arrow.ask(data).bottlenecks(), pa.Table)


@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_changes_are_those_that_single_rows_find(seed: int, tmp_path: Path) -> None:
    plan, dataset = planned(tmp_path, replace(world_of(seed), brokers=True), **SPACE)
    opened, data = fanplan.open_plan(plan), fanplan.open_dataset(dataset)
    record, problem = opened.section(ChannelsRecord), data.interest()
    map_ = fixed_map(opened, data.path, problem)
    for unicast in (True, False):
        now, then, place = next_best(problem, map_, record.weights, unicast)
        for row in range(problem.size):
            told = explain_row(problem, map_, record.weights, row, unicast)
            assert now[row] == pytest.approx(told["cost"])
            if place[row] == NOWHERE:
                assert told["runner_up"] == "none"
                continue
            assert then[row] == pytest.approx(told["runner_up_cost"])
            assert place[row] >= ALONE
    rows = opened.ask(data, "arrow").cheapest_change(3).to_pylist()
    changes = [row["change"] for row in rows]
    assert changes == sorted(changes)
    assert len(rows) == 3
    moving = np.isfinite(then := next_best(problem, map_, record.weights)[1]) & (problem.rates > 0)
    least = (then - next_best(problem, map_, record.weights)[0])[moving].min()
    assert changes[0] == pytest.approx(least)
    assert all(row["now"] != row["then"] for row in rows)
    assert place_name(np.array([], np.int64)) == "unicast"
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="not a number of changes"):
            opened.ask(data).cheapest_change(wrong)  # type: ignore[arg-type]


# ---- keywords


def test_no_function_takes_just_anything() -> None:
    for name in fanplan.__all__:
        verb = getattr(fanplan, name)
        if inspect.isfunction(verb):
            for parameter in inspect.signature(verb).parameters.values():
                assert parameter.annotation not in ("Any", Any), f"{name}: {parameter}"


def test_keywords_are_the_options_that_are_stated_elsewhere() -> None:
    own = {item.name for kind in (GroupsChurn, MarkingChurn) for item in fields(kind)}
    assert set(get_type_hints(Churning)) == own
    assert set(get_type_hints(Watching)) == {item.name for item in fields(WatchParams)}
    for verb, params in ((fanplan.export, ExportParams), (fanplan.trial, TrialParams)):
        assert {item.name for item in fields(params)} <= set(inspect.signature(verb).parameters)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fanplan.open_plan(3), "is of type int"),  # type: ignore[arg-type]
        (lambda: fanplan.open_dataset(3), "not a path"),  # type: ignore[arg-type]
        (lambda: fanplan.quarantine(3), "not a path"),  # type: ignore[arg-type]
        (lambda: fanplan.generate("market", "x", symbols=3), "symbols: no such option"),
        (lambda: fanplan.generate("market", "x", users="3"), "Give a whole number"),  # type: ignore[call-overload]
        (lambda: fanplan.generate("markets", "x"), "no such kind"),
    ],
)
def test_what_is_of_the_wrong_type_is_told(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_failures_of_spark_and_of_the_machine_are_told_in_our_words() -> None:
    def raising(error: Exception) -> Callable[[], None]:
        @in_our_words
        def verb() -> None:
            raise error

        return verb

    class SparkError(Exception):
        pass

    class Wordless(SparkError):
        def __str__(self) -> str:
            raise ConnectionRefusedError  # As errors of py4j do, whose JVM has gone.

    SparkError.__module__ = Wordless.__module__ = "pyspark.errors"
    with pytest.raises(MachineError, match=r"a job failed .COLUMN_NOT_FOUND"):
        raising(SparkError("COLUMN_NOT_FOUND\nand so on"))()
    with pytest.raises(MachineError, match="No space left"):
        raising(SparkError("java.io.IOException: No space left on device"))()
    with pytest.raises(MachineError, match="cannot be reached any more"):
        raising(Wordless())()
    with pytest.raises(InputError, match="Check the path"):
        raising(FileNotFoundError(2, "gone", "plan.json"))()
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())()
