"""Synthesised publications: the law is followed, and a seed fixes every row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy import stats

from fanplan.core.errors import InputError
from fanplan.data import synthesis
from fanplan.data.synthesis import Sample, draw_publications, uniform, write_law, write_publications
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.clients import ClientsParams
from fanplan.workload.generators.generated import AxisLaw, PublicationLaw, TableFormat
from fanplan.workload.space import CategoryAttribute, NumberAttribute

VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))
PRICE = NumberAttribute("price", 10.0, 20.0)
LAW = PublicationLaw(
    pa.array(["a", "b", "c", "d", "e"]),
    np.array([5.0, 0.0, 3.0, 2.0, 0.0]),
    pa.array(["p", "p", "q", "q", "r"]),
    50,
    (
        AxisLaw(VENUE, np.array([1.0, 0.0, 3.0])),
        AxisLaw(PRICE),
        AxisLaw(CategoryAttribute("side", ("B",))),
    ),
)
ROWS, SECONDS = 30_000, 60.0


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publications written once for the tests that only look at them."""
    out = tmp_path_factory.mktemp("synthesis") / "publications"
    write_publications(spark, LAW, ROWS, SECONDS, 7, out)
    return out


@pytest.fixture(scope="module")
def table(folder: Path) -> pa.Table:
    return pa.parquet.read_table(folder)


def test_columns_are_those_of_publications_and_one_per_attribute(table: pa.Table) -> None:
    assert table.num_rows == ROWS
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("time", "double"),
        ("publisher", "string"),
        ("topic", "string"),
        ("bytes", "int64"),
        ("venue", "string"),
        ("price", "double"),
        ("side", "string"),
    ]


def test_publications_lie_in_the_boxes_of_their_advertisements(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = load_kind("clients").generate(ClientsParams(advertisements=50), 1)
    write_publications(spark, made.law, 2000, 1.0, 7, tmp_path / "p")
    table = pa.parquet.read_table(tmp_path / "p")
    sender = np.array([int(name[1:]) for name in table["publisher"].to_pylist()])
    assert made.law.lo is not None
    assert made.law.hi is not None
    lo, hi = made.law.lo[sender], made.law.hi[sender]
    point = np.stack((table["a0"].to_numpy(), table["a1"].to_numpy()), axis=1)
    assert ((lo <= point) & (point < hi)).all()
    assert stats.kstest(((point - lo) / (hi - lo)).ravel(), "uniform").pvalue > 0.001


def test_topics_follow_their_rates(table: pa.Table) -> None:
    topics = np.array(table["topic"].to_pylist())
    counts = [int((topics == name).sum()) for name in "acd"]
    assert sum(counts) == ROWS
    assert stats.chisquare(counts, ROWS * np.array([0.5, 0.3, 0.2])).pvalue > 0.001


def test_each_topic_has_its_publisher(table: pa.Table) -> None:
    pairs = set(zip(table["topic"].to_pylist(), table["publisher"].to_pylist(), strict=True))
    assert pairs == {("a", "p"), ("c", "q"), ("d", "q")}


def test_values_follow_their_axes(table: pa.Table) -> None:
    venue, price = np.array(table["venue"].to_pylist()), table["price"].to_numpy()
    counts = [int((venue == name).sum()) for name in "NZ"]
    assert sum(counts) == ROWS
    assert stats.chisquare(counts, [ROWS / 4, 3 * ROWS / 4]).pvalue > 0.001
    assert stats.kstest(price, stats.uniform(10, 10).cdf).pvalue > 0.001


def test_draws_of_a_row_are_independent(table: pa.Table) -> None:
    topic, venue = np.array(table["topic"].to_pylist()), np.array(table["venue"].to_pylist())
    counts = [[int(((topic == t) & (venue == v)).sum()) for v in "NZ"] for t in "acd"]
    assert stats.chi2_contingency(counts).pvalue > 0.001


def test_time_is_ordered_and_within_the_window(table: pa.Table) -> None:
    time = table["time"].to_numpy()
    assert (np.diff(time) >= 0).all()
    assert 0 <= time[0] < time[-1] <= SECONDS
    assert stats.kstest(time, stats.uniform(0, SECONDS).cdf).pvalue > 0.001


def test_sizes_have_the_mean_asked_for(table: pa.Table) -> None:
    sizes = table["bytes"].to_numpy()
    assert sizes.min() >= 1
    assert abs(sizes.mean() - 50) < 5 * 50 / np.sqrt(ROWS)


def test_only_data_is_left_in_the_folder(folder: Path) -> None:
    assert {path.suffix for path in folder.iterdir()} == {".parquet"}
    assert [path.name for path in folder.parent.iterdir()] == ["publications"]


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_the_number_of_partitions_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    shared = tmp_path / "law.parquet"
    write_law(LAW, shared)
    sample = Sample(1000, SECONDS, 7)
    one = rows(draw_publications(spark, str(shared), LAW, sample, partitions=1))
    assert one == rows(draw_publications(spark, str(shared), LAW, sample, partitions=3))
    assert one != rows(
        draw_publications(spark, str(shared), LAW, Sample(1000, SECONDS, 8), partitions=1)
    )


@pytest.mark.parametrize(
    ("format", "read"), [("csv", pa.csv.read_csv), ("jsonl", pa.json.read_json)]
)
def test_other_formats_hold_the_same_rows(
    spark: SparkSession, tmp_path: Path, format: TableFormat, read: Callable[[Path], pa.Table]
) -> None:
    out = tmp_path / "publications"
    write_publications(spark, LAW, 200, SECONDS, 7, out, format)
    write_publications(spark, LAW, 200, SECONDS, 7, tmp_path / "parquet")
    (file,) = out.iterdir()
    assert file.suffix == f".{format}"
    assert read(file).to_pylist() == pa.parquet.read_table(tmp_path / "parquet").to_pylist()


def test_a_failed_write_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(publications: DataFrame, folder: Path, format: str) -> None:
        (folder / "part-0.parquet").write_text("half")
        raise OSError("no space left")

    monkeypatch.setattr(synthesis, "_write", fail)
    with pytest.raises(OSError, match="no space"):
        write_publications(spark, LAW, 10, SECONDS, 7, tmp_path / "publications")
    assert not list(tmp_path.iterdir())


def test_bad_sizes_are_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        Sample(-1, float("inf"), 0)
    assert [problem.where for problem in caught.value.problems] == ["publications", "seconds"]


def test_uniform_is_splitmix64() -> None:
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    got = uniform(np.uint64(1234567), np.arange(1, 5))
    assert (got == np.array([number >> 11 for number in known]) * 2.0**-53).all()


def test_uniform_streams_of_two_keys_are_unrelated() -> None:
    keys, row = np.random.SeedSequence(0).generate_state(2, np.uint64), np.arange(50_000)
    first, second = uniform(keys[0], row), uniform(keys[1], row)
    assert stats.kstest(first, stats.uniform.cdf).pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(50_000)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 5 / np.sqrt(50_000)
