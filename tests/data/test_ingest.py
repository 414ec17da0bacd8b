"""Ingest against DuckDB, which evaluates the selectors' own text, for every grid and cover."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import meanings
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from meanings import pattern_matches
from pyspark.sql import SparkSession

from fanplan.api import Dataset
from fanplan.core.progress import quiet
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.workload.description import load_description
from fanplan.workload.selector import compile_selector
from fanplan.workload.space import Space

TOML = """
topic_syntax = "nats"
seconds = 10.0
cells = 5

[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
size = { type = "number", min = -5.0, max = 5.0 }
venue = { type = "category", values = ["N", "Q", "Z"] }

[topics."q.*"]
attributes = ["venue", "price"]

[topics."r.x"]
attributes = ["price", "size"]
grid = { size = 3 }

[topics.alerts]
"""
TOPICS = {
    "q.a": ("venue", "price"),
    "q.b": ("venue", "price"),
    "r.x": ("price", "size"),
    "alerts": (),
}
PATTERNS = ("q.a", "q.b", "q.*", "r.x", "alerts", ">", "*.a", "r.>")


def some_filter(draw: Random) -> str:
    """A random selector that DuckDB reads the same way."""
    price, other = sorted(draw.choices([n / 2 for n in range(201)], k=2))
    size = draw.choice([n / 2 for n in range(-10, 11)])
    venues = ", ".join(f"'{v}'" for v in draw.sample("NQZ", draw.randint(1, 2)))
    predicates = [
        f"price {draw.choice(['<', '<=', '>', '>=', '=', '<>'])} {price}",
        f"price BETWEEN {price} AND {other}",
        f"size {draw.choice(['<', '>='])} {size}",
        f"venue IN ({venues})",
    ]
    a, b = draw.sample(predicates, 2)
    return draw.choice(["", a, f"{a} AND {b}", f"{a} OR {b}", f"NOT ({a} OR {b})"])


def some_publication(draw: Random) -> tuple[str, float, float, str]:
    """A point that often lies on an end point of some filter."""
    price, size = draw.randint(0, 200) / 2, draw.randint(-10, 10) / 2
    return draw.choice(sorted(TOPICS)), price, size, draw.choice("NQZ")


@dataclass(frozen=True)
class Case:
    """One random workload on disk, and its subscriptions that can be understood."""

    folder: Path
    subscriptions: list[tuple[str, str, str]]
    publications: list[tuple[str, float, float, str]]


def write_case(folder: Path, subs: list[Any], pubs: list[Any]) -> Case:
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML)
    who, topic, filter_ = zip(*subs, strict=True)
    table = pa.table({"subscriber": who, "topic": topic, "filter": filter_})
    pa.csv.write_csv(table, folder / "subscriptions.csv")
    names, price, size, venue = zip(*pubs, strict=True)
    own = [TOPICS[name] for name in names]
    rows = {
        "topic": names,
        "price": [p if "price" in a else None for p, a in zip(price, own, strict=True)],
        "size": [s if "size" in a else None for s, a in zip(size, own, strict=True)],
        "venue": [v if "venue" in a else None for v, a in zip(venue, own, strict=True)],
        "bytes": [10 + i % 7 for i in range(len(names))],
    }
    pq.write_table(pa.table(rows), folder / "publications.parquet")
    return Case(folder, subs, pubs)


def usable(case: Case) -> list[tuple[str, str, str]]:
    """Subscriptions that mean something: a topic they reach has all attributes of the filter."""
    return [sub for sub in case.subscriptions if applies(case, sub)]


def applies(case: Case, sub: tuple[str, str, str]) -> bool:
    reached = [topic for topic in TOPICS if pattern_matches(sub[1], topic, "nats")]
    fits = [topic for topic in reached if not missing(sub[2], topic)]
    try:
        for topic in fits:
            compile_selector(sub[2], space_of(case, topic), 1000)
    except ValueError:
        return False
    return bool(fits)


def missing(filter_: str, topic: str) -> frozenset[str]:
    used = {name for name in ("price", "size", "venue") if name in filter_}
    return frozenset(used - set(TOPICS[topic]))


def space_of(case: Case, topic: str) -> Space:
    description = load_description(case.folder)
    space = meanings.space_of(description, topic)
    assert space is not None
    return description.spaces[space]


def boxes_of(case: Case, sub: tuple[str, str, str]) -> dict[str, tuple[Any, ...]]:
    """Boxes by topic; attributes that a topic lacks are neither true nor false."""
    found = {}
    for topic in TOPICS:
        if pattern_matches(sub[1], topic, "nats"):
            with suppress(ValueError):
                lacking = missing(sub[2], topic)
                found[topic] = compile_selector(sub[2], space_of(case, topic), 1000, lacking)
    return found


def brute_hits(case: Case) -> dict[tuple[str, str, str], int]:
    """Publications that each subscription asks for, counted by DuckDB from the selector's text."""
    db = duckdb.connect()
    db.register("p", pq.read_table(case.folder / "publications.parquet"))
    hits = {}
    for sub in usable(case):
        topics = [t for t in TOPICS if pattern_matches(sub[1], t, "nats")]
        inside = ", ".join(f"'{t}'" for t in topics)
        where = f"topic IN ({inside}) AND ({sub[2] or 'TRUE'})"
        hits[sub] = db.execute(f"SELECT count(*) FROM p WHERE {where}").fetchall()[0][0]
    return hits


def stored_hits(dataset: Path) -> dict[tuple[str, str, str], int]:
    db = duckdb.connect()
    rows = db.execute(
        f"SELECT s.subscriber, s.topic, s.filter, coalesce(h.hits, 0) FROM "
        f"'{dataset}/subscriptions/*.parquet' s LEFT JOIN '{dataset}/hits/*.parquet' h "
        "USING (subscription)"
    ).fetchall()
    return {(who, topic, filter_): hits for who, topic, filter_, hits in rows}


def brute_flows(
    case: Case, dataset: Path, cover: str
) -> dict[str, tuple[float, float, frozenset[Any]]]:
    """Messages, bytes and audience of every cell with traffic, by nested loops in DuckDB."""
    db = duckdb.connect()
    topics = {row["topic"]: row["topic_id"] for row in Dataset(dataset).table("topics").to_pylist()}
    edges = {
        (row["topic_id"], row["axis"]): np.array(row["edges"])
        for row in Dataset(dataset).table("grid").to_pylist()
    }
    cells: dict[str, list[float]] = {name: [0, 0] for name, own in TOPICS.items() if not own}
    bounds: dict[str, tuple[str, list[Any], list[Any]]] = {name: (name, [], []) for name in cells}
    for i, (topic, price, size, venue) in enumerate(case.publications):
        values = {"price": price, "size": size, "venue": float("NQZ".index(venue))}
        numbers, lo, hi = [], [], []
        for axis, name in enumerate(TOPICS[topic]):
            own = edges[topics[topic], axis]
            number = int((own <= values[name]).sum()) - 1
            numbers.append(number)
            lo.append(own[number])
            hi.append(own[number + 1])
        flow = topic + (f"[{','.join(map(str, numbers))}]" if numbers else "")
        cells.setdefault(flow, [0, 0])
        bounds[flow] = (topic, lo, hi)
        cells[flow][0] += 1
        cells[flow][1] += 10 + i % 7
    wanted = overlapping(db, case, bounds, cover)
    return {
        flow: (messages, sizes, wanted.get(flow, frozenset()))
        for flow, (messages, sizes) in cells.items()
    }


def brute_exact(case: Case) -> Counter[tuple[str, frozenset[str], int, int]]:
    """How often each audience is seen on each topic, with its bytes: selectors' own text decides.

    All topics are sent on.
    """
    db = duckdb.connect()
    table = pq.read_table(case.folder / "publications.parquet")
    db.register("p", table.append_column("i", pa.array(range(table.num_rows))))
    heard: dict[int, set[str]] = {i: set() for i in range(table.num_rows)}
    for sub in usable(case):
        topics = [t for t in TOPICS if pattern_matches(sub[1], t, "nats")]
        inside = ", ".join(f"'{t}'" for t in topics)
        where = f"topic IN ({inside}) AND ({sub[2] or 'TRUE'})"
        for (i,) in db.execute(f"SELECT i FROM p WHERE {where}").fetchall():
            heard[i].add(sub[0])
    seen: Counter[tuple[str, frozenset[str]]] = Counter()
    sizes: Counter[tuple[str, frozenset[str]]] = Counter()
    for i, (topic, *_) in enumerate(case.publications):
        seen[topic, frozenset(heard[i])] += 1
        sizes[topic, frozenset(heard[i])] += 10 + i % 7
    return Counter((*flow, count, sizes[flow]) for flow, count in seen.items())


def stored_exact(dataset: Path) -> Counter[tuple[str, frozenset[str], int, int]]:
    flows = stored_flows(dataset)
    topics = Dataset(dataset).table("flows").select(["flow", "topic"]).to_pylist()
    named = {row["flow"]: row["topic"] for row in topics}
    assert len(named) == len(topics)
    return Counter((named[f], who, int(m), int(b)) for f, (m, b, who) in flows.items())


def overlapping(
    db: Any, case: Case, bounds: dict[Any, Any], cover: str
) -> dict[str, frozenset[Any]]:
    """Cells and boxes joined on every pair of axes: the nested loop that Fanplan avoids."""
    boxes = [
        (sub[0], topic, list(box.lo), list(box.hi))
        for sub in usable(case)
        for topic, found in boxes_of(case, sub).items()
        for box in found
    ]
    schema = pa.schema(
        [("subscriber", pa.string()), ("topic", pa.string())]
        + [(name, pa.list_(pa.float64())) for name in ("blo", "bhi")]
    )
    db.register("boxes", pa.table(list(map(list, zip(*boxes, strict=True))), schema=schema))
    rows = [[flow, *bound] for flow, bound in bounds.items()]
    names = ["flow", "topic", "clo", "chi"]
    types = [pa.string(), pa.string(), pa.list_(pa.float64()), pa.list_(pa.float64())]
    columns = list(map(list, zip(*rows, strict=True)))
    db.register("cells", pa.table(columns, schema=pa.schema(list(zip(names, types, strict=True)))))
    test = {
        "overlap": "blo[i] < chi[i] AND bhi[i] > clo[i]",
        "full": "blo[i] <= clo[i] AND bhi[i] >= chi[i]",
    }[cover]
    found = db.execute(
        "SELECT flow, list(DISTINCT subscriber) FROM cells JOIN boxes USING (topic) WHERE "
        f"len(list_filter(range(1, len(clo) + 1), lambda i: NOT ({test}))) = 0 GROUP BY flow"
    ).fetchall()
    return {flow: frozenset(who) for flow, who in found}


def stored_flows(dataset: Path) -> dict[str, tuple[float, float, frozenset[Any]]]:
    names = Dataset(dataset).table("subscribers").sort_by("subscriber_id")["subscriber"].to_pylist()
    classes = Dataset(dataset).table("classes").to_pylist()
    who = {c["audience_class"]: frozenset(names[s] for s in c["subscribers"]) for c in classes}
    return {
        row["flow"]: (row["messages"], row["bytes"], who.get(row["audience_class"], frozenset()))
        for row in Dataset(dataset).table("flows").to_pylist()
    }


@pytest.mark.parametrize("cover", ["overlap", "full"])
def test_audiences_rates_and_hits_equal_brute_force(
    spark: SparkSession, tmp_path: Path, cover: str
) -> None:
    draw = Random(cover)
    subs = sorted(
        {(draw.choice("abcdef"), draw.choice(PATTERNS), some_filter(draw)) for _ in range(40)}
    )
    case = write_case(tmp_path / "workload", subs, [some_publication(draw) for _ in range(120)])
    dataset = tmp_path / "dataset"
    for grid in ("uniform", "atomic", "quantile"):
        params = {"grid": grid, "cover": cover, "lost_limit": 1.0}
        ingest_workload(lambda _: spark, case.folder, dataset, params, quiet())
        assert stored_flows(dataset) == brute_flows(case, dataset, cover), grid
        assert stored_hits(dataset) == brute_hits(case), grid
        counts = json.loads((dataset / "manifest.json").read_text())["tables"]["subscriptions"]
        assert counts["kept"] == len(usable(case))
        assert counts["kept"] + counts["quarantined"] == counts["rows"] == len(subs)


def test_exact_flows_equal_brute_force(spark: SparkSession, tmp_path: Path) -> None:
    draw = Random("exact")
    subs = sorted(
        {(draw.choice("abcdef"), draw.choice(PATTERNS), some_filter(draw)) for _ in range(30)}
    )
    published = [some_publication(draw) for _ in range(120)]
    case = write_case(tmp_path / "workload", subs, published)
    dataset = tmp_path / "dataset"
    ingest_workload(lambda _: spark, case.folder, dataset, {"grid": "exact"}, quiet())
    assert stored_exact(dataset) == brute_exact(case)
    assert stored_hits(dataset) == brute_hits(case)
    # An extent is the smallest box of what was published, so it holds nothing that was not.
    rows = Dataset(dataset).table("flows").to_pylist()
    prices = [p for topic, p, _, _ in published if topic == "r.x"]
    own = [row for row in rows if row["topic"] == "r.x"]
    assert min(row["lo"][0] for row in own) == min(prices)
    assert max(row["hi"][0] for row in own) == max(prices)


def test_silent_topics_and_patterns_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    """What was not sent on in the window has a place all the same: rate 0, for all who asked."""
    folder, dataset = tmp_path / "workload", tmp_path / "dataset"
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML.replace("cells = 5", "").replace("grid = {", "# {"))
    (folder / "subscriptions.csv").write_text(
        "subscriber,topic,filter\na,q.a,price < 10\nb,q.z,venue = 'N'\nc,q.z,\nd,r.>,\n"
        "e,alerts,\nf,nowhere,\n"
    )
    (folder / "publications.csv").write_text("topic,price,venue\nq.a,5,N\nq.a,50,N\n")
    ingest_workload(lambda _: spark, folder, dataset, {}, quiet())
    flows = stored_flows(dataset)
    quiet_ones = {flow: who for flow, (messages, _, who) in flows.items() if not messages}
    assert quiet_ones == {"q.z": {"b", "c"}, "r.x": {"d"}, "alerts": {"e"}}
    counts = json.loads((dataset / "manifest.json").read_text())["tables"]["subscriptions"]
    assert (counts["kept"], counts["quarantined"]) == (5, 1)


