"""Mutated selectors through whole ingests; SQLite says what those that were kept must match."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import fanplan
from chaos.count import Part

VENUES = ("N", "Q", "Z", "o'neill", "%", "naïve")
TOML = f"""
[attributes]
price = {{ type = "number", min = 0.0, max = 100.0 }}
size = {{ type = "number", min = -1000000.0, max = 1000000.0 }}
"bid size" = {{ type = "number", min = 0.0, max = 1.0 }}
venue = {{ type = "category", values = {list(VENUES)} }}
[topics.quotes]
attributes = ["price", "size", "bid size", "venue"]
"""
SEEDS = (
    "price > 10 AND venue = 'N'",
    "price BETWEEN 10 AND 20 OR size < -5",
    "NOT (venue IN ('N', 'Q')) AND \"bid size\" >= .5",
    "venue LIKE 'o%' OR venue = 'o''neill'",
    "venue NOT LIKE '\\%' ESCAPE '\\' AND price <> 50",
    "size NOT BETWEEN -1e3 AND 1e3",
    "10 < price AND price <= 90.5 AND (size = 0 OR TRUE)",
    "price NOT IN (1, 2, 3) AND venue != 'Z'",
    "",
)
WORDS = (
    *"()'\"<>=,.;%_-+*/\\",
    *("<=", ">=", "<>", "!=", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "ESCAPE", "TRUE"),
    *("FALSE", "NULL", "IS", "price", "size", '"bid size"', "venue", "'N'", "'Q'", "10", "-1e309"),
    *("1e-320", "0x10", "٣", "--", "/*", "1" * 400, "\u0000", "\u202e", "𝒑", " ", "\t", "(" * 60),
)
PUBLICATIONS = 80


def attack_selectors(folder: Path, count: int, seed: int, engine: fanplan.Engine) -> Part:
    """Ingest subscriptions with mutated filters: none lost, each kept one as SQLite reads it."""
    part, draw = Part("selectors"), random.Random(seed)
    filters = [mutated(draw) for _ in range(count)]
    sent = [publication(draw) for _ in range(PUBLICATIONS)]
    write(folder / "workload", filters, sent)
    dataset = fanplan.ingest(folder / "workload", folder / "dataset", lost_limit=1, engine=engine)
    kept = {row["subscriber"]: row for row in dataset.table("subscriptions").to_pylist()}
    hits = {row["subscription"]: row["hits"] for row in dataset.table("hits").to_pylist()}
    apart = dataset.table("quarantine").filter(pc.field("table") == "subscriptions")
    part.notes.update(kept=len(kept) - 1, quarantined=apart.num_rows)
    lost = count + 1 - len(kept) - apart.num_rows
    part.hold(lost == 0, f"{lost} selectors are neither kept nor quarantined", count)
    for reason in pc.unique(apart["reason"]).to_pylist():
        if not reason:
            part.failures.append("a selector is quarantined without a reason")
    judge = sqlite(sent)
    for number, text in enumerate(filters):
        row = kept.get(f"s{number}")
        if row is None:
            continue
        wanted = matches(judge, text)
        got = hits.get(row["subscription"], 0)
        if wanted is not None and wanted != got:
            part.failures.append(f"{text!r} matched {got} publications, by SQLite {wanted}")
        part.notes["compared with SQLite"] += wanted is not None
    return part


def mutated(draw: random.Random) -> str:
    """A selector after a few edits by characters and words, or two of them joined."""
    text = draw.choice(SEEDS)
    if draw.random() < 0.3:
        joint = draw.choice((" AND ", " OR ", " and not "))
        text = joint.join(f"({part or 'TRUE'})" for part in (text, draw.choice(SEEDS)))
    for _ in range(draw.choice((0, 0, 1, 1, 1, 2, 3, 8))):
        at, end = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        end = min(end, at + 4)
        match draw.randrange(5):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + draw.choice(WORDS) + text[at:]
            case 2:
                text = text[:at] + draw.choice(WORDS) + text[end:]
            case 3:
                text = text[:at] + text[at:end] * 2 + text[end:]
            case _:
                text = text.replace(draw.choice(("10", "5", "N", "1")), str(draw.randint(-9, 99)))
    return text


def publication(draw: random.Random) -> tuple[float, float, float, str]:
    size = float(draw.choice((0, -5, -1000, 1000, 10, draw.randint(-9999, 9999))))
    price = float(draw.choice((0, 1, 2, 3, 10, 20, 50, 90.5, 100, draw.uniform(0, 100))))
    return price, size, draw.choice((0.0, 0.5, 1.0)), draw.choice(VENUES)


def write(folder: Path, filters: list[str], sent: list[tuple[float, float, float, str]]) -> None:
    """The workload; somebody wants everything, so that it can be planned in any case."""
    folder.mkdir(parents=True)
    (folder / "workload.toml").write_text(TOML)
    names = [f"s{i}" for i in range(len(filters))]
    rows = {"subscriber": [*names, "all"], "topic": ["quotes"] * (len(names) + 1)}
    pq.write_table(pa.table(rows | {"filter": [*filters, ""]}), folder / "subscriptions.parquet")
    price, size, bid, venue = zip(*sent, strict=True)
    told = {"topic": ["quotes"] * len(sent), "time": [float(i) for i in range(len(sent))]}
    told |= {"price": price, "size": size, "bid size": bid, "venue": venue}
    pq.write_table(pa.table(told), folder / "publications.parquet")


def sqlite(sent: list[tuple[float, float, float, str]]) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:")
    base.execute("PRAGMA case_sensitive_like = ON")
    base.execute('CREATE TABLE sent (price REAL, size REAL, "bid size" REAL, venue TEXT)')
    base.executemany("INSERT INTO sent VALUES (?, ?, ?, ?)", sent)
    return base


def matches(base: sqlite3.Connection, text: str) -> int | None:
    """How many publications a selector matches by SQLite; None if it is not SQLite's language."""
    try:
        (count,) = base.execute(
            f"SELECT count(*) FROM sent WHERE ({text.strip() or 'TRUE'})"
        ).fetchone()
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    return int(count)
