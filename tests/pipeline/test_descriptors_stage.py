"""Descriptors of an ingested workload, counted by hand, and a plan made from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from commands import answer, run
from pyspark.sql import SparkSession

from fanplan.errors import InputError
from fanplan.pipeline import descriptors
from fanplan.pipeline.derived import Derived
from fanplan.pipeline.ingest import ingest_workload
from fanplan.problem.dataset import read_stage
from fanplan.progress import quiet

FILES = {
    "workload.toml": """
topic_syntax = "nats"
[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
[topics."q.*"]
attributes = ["price"]
[topics.alerts]
""",
    # At A one region is covered and two are equal; at C is one without attributes.
    "advertisements.csv": """publisher,topic,filter,broker
p0,q.a,price < 50,A
p0,q.a,price < 20,A
p1,q.a,price < 50,A
p1,q.b,,A
p2,alerts,,C
""",
    # At B the pattern means two topics, in one of which it is covered; at C are two boxes.
    "subscriptions.csv": """subscriber,topic,filter,broker
s0,q.*,price >= 10 AND price < 30,B
s1,q.a,price < 40,B
s2,alerts,,B
s3,alerts,,B
s4,q.a,NOT (price >= 10 AND price < 30),C
""",
    "brokers.csv": "broker\nA\nB\nC\n",
    "links.csv": "a,b\nA,B\nB,C\n",
}
COUNTS = [("A", 2, 0, 4, 0), ("B", 0, 3, 0, 5), ("C", 1, 2, 1, 2)]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Derived:
    folder = tmp_path_factory.mktemp("descriptors")
    (folder / "workload").mkdir()
    for name, content in FILES.items():
        (folder / "workload" / name).write_text(content)
    ingest_workload(lambda: spark, folder / "workload", folder / "dataset", {}, quiet())
    return Derived(lambda: spark, folder / "dataset", quiet())


def test_from_tables_to_a_checked_plan(
    source: Derived, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    descriptors.descriptors(source)
    table = read_stage(source.dataset, "descriptors", ("broker", *descriptors.COUNTS))
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == COUNTS
    plan = tmp_path / "plan"
    words = ("mark", source.dataset, "--trees", "per-source", "--out")
    code, told = answer(capsys, *words, plan)
    assert (code, told["cost"], told["p_links"], told["s_links"]) == (0, 5.0, 2, 1)
    assert answer(capsys, *words, tmp_path / "raw", "--raw")[1]["cost"] == 7.0
    assert run("check", plan, source.dataset) == 0


def test_without_advertisements_nothing_is_published(source: Derived, tmp_path: Path) -> None:
    folder = tmp_path / "silent"
    folder.mkdir()
    for name in ("subscriptions", "regions"):
        (folder / name).symlink_to(source.dataset / name)
    manifest = (source.dataset / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest.replace('"advertisements"', '"other"'))
    with pytest.raises(InputError, match="advertisements: there is no such table"):
        descriptors.descriptors(Derived(source.session, folder, quiet()))


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

    def counted(*cuts: int) -> list[tuple]:
        def batches() -> Iterator[pa.RecordBatch]:
            for start, end in zip((0, *cuts), (*cuts, 8), strict=True):
                yield rows.slice(start, end - start)

        found = descriptors._counted(1, batches())
        return [tuple(row.values()) for batch in found for row in batch.to_pylist()]

    whole = [("A", False, 2, 1), ("A", True, 4, 2), ("B", True, 7, 1), ("B", True, 2, 1)]
    for cuts in ((), (3,), (1, 2, 3, 4), (4, 4, 6), (5, 7)):
        assert counted(*cuts) == whole
