"""A small workload with everything a report can show, and plans of all layers, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import CLASSES, FLOWS
from datasets import write_stage as write_parts
from overlay_worlds import random_world, write_overlay_dataset
from overlays import write_stage
from ready import stages_are_there
from sealing import seal_dataset

import fanplan

HOSTILE = "<script>alert('a')</script>\"&"
"""A name that must come through as it is, and do nothing."""

BROKERS = 7

SPOTS = {
    "lat": [51.5, 48.9, 40.7, 41.9, 52.5, None, 34.1],
    "lon": [-0.1, 2.4, -74.0, -87.6, 13.4, None, -118.2],
}
"""Where brokers are that have sites; one is nowhere."""


@dataclass(frozen=True)
class ReportWorld:
    """A dataset and the plans made for it, a layer each."""

    dataset: Path
    plans: tuple[Path, ...]


def write_report_world(folder: Path) -> ReportWorld:
    """Four plans for one dataset; names of topics and of the workload are hostile."""
    dataset = write_report_dataset(folder / "dataset")
    with stages_are_there():
        opened = fanplan.open_dataset(dataset)
        made = (
            fanplan.channels(opened, 4, seed=1),
            fanplan.overlay(opened, seed=1),
            fanplan.groups(opened, "top:80%", trees="per-publisher"),
            fanplan.mark(opened, "per-source"),
        )
        names = ("channels.plan", "overlay.plan", "groups.plan", "marking.plan")
        saved = (plan.save(folder / name) for plan, name in zip(made, names, strict=True))
        return ReportWorld(dataset, tuple(saved))


def write_design(dataset: Path, folder: Path, **wishes: Any) -> Path:
    """A plan of all layers, with channels on two sites; one broker is on none."""
    with stages_are_there():
        return fanplan.design(fanplan.open_dataset(dataset), **wishes).save(folder)


def write_report_dataset(folder: Path, sites: Sequence[str | None] | None = None) -> Path:
    """The dataset of all plans; with sites also of plans of all layers."""
    world = random_world(3, brokers=BROKERS, clients=24, links=True)
    write_overlay_dataset(folder, world)
    random = np.random.default_rng(5)
    flows = 16 if sites else 40
    messages = write_interest(folder, random, flows, subscribers=len(world.subscribers))
    write_senders(folder, random, messages, len(world.publishers))
    if sites:
        path = folder / "brokers" / "part.parquet"
        brokers = pq.read_table(path).drop_columns("site")
        brokers = brokers.append_column("site", pa.array(sites, pa.string()))
        for name, values in SPOTS.items():
            brokers = brokers.append_column(name, pa.array(values, pa.float64()))
        pq.write_table(brokers, path)
    counts = {f"{raw}{name}": random.integers(1, 9, BROKERS) for raw in ("", "raw_")
              for name in ("published", "subscribed")}  # fmt: skip
    write_stage(folder, "descriptors", {"broker": [f"b{i}" for i in range(BROKERS)]} | counts)
    write_stage(folder, "quarantine", quarantine())
    path = folder / "manifest.json"
    table = {"rows": 27, "kept": 24, "quarantined": 3, "notes": ["a note"], "key": "k"}
    told = {"name": HOSTILE, "tables": {"subscriptions": table}}
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    return seal_dataset(folder)


def write_senders(
    folder: Path, random: np.random.Generator, messages: list[float], publishers: int
) -> None:
    """Every audience class is sent by two of the publishers, or twice by one."""
    rows = [(int(random.integers(publishers)), c, m / 2) for c, m in enumerate(messages * 2)]
    publisher, row, half = zip(*rows, strict=True)
    columns = {
        "publisher": pa.array(publisher, pa.int32()),
        "audience_class": pa.array([c % len(messages) for c in row], pa.int32()),
        "messages": pa.array(half, pa.float64()),
    }
    write_stage(folder, "senders", columns)


def write_interest(
    folder: Path, random: np.random.Generator, flows: int, subscribers: int
) -> list[float]:
    """Flows and audience classes, each flow with an audience of its own; messages of classes."""
    wanted = random.random((flows, subscribers)) < random.random((flows, 1)) * 0.6
    wanted[:, 0] |= ~wanted.any(axis=1)
    messages = random.integers(1, 50, flows).astype(float)
    different = list(dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in wanted))
    of = [different.index(tuple(np.flatnonzero(row).tolist())) for row in wanted]
    rows = [
        {"flow": f"{HOSTILE}{i}", "topic": f"{HOSTILE}{i}", "topic_id": i, "cell": [],
         "messages": messages[i], "bytes": messages[i] * 10, "audience_class": of[i]}
        for i in range(flows)
    ]  # fmt: skip
    classes = [
        {"audience_class": c, "subscribers": list(audience),
         "messages": sum(messages[i] for i in range(flows) if of[i] == c),
         "bytes": sum(messages[i] * 10 for i in range(flows) if of[i] == c),
         "flows": of.count(c)}
        for c, audience in enumerate(different)
    ]  # fmt: skip
    write_parts(folder / "flows", FLOWS, [rows])
    write_parts(folder / "classes", CLASSES, [classes])
    return [row["messages"] for row in classes]


def quarantine() -> dict[Any, Any]:
    return {
        "table": ["subscriptions"] * 3,
        "source": ["a.csv", "a.csv", HOSTILE],
        "line": pa.array([4, 9, None], pa.int64()),
        "raw": ["x", "y", None],
        "reason": ["no topic: x", "no topic: y", HOSTILE],
        "kind": ["no topic", "no topic", HOSTILE],
    }


class Elements(HTMLParser):
    """The elements of a page and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for name, v in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)
