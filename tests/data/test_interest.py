"""Reading a dataset gives the arrays that its tables describe, and names what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, unhurried, worlds, write_dataset
from hypothesis import given
from sealing import amend, seal_dataset

from fanplan.core.errors import InputError
from fanplan.data.interest import InterestProblem, load_interest, per_flow

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


def audiences(problem: InterestProblem) -> list[frozenset[int]]:
    return [frozenset(part.tolist()) for part in np.split(problem.audience, problem.indptr[1:-1])]


def test_classes_of_a_dataset(dataset: Any) -> None:
    problem = load_interest(dataset)
    assert audiences(problem) == [{0, 2}, {1}]
    assert problem.messages.tolist() == [10.0, 1.0]
    assert problem.bytes.tolist() == [100.0, 10.0]
    assert problem.rates.tolist() == [5.0, 0.5]
    assert problem.flows.tolist() == [2, 1]
    assert problem.subscribers.to_pylist() == ["s0", "s1", "s2"]
    assert (problem.nnz, problem.flow_count, problem.class_count) == (3, 3, 2)
    assert problem.source == "key-1"


@unhurried
@given(worlds())
def test_one_row_per_wanted_flow(tmp_path_factory: pytest.TempPathFactory, world: Any) -> None:
    dataset = write_dataset(tmp_path_factory.mktemp("world") / "dataset", world)
    problem = load_interest(dataset, "flow")
    assert audiences(problem) == [flow.audience for flow in world.wanted]
    assert problem.messages.tolist() == [flow.messages for flow in world.wanted]
    assert problem.class_count == load_interest(dataset).size == len(world.audiences)
    assert problem.flow_count == len(world.wanted) == load_interest(dataset).flow_count


def test_problems_cannot_be_written_to(dataset: Any) -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_interest(dataset).messages[0] = 1.0


def test_flow_of_an_unknown_class_is_refused(dataset: Any) -> None:
    with pytest.raises(InputError, match="outside 0 to 1"):
        per_flow(load_interest(dataset), np.array([0, 2], np.int32), np.ones(2), np.ones(2))


def change(path: Any, **columns: Any) -> None:
    """Rewrite a table with other columns."""
    table = pq.read_table(path).to_pydict() | columns
    schema = pq.read_schema(path)
    pq.write_table(pa.table(table, schema=schema), path)
    seal_dataset(path.parents[1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"audience_class": [0, 2]}, "not numbered 0 to 1"),
        ({"audience_class": [0, 0]}, "not numbered 0 to 1"),
        ({"subscribers": [[0, 3], [1]]}, "outside 0 to 2"),
        ({"subscribers": [[2, 0], [1]]}, "out of order or twice"),
        ({"subscribers": [[2, 2], [1]]}, "out of order or twice"),
        ({"messages": [1.0, float("nan")]}, "has messages nan"),
        ({"bytes": [-1.0, 1.0]}, "has bytes -1.0"),
    ],
)
def test_broken_classes_are_named(dataset: Any, columns: Any, message: str) -> None:
    change(dataset / "classes" / "part-00000.parquet", **columns)
    with pytest.raises(InputError, match=message):
        load_interest(dataset)


def test_missing_manifest(dataset: Any) -> None:
    (dataset / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"no manifest\.json"):
        load_interest(dataset)


@pytest.mark.parametrize("content", ["{", "[]", "\0", '{"key": "k", "seal": "s"}'])
def test_manifest_that_was_not_written_like_this(dataset: Any, content: str) -> None:
    (dataset / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"manifest\.json: hash differs"):
        load_interest(dataset)


def test_manifest_that_cannot_be_understood(dataset: Any) -> None:
    (dataset / "manifest.json").write_text('{"key": "k"}')
    with pytest.raises(InputError, match="has no hashes: an older version wrote it"):
        load_interest(dataset)
    seal_dataset(dataset)
    with pytest.raises(InputError, match="cannot be understood"):
        load_interest(dataset)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf")])
def test_window_must_be_positive(dataset: Any, seconds: Any) -> None:
    amend(dataset, seconds=seconds)
    with pytest.raises(InputError, match="seconds"):
        load_interest(dataset)


def test_truncated_table_is_named(dataset: Any) -> None:
    path = dataset / "classes" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="part-00000"):
        load_interest(dataset)


def test_missing_stage_and_column_are_named(dataset: Any) -> None:
    path = dataset / "classes" / "part-00000.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["messages"]), path)
    seal_dataset(dataset)
    with pytest.raises(InputError, match="no column messages"):
        load_interest(dataset)
    path.unlink()
    with pytest.raises(InputError, match=r"stage classes: part-00000\.parquet: missing"):
        load_interest(dataset)
    seal_dataset(dataset)
    with pytest.raises(InputError, match="no Parquet files"):
        load_interest(dataset)
