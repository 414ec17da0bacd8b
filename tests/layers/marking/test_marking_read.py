"""The tree that marks of a stored plan hang on."""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter

import pyarrow as pa
import pytest

from fanplan.layers.marking.read import stored_tree


class Stored:
    """As much of a plan's folder as the tree needs."""

    def __init__(self, links: list[tuple[str, str]]) -> None:
        a, b = zip(*links, strict=True)
        self.tables = {
            "links": pa.table({"a": a, "b": b}),
            "brokers": pa.table({"broker": sorted({*a, *b})}),
        }

    def read(self, table: str, columns: tuple[str, ...]) -> pa.Table:
        return self.tables[table].select(columns)


def hung(links: list[tuple[str, str]]) -> set[tuple[str, str, str]]:
    table = stored_tree(Stored(links))  # type: ignore[arg-type]
    return {(row["root"], row["parent"], row["child"]) for row in table.to_pylist()}


def test_the_overlay_hangs_at_its_first_broker() -> None:
    links = [("c", "b"), ("b", "a"), ("b", "d")]
    assert hung(links) == {("a", "a", "b"), ("a", "b", "c"), ("a", "b", "d")}


def test_links_that_the_first_broker_does_not_reach_are_left_out() -> None:
    assert hung([("a", "b"), ("c", "d")]) == {("a", "a", "b")}


@pytest.mark.parametrize("brokers", [20_000])
def test_a_large_overlay_is_read_in_time_about_linear_in_its_links(brokers: int) -> None:
    names = [f"b{i:05}" for i in range(brokers)]
    links = list(pairwise(names))
    hung(links[:100])  # The kernel is compiled.
    start = perf_counter()
    assert len(hung(links)) == brokers - 1
    assert perf_counter() - start < 5.0
