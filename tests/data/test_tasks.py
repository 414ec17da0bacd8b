"""One Spark task per item: order, progress, payloads and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fanplan.core.errors import StageError
from fanplan.data.tasks import PAYLOAD, run_tasks


def test_results_come_in_the_order_of_the_items_with_payloads(spark: SparkSession) -> None:
    def work(item: dict[str, Any]) -> dict[str, Any]:
        # Local, so that it travels by value: executors do not see the tests.
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        ran = {"square": item["x"] ** 2, "stage": context.stageId(), "part": context.partitionId()}
        return ran | ({"payload": b"\x00" * item["x"]} if item["x"] else {})

    items = [{"x": x} for x in range(21)]
    told: list[int] = []
    results = run_tasks(spark, work, items, told.append)
    assert [result["square"] for result in results] == [x**2 for x in range(21)]
    assert [len(result.get(PAYLOAD, b"")) for result in results] == list(range(21))
    assert PAYLOAD not in results[0]
    assert len({(result["stage"], result["part"]) for result in results}) == 21
    assert told == sorted(told)
    assert told[-1] == 21
    assert len(told) > 1


def test_no_items_give_no_results(spark: SparkSession) -> None:
    assert run_tasks(spark, dict, []) == []


def test_a_failing_item_is_named_with_its_error(spark: SparkSession) -> None:
    def work(item: dict[str, Any]) -> dict[str, Any]:
        return {"inverse": 1 / item["x"]}

    items: list[dict[str, Any]] = [{"x": 2}, {"x": 0, "name": "zero"}]
    with pytest.raises(StageError, match=r"item 1, .*'name': 'zero'.*ZeroDivisionError"):
        run_tasks(spark, work, items)


def test_after_a_failure_no_further_task_starts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(item: dict[str, Any]) -> dict[str, Any]:
        from pathlib import Path

        Path(item["file"]).touch()
        raise ValueError("always")

    monkeypatch.setattr("fanplan.data.tasks.task_slots", lambda _: 1)
    items = [{"file": str(tmp_path / str(i))} for i in range(40)]
    with pytest.raises(StageError, match="always"):
        run_tasks(spark, work, items)
    assert run_tasks(spark, dict, [{"after": 1}, {"after": 2}]) == [{"after": 1}, {"after": 2}]
    assert 1 <= len(list(tmp_path.iterdir())) < 40


def test_an_item_that_is_not_json_is_refused(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match="JSON"):
        run_tasks(spark, dict, [{"x": object()}])
