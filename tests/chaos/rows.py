"""Fuzzed rows through whole ingests, in each format; plain Python reads the kept ones again."""

from __future__ import annotations

import csv
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import fanplan
from chaos.count import Part

COLUMNS = ("time", "publisher", "topic", "bytes", "price", "note")
TOML = """
[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
[topics.quotes]
attributes = ["price"]
[topics.alerts]
[topics."größe"]
"""
TOPICS = ("quotes", "alerts", "größe")
ODD = (
    *("", " ", "-1", "0", "-0.0", "1e400", "nan", "inf", "-inf", "1e-320", "9223372036854775807"),
    *("9223372036854775808", "1e12", "1000000000001", "0x10", "1_000", "1,5", "١٢", "12.0", "1d"),
    *("2024-02-30", "2024-05-01T12:00:00Z", "9999-12-31T23:59:60Z", "noon", "1e11", "-1e308"),
    *(
        "quotes ",
        "Quotes",
        "alerts",
        "=1+1",
        "[/b]",
        "\x1b[31m",
        "\u202etxet",
        "\ufeff",
        "a\u0000b",
    ),
    *("null", "true", "{}", "[]", "x" * 70_000, "'", "`", "\\", "\\N", "NULL", "é" * 30, "𝒑"),
)
RAW = (
    b"\xff",
    b"\xc3",
    b"\x00",
    b'"',
    b",",
    b"{",
    b"}",
    b"\\",
    b"\xef\xbb\xbf",
    b"\t",
    b"\xed\xa0\x80",
)

AROUND = "".join(map(chr, range(33)))
"""What may stand around a number: spaces and control characters."""

Row = dict[str, Any]
Place = tuple[str, int]
"""A file in the workload and a line."""
Written = tuple[dict[Place, Row], set[Place]]
"""Rows as plain Python reads them, and which of them are sound."""


def attack_rows(folder: Path, count: int, seed: int, engine: fanplan.Engine) -> list[Part]:
    """Ingest publications with odd values and broken bytes, as CSV, JSON lines and Parquet."""
    return [
        attack_format(folder / kind, kind, count // 3 + 1, seed + number, engine)
        for number, kind in enumerate(WRITERS)
    ]


def attack_format(folder: Path, kind: str, count: int, seed: int, engine: fanplan.Engine) -> Part:
    """None lost, none that was left alone set apart, and the kept ones mean what they say."""
    part, draw = Part(f"rows, {kind}"), random.Random(seed)
    (folder / "workload").mkdir(parents=True)
    (folder / "workload" / "workload.toml").write_text(TOML)
    wanted = "subscriber,topic,filter\n" + "".join(f"s{i},{t},\n" for i, t in enumerate(TOPICS))
    (folder / "workload" / "subscriptions.csv").write_text(wanted)
    lines, whole = WRITERS[kind](folder / "workload", count, draw)
    dataset = fanplan.ingest(folder / "workload", folder / "dataset", lost_limit=1, engine=engine)
    table = dataset.table("quarantine").filter(pc.field("table") == "publications")
    places = zip(table["source"].to_pylist(), table["line"].to_pylist(), strict=True)
    apart = dict(zip(places, table["reason"].to_pylist(), strict=True))
    kept = [place for place in lines if place not in apart]
    flows = dataset.table("flows")
    messages = int(sum(flows["messages"].to_pylist()))
    part.notes.update(kept=messages, quarantined=len(apart))
    part.hold(
        messages + len(apart) == len(lines) and table.num_rows == len(apart),
        f"{len(lines)} rows, {messages} kept and {table.num_rows} quarantined",
        len(lines),
    )
    for place in sorted(whole & apart.keys()):
        part.failures.append(f"{place} is sound but quarantined: {apart[place]}")
    if not all(apart.values()):
        part.failures.append("a row is quarantined without a reason")
    compare(part, flows, [lines[place] for place in kept])
    return part


def compare(part: Part, flows: pa.Table, kept: list[Row]) -> None:
    """Messages and bytes of each topic are those that the kept rows say."""
    said: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for row in kept:
        said[row["topic"]] += 1
        size[row["topic"]] += whole_number(row.get("bytes"))
    got, got_size = Counter[str](), Counter[str]()
    for flow in flows.to_pylist():
        got[flow["topic"]] += int(flow["messages"])
        got_size[flow["topic"]] += int(flow["bytes"])
    if +said != +got:
        part.failures.append(f"kept rows say {dict(said)} messages, the dataset {dict(got)}")
    if +size != +got_size:
        part.failures.append(f"kept rows say {dict(size)} bytes, the dataset {dict(got_size)}")


def whole_number(value: Any) -> int:
    """A number of bytes as a row has it: text, a number, or none."""
    text = "" if value is None else str(value).strip(AROUND)
    if not text:
        return 0
    return int(text) if text.lstrip("+-").isdigit() else int(float(text))


# ---- rows, and files of them


def sound(draw: random.Random, number: int) -> Row:
    topic = draw.choice(TOPICS)
    price = round(draw.uniform(0, 100), 3) if topic == "quotes" else None
    return {
        "time": number / 10,
        "publisher": f"p{draw.randrange(9)}",
        "topic": topic,
        "bytes": draw.randrange(1, 2000),
        "price": price,
        "note": draw.choice(("", "ok", "größer, als")),
    }


def fuzzed(draw: random.Random, row: Row) -> Row:
    """A row with an odd value in one or two places, or without one."""
    changed = dict(row)
    for _ in range(draw.choice((1, 1, 2))):
        changed[draw.choice(COLUMNS[:-1])] = draw.choice(ODD)
    return changed


def drawn(draw: random.Random, number: int) -> tuple[Row, str]:
    """A row and what was done to it: sound, odd values, or broken bytes when it is written."""
    row, lot = sound(draw, number), draw.random()
    return (
        (row, "sound")
        if lot < 0.4
        else (fuzzed(draw, row), "odd")
        if lot < 0.8
        else (row, "broken")
    )


def broken(draw: random.Random, line: bytes) -> bytes:
    """A line with some bytes put in, left out or changed; it stays one line."""
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(line) + 1)
        cut = at + draw.choice((0, 0, 1, 3))
        line = line[:at] + draw.choice((*RAW, b"", bytes([draw.randrange(256)]))) + line[cut:]
    return line.replace(b"\n", b"?").replace(b"\r", b"?")