def test_advertised_rates_are_shared_by_volume_over_the_boxes_of_a_filter(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "workload"
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML)
    (folder / "subscriptions.csv").write_text(
        "subscriber,topic,filter\na,q.a,venue = 'N'\nb,alerts,\n"
    )
    (folder / "advertisements.csv").write_text(
        "publisher,topic,filter,rate\n"
        "p,q.a,(venue = 'N' AND price < 20) OR (venue = 'Q' AND price >= 40),8\n"
        "q,alerts,,3\nr,alerts,,-1\n"
    )
    dataset = tmp_path / "dataset"
    ingest_workload(lambda _: spark, folder, dataset, {}, quiet())
    flows = stored_flows(dataset)
    # Boxes of 20 and 60 of the price: 2 and 6 of the 8 messages; cells are 20 wide.
    wanted = {flow: messages for flow, (messages, _, who) in flows.items() if "a" in who}
    assert wanted == {"q.a[0,0]": 2.0}
    total = sum(messages for flow, (messages, _, _) in flows.items() if flow.startswith("q.a"))
    assert total == pytest.approx(8.0)
    assert flows["alerts"][0] == 3.0
    counts = json.loads((dataset / "manifest.json").read_text())["tables"]["advertisements"]
    assert (counts["kept"], counts["quarantined"]) == (2, 1)
