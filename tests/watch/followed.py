"""A watch without Spark: what Spark would count and compile is made from Python lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sealing import seal_dataset

from fanplan.core.hashes import sealed
from fanplan.core.tables import arrow_schema
from fanplan.data import tables
from fanplan.data.engine import Engine
from fanplan.data.stream.flows import Lost, together_lost
from fanplan.data.stream.interest import Interest
from fanplan.layers.registry import load_plan
from fanplan.verbs.plan import planner
from fanplan.watching.follow import COUNTS, Following
from fanplan.watching.params import WatchParams
from fanplan.watching.rates import Rates, counted_flows, flows_together, folded, kept_of, no_flows
from fanplan.watching.snapshot import lay_stage, write_snapshot
from fanplan.watching.state import BatchState, State
from fanplan.workload.description import Description

TOPICS = [f"t{i:02d}" for i in range(12)]
Sent = dict[str, int]


def wanted(moved: int = 0) -> dict[str, list[str]]:
    """Two desks of four, each with half of the topics; ``moved`` users have changed desks."""
    found: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for user in range(8):
        first = (user < 4) != (user < moved)
        for topic in TOPICS[:6] if first else TOPICS[6:]:
            found[topic].append(f"u{user}")
    return found


def write_interest(folder: Path, who: dict[str, list[str]]) -> Interest:
    """Plain topics and who wants them, as ingest compiles them."""
    people = sorted({name for names in who.values() for name in names})
    topics = sorted(who)
    rows: dict[Any, list[dict[str, Any]]] = {
        tables.TOPICS: [{"topic": t, "topic_id": i, "space": 0} for i, t in enumerate(topics)],
        tables.SUBSCRIBERS: [
            {"subscriber": name, "subscriber_id": i} for i, name in enumerate(people)
        ],
        tables.REGIONS: [
            {"topic_id": i, "subscription": (people.index(n) << 32) + i, "lo": [], "hi": []}
            | {"subscriber_id": people.index(n)}
            for i, topic in enumerate(topics)
            for n in who[topic]
        ],
    }
    folder.mkdir(parents=True)
    for table, content in rows.items():
        made = pa.Table.from_pylist(content, schema=arrow_schema(table))
        lay_stage(folder / table.name, table, made)
    stages = {table.name: {"key": "", "rows": len(content)} for table, content in rows.items()}
    about = {"key": folder.name, "seconds": 1.0, "cover": "overlap", "grid": "exact"}
    about |= {"exact": True, "dimensions": 0, "stages": stages, "spaces": [[]], "attributes": {}}
    (folder / "manifest.json").write_text(json.dumps(sealed(about)))
    seal_dataset(folder)
    return Interest(folder)


def counted(windows: dict[int, Sent]) -> pa.Table:
    """What Spark counts of a batch."""
    rows = [(w, topic, n) for w, sent in windows.items() for topic, n in sent.items()]
    window, topic, messages = zip(*rows, strict=True) if rows else ((), (), ())
    numbers = [pa.array(each, pa.int64()) for each in (window, messages, messages)]
    return pa.table(
        {
            "window": numbers[0],
            "topic": pa.array(topic, pa.string()),
            "high": pa.array([0] * len(rows), pa.int64()),
            "low": pa.array([0] * len(rows), pa.int64()),
            "messages": numbers[1],
            "bytes": numbers[2],
        }
    )


class Unspark(Following):
    """Reads a batch from `batches` by its number; interest changes with `moves`."""

    batches: Sequence[dict[int, Sent]]
    moves: dict[int, int]

    def begin(self) -> None:
        self.description = Description("desk")
        self.state.folder.mkdir(parents=True, exist_ok=True)
        if not self.state.agree({"plan": "given"}):
            self.first_version()
            none = no_flows(0)
            counts = dict.fromkeys(COUNTS, 0)
            first = BatchState(-1, "0", (), Rates(none), none, planned_interest="0", counts=counts)
            self.state.commit(first, pa.table({}))
            self.state.begin({"plan": "given"})
        self.state.mend_decisions()

    def worked(
        self, before: BatchState, number: int, _files: Sequence[Path], _folder: Path
    ) -> tuple[BatchState, pa.Table]:
        moved = max((m for b, m in self.moves.items() if b <= number), default=0)
        name = str(moved)
        path = self.state.interest(name)
        interest = Interest(path) if path.exists() else write_interest(path, wanted(moved))
        flows = counted_flows([counted(self.batches[number])], 0)
        kept, late, ahead = self.in_time(flows, before)
        counts = {"rows": int(flows.messages.sum()), "late": late, "ahead": ahead}
        counts = {each: before.counts[each] + counts.get(each, 0) for each in COUNTS}
        after = {"number": number, "interest": name, "open": flows_together(before.open, kept)}
        batch = BatchState(**(vars(before) | after | {"counts": counts, "decisions": ()}))
        return self.closed(self.with_watermark(batch), interest), together_lost([])


def first_plan(folder: Path, sent: Sent, channels: int = 2) -> Path:
    """A plan for traffic of this kind and the interest at the start."""
    interest = write_interest(folder / "interest", wanted())
    flows = counted_flows([counted({0: sent})], 0)
    rates = folded(Rates(no_flows(0)), flows, 0, kept_of(5))
    write_snapshot(rates, interest, 10.0, folder / "dataset")
    return planner("channels")(folder / "dataset", channels).save(folder / "plan")


def follower(folder: Path, plan: Path, batches: Any, moves: Any = None, **options: Any) -> Unspark:
    params = WatchParams.given({"window": 10.0, "patience": 2, "half_life": 2.0, **options})
    made = Unspark(load_plan(plan), folder, State(folder / "state"), params, Engine("local[2]"))
    made.batches, made.moves = batches, moves or {}
    return made


def run(made: Unspark) -> Unspark:
    """All batches, as a stream hands them over: those that count come again, too."""
    with made.state.held():
        made.begin()
        for number in range(len(made.batches)):
            made.advance(number, (), Path())
    return made


def even(rate: int = 10) -> Sent:
    return dict.fromkeys(TOPICS, rate)


def skewed(seed: int) -> Sent:
    draw = np.random.default_rng(seed)
    return {topic: int(n) for topic, n in zip(TOPICS, draw.integers(1, 60, 12), strict=True)}


__all__ = ["Lost", "counted", "even", "first_plan", "follower", "run", "skewed", "wanted"]