def write_csv(folder: Path, count: int, draw: random.Random) -> Written:
    def text(row: Row) -> str:
        return ",".join(quoted(row[name]) for name in COLUMNS)

    return write_lines(folder / "publications.csv", count, draw, text, read_csv, ",".join(COLUMNS))


def write_jsonl(folder: Path, count: int, draw: random.Random) -> Written:
    def text(row: Row) -> str:
        return json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False)

    return write_lines(folder / "publications.jsonl", count, draw, text, read_json)


def write_lines(
    path: Path,
    count: int,
    draw: random.Random,
    text: Callable[[Row], str],
    read: Callable[[str], Row],
    head: str | None = None,
) -> Written:
    rows, whole = dict[Place, Row](), set[Place]()
    lines = [] if head is None else [head.encode()]
    for number in range(count):
        row, done = drawn(draw, number)
        line = text(row).replace("\n", " ").replace("\r", " ").encode()
        if done == "broken":
            line = broken(draw, line)
        lines.append(line)
        if line.strip(b" \t\x0b\x0c"):
            place = (path.name, len(lines))
            rows[place] = read(line.decode("utf-8", "replace"))
            whole |= {place} if done == "sound" else set()
    path.write_bytes(b"\n".join(lines) + b"\n")
    return rows, whole


def quoted(value: Any) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text


def read_csv(line: str) -> Row:
    fields = next(csv.reader([line.lstrip("\ufeff")]), [])
    return dict(zip(COLUMNS, fields, strict=False))


def read_json(line: str) -> Row:
    try:
        found = json.loads(line.lstrip("\ufeff"))
    except ValueError:
        return {}
    return {k.lower(): v for k, v in found.items()} if isinstance(found, dict) else {}


def write_parquet(folder: Path, count: int, draw: random.Random) -> Written:
    """A file in which all are texts, and one of numbers with the oddest that their types have."""
    (folder / "publications").mkdir()
    rows, whole = dict[Place, Row](), set[Place]()
    for name, types, change in (
        ("texts", dict.fromkeys(COLUMNS, pa.string()), fuzzed),
        ("typed", TYPES, odd_numbers),
    ):
        table = []
        for number in range(count // 2 + 1):
            row, done = sound(draw, number), draw.random() < 0.5
            row = row if done else change(draw, row)
            place = (f"publications/{name}.parquet", number + 1)
            rows[place] = row
            whole |= {place} if done else set()
            table.append({k: v if name == "typed" or v is None else str(v) for k, v in row.items()})
        schema = pa.schema(list(types.items()))
        pq.write_table(pa.Table.from_pylist(table, schema), folder / place[0])
    return rows, whole


TYPES = {
    "time": pa.float64(),
    "publisher": pa.string(),
    "topic": pa.string(),
    "bytes": pa.int64(),
    "price": pa.float64(),
    "note": pa.string(),
}
FLOATS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 1e11, 99.999, None)
LONGS = (-1, 0, 10**12, 10**12 + 1, 2**63 - 1, -(2**63), None)


def odd_numbers(draw: random.Random, row: Row) -> Row:
    place = draw.choice(("time", "bytes", "price"))
    return row | {place: draw.choice(LONGS if place == "bytes" else FLOATS)}


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
