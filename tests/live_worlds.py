"""A small market whose topics have several attributes, patterns and silent topics; drawn."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from fanplan.core.progress import quiet
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.workload.topics import to_regex

VENUES = ("N", "Q", "Z")
TOPICS = {
    "quotes.ibm": ("price", "size", "venue"),
    "quotes.sun": ("price", "size", "venue"),
    "trades.ibm": ("price",),
    "news": (),
}
SILENT = {"quotes.old": ("price", "size", "venue"), "hush": ()}
PATTERNS = ("quotes.*", "quotes.>", "*.ibm", "news", "hush", "trades.ibm", "quotes.sun")
HEAD = """
topic_syntax = "nats"
seconds = 10.0
[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
size = { type = "number", min = -50.0, max = 50.0 }
venue = { type = "category", values = ["N", "Q", "Z"] }
[topics."quotes.*"]
attributes = ["price", "size", "venue"]
[topics."trades.*"]
attributes = ["price"]
[topics.news]
[topics.hush]
"""

Point = dict[str, float | str]


@dataclass(frozen=True)
class Wish:
    """A subscription: a pattern, and closed ranges or a set of values of some attributes."""

    who: str
    pattern: str
    ranges: dict[str, tuple[float, float]]
    venues: tuple[str, ...] = ()

    @property
    def selector(self) -> str:
        parts = [f"{a} BETWEEN {lo} AND {hi}" for a, (lo, hi) in self.ranges.items()]
        if self.venues:
            parts.append(f"venue IN ({', '.join(repr(v) for v in self.venues)})")
        return " AND ".join(parts)

    def wants(self, topic: str, point: Point) -> bool:
        if not re.match(to_regex(self.pattern, "nats"), topic):
            return False
        if not set(self.ranges) <= set(point) or (self.venues and "venue" not in point):
            return False
        inside = (lo <= float(point[name]) <= hi for name, (lo, hi) in self.ranges.items())
        return all(inside) and (not self.venues or point["venue"] in self.venues)


@dataclass(frozen=True)
class Market:
    wishes: list[Wish]
    published: list[tuple[str, str, Point]]
    """Publisher, topic and attributes."""

    def audience(self, topic: str, point: Point) -> frozenset[str]:
        return frozenset(wish.who for wish in self.wishes if wish.wants(topic, point))


def draw_market(
    seed: int, people: int = 12, publications: int = 300, publishers: int = 3
) -> Market:
    draw = Random(seed)
    wishes = [
        draw_wish(draw, f"u{n:02d}") for n in range(people) for _ in range(draw.randint(1, 3))
    ]
    wishes.append(Wish("quiet one", "hush", {}))
    wishes.append(Wish("u00", "quotes.old", {}))
    sent = [(f"p{draw.randrange(publishers)}", *draw_point(draw)) for _ in range(publications)]
    return Market(wishes, sent)


def draw_wish(draw: Random, who: str) -> Wish:
    pattern = draw.choice(PATTERNS)
    if pattern in ("news", "hush"):
        return Wish(who, pattern, {})
    names = ["price"] if "ibm" in pattern else ["price", "size"]
    ranges = {}
    for name in draw.sample(names, draw.randint(1, len(names))):
        low = round(draw.uniform(-50 if name == "size" else 0, 30), 2)
        ranges[name] = (low, round(low + draw.uniform(5, 50), 2))
    quotes = pattern.startswith("quotes")
    venues = tuple(draw.sample(VENUES, draw.randint(0, 2))) if quotes else ()
    return Wish(who, pattern, ranges, venues)


def draw_point(draw: Random, topics: Sequence[str] = tuple(TOPICS)) -> tuple[str, Point]:
    topic = draw.choice(topics)
    values: Point = {
        "price": round(draw.uniform(0, 100), 1),
        "size": round(draw.uniform(-50, 50), 1),
        "venue": draw.choice(VENUES),
    }
    return topic, {name: values[name] for name in (TOPICS | SILENT)[topic]}


def write_market(folder: Path, world: Market, brokers: int = 0) -> Path:
    """A workload folder; with brokers, clients are spread over them."""
    folder.mkdir()
    (folder / "workload.toml").write_text(HEAD)
    people = sorted({wish.who for wish in world.wishes})
    home = {who: f"b{n % brokers}" for n, who in enumerate(people)} if brokers else {}
    at = ["broker"] if brokers else []
    write_rows(
        folder / "subscriptions.csv",
        ["subscriber", "topic", "filter", *at],
        [[w.who, w.pattern, w.selector, *([home[w.who]] if brokers else [])] for w in world.wishes],
    )
    write_rows(
        folder / "publications.csv",
        ["time", "topic", "publisher", "bytes", "price", "size", "venue"],
        [
            [i / 100, topic, who, 8, *(point.get(a, "") for a in ("price", "size", "venue"))]
            for i, (who, topic, point) in enumerate(world.published)
        ],
    )
    adverts = [[f"p{n}", topic, *([f"b{n % brokers}"] if brokers else [])]
               for n in range(len({who for who, *_ in world.published}))
               for topic in ("quotes.*", "quotes.old", "trades.ibm", "news", "hush")]  # fmt: skip
    write_rows(folder / "advertisements.csv", ["publisher", "topic", *at], adverts)
    if brokers:
        write_rows(folder / "brokers.csv", ["broker", "site"],
                   [[f"b{n}", "east" if n % 2 else "west"] for n in range(brokers)])  # fmt: skip
    return folder


def write_rows(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def ingested(
    spark: SparkSession, world: Market, folder: Path, grid: str = "exact", brokers: int = 0
) -> Path:
    """The dataset of a market."""
    folder.mkdir(exist_ok=True)
    workload = write_market(folder / "workload", world, brokers)
    cells = {} if grid in ("exact", "atomic") else {"cells": 3}
    ingest_workload(lambda _: spark, workload, folder / grid, {"grid": grid} | cells, quiet())
    return folder / grid
