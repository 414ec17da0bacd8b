"""Descriptors of a dataset, counted by hand, and a plan made from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import answer, run
from overlays import write_manifest, write_stage
from pyspark.sql import SparkSession
from sealing import seal_dataset

from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.data.ingest.derived import Derived
from fanplan.data.reader import read_stage
from fanplan.layers.marking.stages import descriptors
from fanplan.layers.marking.stages.tables import COVERS, DESCRIPTORS

TOPICS = {"q.a": (0, 1), "q.b": (1, 1), "alerts": (2, 0)}
"""Number and space of each topic."""

FILTERS: dict[tuple[str, int], list[tuple[list[float], list[float]]]] = {
    ("", 0): [([], [])],
    ("", 1): [([0.0], [100.0])],
    ("price < 20", 1): [([0.0], [20.0])],
    ("price < 50", 1): [([0.0], [50.0])],
}
# At A one region is covered and two are equal; at C is one without attributes.
ADVERTISEMENTS = [
    ("p0", "q.a", "price < 50", "A"),
    ("p0", "q.a", "price < 20", "A"),
    ("p1", "q.a", "price < 50", "A"),
    ("p1", "q.b", "", "A"),
    ("p2", "alerts", "", "C"),
]
# At B two subscribers want the same and one region is covered, in one topic only; at C are two.
REGIONS = [
    ("B", "q.a", [10.0], [30.0]),
    ("B", "q.b", [10.0], [30.0]),
    ("B", "q.a", [0.0], [40.0]),
    ("B", "alerts", [], []),
    ("B", "alerts", [], []),
    ("C", "q.a", [0.0], [10.0]),
    ("C", "q.a", [30.0], [100.0]),
]
COUNTS = [("A", 2, 0, 4, 0), ("B", 0, 3, 0, 5), ("C", 1, 2, 1, 2)]


def stages() -> dict[str, dict[str, Any]]:
    """What ingest leaves of a chain of brokers, as far as descriptors and marks need it."""
    publisher, topic, text, broker = map(list, zip(*ADVERTISEMENTS, strict=True))
    at, wanted, lo, hi = map(list, zip(*REGIONS, strict=True))
    numbers, spaces = (
        pa.array(column, pa.int32()) for column in zip(*TOPICS.values(), strict=True)
    )
    coordinates = pa.list_(pa.float64())
    boxes = [[{"lo": low, "hi": high} for low, high in boxes] for boxes in FILTERS.values()]
    nothing = pa.nulls(3, pa.float64())
    own = pa.array(range(len(REGIONS)), pa.int64())
    return {
        "advertisements": {"publisher": publisher, "topic": topic, "filter": text}
        | {"rate": pa.nulls(len(topic), pa.float64()), "broker": broker},
        "patterns": {"pattern": list(TOPICS), "topic_id": numbers, "space": spaces},
        "filters": {
            "filter": [text for text, _ in FILTERS],
            "space": pa.array([space for _, space in FILTERS], pa.int32()),
            "boxes": pa.array(boxes, pa.list_(pa.struct({"lo": coordinates, "hi": coordinates}))),
        },
        "subscriptions": {"subscription": own, "broker": at},
        "regions": {
            "subscription": own,
            "topic_id": pa.array([TOPICS[name][0] for name in wanted], pa.int32()),
            "lo": pa.array(lo, coordinates),
            "hi": pa.array(hi, coordinates),
        },
        "brokers": {"broker": ["A", "B", "C"], "capacity": nothing, "cost": nothing},
        "links": {"a": ["A", "B"], "b": ["B", "C"]}
        | dict.fromkeys(("latency_ms", "bandwidth", "cost"), pa.array([1.0, 1.0])),
    }


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Derived:
    folder = tmp_path / "dataset"
    folder.mkdir()
    rows = {name: write_stage(folder, name, columns) for name, columns in stages().items()}
    write_manifest(folder, 1.0, rows, dimensions=1)
    return Derived(lambda: spark, folder, quiet())


def test_from_tables_to_a_checked_plan(
    source: Derived, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    descriptors.descriptors_stage(source)
    table = read_stage(source.dataset, "descriptors", DESCRIPTORS.names)
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == COUNTS
    plan = tmp_path / "plan"
    words = ("mark", source.dataset, "--trees", "per-source", "--out")
    code, told = answer(capsys, *words, plan)
    assert (code, told["cost"], told["p_links"], told["s_links"]) == (0, 5.0, 2, 1)
    assert answer(capsys, *words, tmp_path / "raw", "--raw")[1]["cost"] == 7.0
    assert run("check", plan, source.dataset) == 0
    # B's region in q.a covers one of C's, where both are behind a link.
    shared = ("--merge", "--master", "local[2]")
    merged = answer(capsys, *words, tmp_path / "merged", *shared)[1]["merged"]
    covers = read_stage(source.dataset, "descriptor_covers", COVERS.names).to_pylist()
    assert [tuple(row.values()) for row in covers] == [(False, "C", ["B"], 1)]
    assert (merged["plain"], merged["cost"], merged["sub_everywhere"]) == (5.0, 5.0, 9.0)


def test_without_advertisements_nothing_is_published(source: Derived) -> None:
    path = source.dataset / "manifest.json"
    path.write_text(path.read_text().replace('"advertisements"', '"other"'))
    seal_dataset(source.dataset)
    with pytest.raises(InputError, match="advertisements: there is no such table"):
        descriptors.descriptors_stage(source)


def test_groups_may_span_batches() -> None:
    rows = pa.record_batch(
        {
            "broker": ["A"] * 5 + ["B"] * 3,
            "publishes": [False, False, True, True, True, True, True, True],
            "topic_id": pa.array([0, 0, 0, 0, 0, 0, 1, 1], pa.int32()),
            "lo": [[0.0], [1.0], [0.0], [2.0], [1.0], [], [0.0], [3.0]],
            "hi": [[9.0], [2.0], [4.0], [5.0], [3.0], [], [4.0], [4.0]],
            "regions": [1, 1, 2, 1, 1, 7, 1, 1],
        }
    )

    def counted(*cuts: int) -> list[tuple[Any, ...]]:
        def batches() -> Iterator[pa.RecordBatch]:
            for start, end in zip((0, *cuts), (*cuts, 8), strict=True):
                yield rows.slice(start, end - start)

        found = descriptors._counted_regions(1, batches())
        return [tuple(row.values()) for batch in found for row in batch.to_pylist()]

    whole = [("A", False, 2, 1), ("A", True, 4, 2), ("B", True, 7, 1), ("B", True, 2, 1)]
    for cuts in ((), (3,), (1, 2, 3, 4), (4, 4, 6), (5, 7)):
        assert counted(*cuts) == whole


def test_too_much_to_compare_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.record_batch(
        {
            "broker": ["A", "B", "B", "C"],
            "publishes": [True] * 4,
            "topic_id": pa.array([0, 0, 0, 0], pa.int32()),
            "lo": [[0.0], [1.0], [3.0], [3.0]],
            "hi": [[4.0], [2.0], [4.0], [4.0]],
        }
    )

    def found() -> list[tuple[Any, ...]]:
        batches = descriptors._covered_regions(1, iter([rows]))
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    alike = [("B", ["A"]), ("B", ["A"]), ("C", ["A", "B"])]
    assert found() == [(True, broker, coverers, 1) for broker, coverers in alike]
    for limit in ("PAIRS", "REGIONS"):
        with monkeypatch.context() as lower:
            lower.setattr(descriptors, limit, 3)
            assert found() == [(True, None, [], 4)]
