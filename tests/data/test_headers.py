"""Headers in any capitals: the same rows, and a refusal where two columns become one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.data.read.formats import KIND_ENDS, attribute_column, read_splits
from fanplan.data.read.rows import layout_of
from fanplan.data.read.sources import find_sources
from fanplan.workload.description import Description
from fanplan.workload.space import NumberAttribute
from fanplan.workload.tables import PUBLICATIONS

PRICES = Description("test", attributes={"Größe": NumberAttribute("Größe", 0.0, 100.0)})
COLUMNS: dict[str, list[str | None]] = {
    "time": ["0", "1.5", None],
    "topic": ["t", "Zürich/λ", "日本"],
    "publisher": ["p", None, "🙂"],
    "größe": ["1", "2", "3"],
    "bytes": ["7", "8", "9"],
}
EXPECTED = [
    {name.replace("größe", attribute_column(0)): values[row] for name, values in COLUMNS.items()}
    for row in range(3)
]


def read(folder: Path) -> list[dict[str, str | None]]:
    """Publications as tasks deliver them."""
    source = find_sources(folder, PRICES.attributes)["publications"]
    layout = layout_of(source, PUBLICATIONS, PRICES)
    batches = list(read_splits(source.splits, layout))
    table = pa.Table.from_batches(batches).select([*EXPECTED[0], "_fault"])
    rows: list[dict[str, str | None]] = table.to_pylist()
    return rows


def write(folder: Path, form: str, table: pa.Table) -> None:
    (folder / "subscriptions.csv").write_text("SUBSCRIBER,Topic\ns,t\n")
    for old in folder.glob("publications*"):
        old.unlink()
    path = folder / f"publications.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "csv":
        mark = b"\xef\xbb\xbf"
        sink = pa.BufferOutputStream()
        pa.csv.write_csv(table, sink, pa.csv.WriteOptions(quoting_style="needed"))
        path.write_bytes(mark + sink.getvalue().to_pybytes().replace(b"\n", b"\r\n"))
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in table.to_pylist()]
        path.write_text("\n".join(lines), encoding="utf-8")


@given(data=st.data(), form=st.sampled_from(["csv", "jsonl", "parquet"]))
def test_capitals_of_headers_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, form: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "capitals"
    folder.mkdir(exist_ok=True)
    order = data.draw(st.permutations(sorted(COLUMNS)))
    big = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])
    # ß has two capitals in other letters: its upper case is another name.
    names = [name if "ß" in name else data.draw(big)(name) for name in order]
    columns = [pa.array(COLUMNS[name], pa.string()) for name in order]
    write(folder, form, pa.Table.from_arrays(columns, names))
    assert read(folder) == [row | {"_fault": None} for row in EXPECTED]


def test_keys_of_attributes_have_any_capitals(tmp_path: Path) -> None:
    maps = [{"GRÖßE": "1"}, {"größe": 2}, {"Größe": "3", "gröSSe": 4}]
    table = {name: v for name, v in COLUMNS.items() if name != "größe"}
    texts = [json.dumps(found, ensure_ascii=False) for found in maps]
    write(tmp_path, "csv", pa.table({**table, "ATTRIBUTES": texts}))
    assert read(tmp_path) == [row | {"_fault": None} for row in EXPECTED]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_that_differ_only_in_capitals_are_refused(tmp_path: Path, form: str) -> None:
    write(tmp_path, form, pa.table({"topic": ["a"], "Topic": ["b"], "x": [1], "X": [2]}))
    with pytest.raises(InputError) as caught:
        find_sources(tmp_path)
    (problem,) = caught.value.problems
    assert problem.what == "has columns that differ only in capitals: 'Topic', 'topic'"
    assert problem.where == f"publications.{form}"


def test_keys_that_differ_only_in_capitals_are_a_fault_of_the_row(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", pa.table({"topic": ["a"]}))
    lines = ['{"topic": "a", "TOPIC": "b"}', '{"topic": "a", "x": 1, "X": 2}']
    (tmp_path / "publications.jsonl").write_text("\n".join(lines))
    clash, fine = read(tmp_path)
    assert clash["_fault"] == f"keys that differ only in capitals{KIND_ENDS}: 'TOPIC', 'topic'"
    assert (fine["topic"], fine["_fault"]) == ("a", None)
