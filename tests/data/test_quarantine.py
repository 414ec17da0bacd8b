"""Quarantine: rows counted and shown without Spark, and tables that lose too much of themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import answer, run
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import fanplan
from fanplan.core.errors import InputError
from fanplan.core.tables import arrow_schema
from fanplan.data.quarantine import LossRule
from fanplan.data.reader import TableCount
from fanplan.data.tables import QUARANTINE

ROBIN = ("--method", "round-robin")
LOCAL = ("--master", "local[2]")


def entry(table: str, line: int, kind: str, value: str) -> dict[str, Any]:
    return {
        "table": table,
        "source": f"{table}.csv",
        "line": line,
        "raw": f"{value},x",
        "reason": f"{kind}: {value}" if value else kind,
        "kind": kind,
    }


Entry = st.builds(
    entry,
    st.sampled_from(["links", "brokers"]),
    st.integers(2, 10**6),
    st.sampled_from(["a: no value", "A: not in brokers", "duplicate"]),
    st.sampled_from(["", "x", "No Value", "ü"]),
)


@given(
    parts=st.lists(st.lists(Entry, max_size=8), min_size=1, max_size=3),
    table=st.sampled_from([None, "links", "trees"]),
    reason=st.sampled_from([None, "no value", "A: ", "nothing like it"]),
    rows=st.integers(0, 5),
)
def test_rows_are_counted_by_kind_and_shown_by_place(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[dict[str, Any]]],
    table: str | None,
    reason: str | None,
    rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("dataset")
    (folder / "quarantine").mkdir()
    for i, part in enumerate(parts):
        content = pa.Table.from_pylist(part, arrow_schema(QUARANTINE))
        pq.write_table(content, folder / "quarantine" / f"{i}.parquet", row_group_size=3)
    asked = [
        row
        for part in parts
        for row in part
        if table in (None, row["table"]) and (reason or "").lower() in row["reason"].lower()
    ]
    found = fanplan.quarantine(folder, table=table, reason=reason, rows=rows)
    counted = {(r.table, r.reason): r.rows for r in found.reasons}
    assert counted == Counter((row["table"], row["kind"]) for row in asked)
    assert [r.rows for r in found.reasons] == sorted(counted.values(), reverse=True)
    assert found.quarantined == found.summary()["quarantined"] == len(asked)
    places = sorted((row["table"], row["line"]) for row in asked)
    assert [(row["table"], row["line"]) for row in found.json()["rows"]] == places[:rows]
    assert all(any(shown.items() <= row.items() for row in asked) for shown in found.rows)


def test_what_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.partial" / "quarantine").mkdir(parents=True)
    for folder, what in (("d", "Look at .*d.partial"), ("e", "e: is not a dataset")):
        with pytest.raises(InputError, match=what):
            fanplan.quarantine(tmp_path / folder)
    with pytest.raises(InputError, match="'link' is not a table of a workload"):
        fanplan.quarantine(tmp_path / "d.partial", table="link")
    with pytest.raises(InputError, match="rows: -1 is out of range"):
        fanplan.quarantine(tmp_path / "d.partial", rows=-1)


@given(kept=st.integers(0, 20), lost=st.integers(0, 20), limit=st.floats(0, 1))
def test_a_table_may_lose_its_limit_but_no_more(kept: int, lost: int, limit: float) -> None:
    tables = [TableCount(name, kept + lost, kept, lost) for name in ("links", "subscriptions")]
    names = [table.name for table in LossRule(limit, "").lost(tables)]
    too_many = lost > limit * (kept + lost)
    assert ("links" in names) == too_many
    assert ("subscriptions" in names) == (too_many or kept == 0)


SUBSCRIPTIONS = "subscriber,topic\nann,a\nbob,b\n"
PUBLICATIONS = """time,topic,bytes
2024-05-01T12:00:00+09:00,a,7
noon,a,1
1,a,"1,5"
2,b,"2,5"
,,
"""


def test_a_table_that_is_lost_stops_every_command(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w").mkdir()
    Path("w/subscriptions.csv").write_text(SUBSCRIPTIONS)
    Path("w/publications.csv").write_text(PUBLICATIONS)
    commas = "bytes: not a whole number from 0 (write 1234.5: a point for decimals and no other"

    assert run("ingest", "w", "--out", "d", *LOCAL) == 2
    told = capsys.readouterr().err.splitlines()
    assert f"publications: 4 of 5 rows cannot be used: {commas} separator) (2); " in told[0]
    assert "(`fanplan quarantine d.partial` lists them), or go on" in told[0]
    assert [line.split(":")[1] for line in told[1:]] == [
        f" publications.csv, line {line}" for line in (4, 3, 6)
    ]
    assert f"'1,a,\"1,5\"': {commas} separator): 1,5" in told[1]
    assert not Path("d").exists()

    code, found = answer(capsys, "quarantine", "d.partial", "--reason", "POINT", "--rows", 1)
    assert code == 0
    assert (found["quarantined"], found["tables"]) == (2, {"publications": 2})
    assert [row["raw"] for row in found["rows"]] == ['1,a,"1,5"']
    assert run("quarantine", "d.partial", "--table", "publications") == 0
    assert "publications.csv, line 6: topic: no value\n  ,,\n" in capsys.readouterr().out

    assert run("channels", "w", "--channels", 1, "--out", "p", *LOCAL) == 2
    assert "`fanplan ingest w --out DATASET` keeps them to look at" in capsys.readouterr().err
    assert run("channels", "w", "--channels", 1, "--out", "p", "--lost-limit", 2, *LOCAL) == 2
    assert "--lost-limit: 2.0 is out of range" in capsys.readouterr().err

    code, made = answer(capsys, "ingest", "w", "--out", "d", "--lost-limit", 1, *LOCAL)
    assert code == 0
    reasons = made["tables"]["publications"]["reasons"]
    assert [reason["rows"] for reason in reasons] == [2, 1, 1]
    assert made["first_publication"] == made["last_publication"] == "2024-05-01T12:00:00+09:00"
    assert not Path("d.partial").exists()
    assert fanplan.quarantine(fanplan.open_dataset("d")).quarantined == 4
    assert run("ingest", "w", "--out", "d", *LOCAL) == 2
    assert "`fanplan quarantine d` lists them" in capsys.readouterr().err
    assert run("channels", "d", "--channels", 1, "--out", "p", "--lost-limit", 0.7, *LOCAL) == 2
    assert run("channels", "d", "--channels", 1, "--out", "p", *ROBIN, *LOCAL) == 0
    # A plan records how its workload was read, so that it is read alike again.
    parameters = json.loads(Path("p/plan.json").read_text())["input"]["parameters"]
    assert parameters == {"lost_limit": 1.0}
    assert run("check", "p", "w", "--lost-limit", 0.5, *LOCAL) == 2


def test_without_any_subscription_nothing_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subscriptions.csv").write_text("subscriber,topic\n,a\n")
    with pytest.raises(InputError, match="1 of 1 rows cannot be used") as caught:
        fanplan.ingest(tmp_path, tmp_path / "d", lost_limit=1.0, engine=fanplan.Engine("local[2]"))
    assert "lost-limit" not in str(caught.value)


def test_who_subscribes_to_what_is_no_pattern_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """It would be kept as a pattern that waits for a topic, and nothing would ever match it."""
    (tmp_path / "workload.toml").write_text('topic_syntax = "mqtt"\n[topics."home/#"]\n')
    (tmp_path / "subscriptions.csv").write_text("subscriber,topic\nann,home/#/temperature\n")
    with pytest.raises(InputError, match="topic: has # before the end") as caught:
        fanplan.ingest(tmp_path, tmp_path / "d", engine=fanplan.Engine("local[2]"))
    assert "home/#/temperature" in str(caught.value)
