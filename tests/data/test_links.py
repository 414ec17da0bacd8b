"""The table of links: parallel ones count as one, and latencies that are missing are assumed."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fanplan.data.links import LINK_COLUMNS, assumed_latency, joined_links, link_notes

Row = tuple[str, str, float | None, float | None, float]
number = st.integers(0, 5).map(float)
ends = st.lists(st.sampled_from("ABCD"), min_size=2, max_size=2, unique=True)
rows = st.lists(
    st.builds(
        lambda pair, *rest: (*pair, *rest), ends, st.none() | number, st.none() | number, number
    ),
    max_size=12,
)


def table_of(found: list[Row]) -> pa.Table:
    types = (pa.string(), pa.string(), pa.float64(), pa.float64(), pa.float64())
    columns: Any = list(zip(*found, strict=True)) or [()] * len(types)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], LINK_COLUMNS)


@given(rows)
def test_parallel_links_are_joined(found: list[Row]) -> None:
    between: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in found:
        between[min(row[:2]), max(row[:2])].append(row)
    expected = []
    for (a, b), parallel in between.items():
        known = [row[2] for row in parallel if row[2] is not None]
        width = [row[3] for row in parallel if row[3] is not None]
        total = sum(width) if len(width) == len(parallel) else None
        expected.append((a, b, min(known, default=None), total, min(row[4] for row in parallel)))
    joined = joined_links(table_of(found))
    assert [tuple(row.values()) for row in joined.to_pylist()] == expected
    known = [row[2] for row in expected if row[2] is not None]
    assert assumed_latency(joined) == (median(known) if known else 1.0)


def test_notes_count_what_is_parallel_and_what_is_assumed() -> None:
    fine: list[Row] = [("A", "B", 3.0, None, 1.0), ("B", "C", 5.0, None, 1.0)]
    assert [*link_notes(table_of(fine))] == []
    several = [*fine, ("B", "A", 2.0, None, 1.0), ("C", "D", None, None, 1.0)]
    parallel, assumed = link_notes(table_of(several))
    assert parallel.startswith("links: 1 of 4 rows are parallel to others.")
    assert assumed.startswith("links: 1 of 3 have no latency; 3.5 ms is assumed for each")
    nothing: list[Row] = [("A", "B", None, None, 1.0)]
    assert [*link_notes(table_of(nothing))] == [
        "links: no latency is given, so delays are counted in hops"
    ]
    assert [*link_notes(table_of([]))] == []
