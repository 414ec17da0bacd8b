"""Frames of other programs: the same dataset as from files, whatever they come as."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fanplan
from fanplan.core.errors import InputError
from fanplan.data.frames import as_arrow, as_toml
from fanplan.workload.description import parse_description

HERE = fanplan.Engine("local[2]")
DESCRIPTION = {
    "topic_syntax": "nats",
    "attributes": {
        "price": {"type": "number", "min": 0.0, "max": 100.0},
        "venue": {"type": "category", "values": ["N", "Q", 'the "third"']},
    },
    "topics": {"q.*": {"attributes": ["price", "venue"]}, "alerts": {}},
}
SUBSCRIPTIONS = [
    {"subscriber": "ann", "topic": "q.*", "filter": "price > 30"},
    {"subscriber": "bob", "topic": "q.ibm", "filter": "venue = 'N'"},
    {"subscriber": "ann", "topic": "alerts"},
    {"subscriber": "eve", "topic": "nowhere"},
]
PUBLICATIONS = [
    {"time": i / 2, "topic": "q.ibm", "price": float(i), "venue": "NQ"[i % 2]} for i in range(80)
] + [{"time": 41.0, "topic": "alerts"}, {"time": 42.0, "topic": "q.ibm", "price": 500.0}]


def as_spark(spark: SparkSession, rows: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame(pd.DataFrame(rows))


def told(dataset: fanplan.Dataset) -> dict[str, Any]:
    """What a dataset says, apart from where it came from."""
    flows = sorted((row["flow"], row["messages"]) for row in dataset.table("flows").to_pylist())
    apart = sorted(
        (row["table"], row["line"], row["reason"])
        for row in dataset.table("quarantine").to_pylist()
    )
    return {"flows": flows, "quarantine": apart, "seconds": dataset.manifest.seconds}


@pytest.fixture(scope="module")
def from_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "desk").mkdir()
    (folder / "desk" / "workload.toml").write_text(as_toml(DESCRIPTION))
    for name, rows in (("subscriptions", SUBSCRIPTIONS), ("publications", PUBLICATIONS)):
        text = io.StringIO()
        names = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(rows)
        (folder / "desk" / f"{name}.csv").write_text(text.getvalue())
    found = told(fanplan.ingest(folder / "desk", folder / "dataset", engine=HERE))
    # A line of a CSV file is counted from its header.
    found["quarantine"] = [(t, line - 1, reason) for t, line, reason in found["quarantine"]]
    return found


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "spark", "dicts", "columns"])
def test_frames_give_the_dataset_that_files_give(
    spark: SparkSession, from_files: dict[str, Any], kind: str
) -> None:
    make = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": lambda rows: pa.Table.from_pandas(pd.DataFrame(rows)),
        "spark": lambda rows: as_spark(spark, rows).coalesce(1),
        "dicts": list,
        "columns": lambda rows: pd.DataFrame(rows).to_dict("list"),
    }[kind]
    frames = {"subscriptions": SUBSCRIPTIONS, "publications": make(PUBLICATIONS)}
    dataset = fanplan.ingest(frames, description=DESCRIPTION, engine=HERE)
    assert told(dataset) == from_files
    assert fanplan.channels(dataset.path, 1).summary()["channels"] == 1


def test_values_of_mixed_types_are_judged_row_by_row() -> None:
    table = as_arrow([{"bytes": 3}, {"bytes": "many"}, {"bytes": None}, {"time": "noon"}], "t")
    assert table.to_pydict() == {
        "bytes": ["3", "many", None, None],
        "time": [None, None, None, "noon"],
    }
    frame = pd.DataFrame({"bytes": [3, "many", None, float("nan")]}, dtype=object)
    assert as_arrow(frame, "t").to_pydict() == {"bytes": ["3", "many", None, None]}


def test_a_description_is_what_its_text_would_be() -> None:
    found = parse_description(as_toml(DESCRIPTION), "desk")
    assert found.attributes["venue"].values == ("N", "Q", 'the "third"')  # type: ignore[union-attr]
    assert [entry.pattern for entry in found.topics] == ["q.*", "alerts"]


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ({"subscription": []}, "Did you mean 'subscriptions'"),
        ({"subscriptions": 3}, "is of type int, which is not a table"),
        ({"subscriptions": {"subscriber": ["a"], "topic": ["x", "y"]}}, "different lengths"),
        ({"subscriptions": {"subscriber": "ann", "topic": ["x"]}}, "which is not a column"),
        ([1, 2], "workload: is of type list"),
        (pd.DataFrame(), "pandas"),
    ],
)
def test_what_is_no_table_is_told(frames: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        fanplan.ingest(frames, tmp_path / "dataset", engine=HERE)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_dataset_or_plan_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is of type pandas.*fanplan.ingest makes one"):
        fanplan.channels(pd.DataFrame(), 3)
    (tmp_path / "workload.toml").write_text("")
    with pytest.raises(InputError, match="is a workload, not a dataset"):
        fanplan.channels(tmp_path, 3)
    with pytest.raises(InputError, match=r"save\(folder\)"):
        fanplan.check(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has its own description"):
        fanplan.ingest(tmp_path, tmp_path / "out", description={"name": "x"})
    assert {"ingest", "design", "open_plan", "Plan"} <= set(dir(fanplan))
