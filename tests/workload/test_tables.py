"""The record types, and the page of the documentation that is made from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from meanings import as_markdown

from fanplan.core.tables import Table
from fanplan.workload.tables import BROKERS, INPUT_TABLES, SUBSCRIPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "workload.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def test_the_page_says_what_the_tables_say() -> None:
    committed = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert committed == "\n".join(as_markdown(table) for table in INPUT_TABLES)


def test_a_row_of_the_page() -> None:
    page = as_markdown(BROKERS)
    assert "| **broker** | string |  | its name |" in page
    assert "| capacity | number, above 0, at most 1e+15 |  | load it can bear" in page
    assert "| cost | number, at least 0, at most 1e+15 | 1 | price of running it |" in page


@pytest.mark.parametrize("table", INPUT_TABLES, ids=lambda table: table.name)
def test_a_table_is_consistent(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert set(table.key) <= set(names)
    assert set(table.required) <= set(names)


def test_columns_by_name() -> None:
    assert SUBSCRIPTIONS.required == ("subscriber", "topic")
    assert SUBSCRIPTIONS.column("filter").default == "everything"
