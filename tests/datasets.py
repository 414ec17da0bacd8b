"""Tiny datasets and interest problems made from Python lists, for tests without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import settings
from hypothesis import strategies as st
from sealing import seal_dataset

from fanplan.core.arrays import Position
from fanplan.core.tables import arrow_schema
from fanplan.data import tables
from fanplan.data.interest import InterestProblem, load_interest
from fanplan.layers.channels.map import ChannelsSection
from fanplan.layers.channels.methods import METHODS, channels_by_method, find_method
from fanplan.plan.section import PlannedSection
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.plan import save_layers

unhurried = settings(deadline=None)
"""The first call of a kernel compiles it, which takes longer than Hypothesis expects."""

BY_INTEREST = sorted(name for name, method in METHODS.items() if not method.subscriptions)
"""Methods that need no subscriptions, which the problems and datasets made here do not have."""


@dataclass(frozen=True)
class Flow:
    """A flow by the positions of its subscribers; a cell makes it a part of its topic."""

    audience: frozenset[int]
    messages: float = 1.0
    bytes: float = 100.0
    cell: tuple[int, ...] = ()


@dataclass(frozen=True)
class World:
    """Everything a dataset is made from."""

    flows: tuple[Flow, ...]
    subscribers: int
    seconds: float = 2.0
    key: str = "key-1"
    parameters: dict[str, str] = field(default_factory=lambda: {"grid": "atomic"})

    @property
    def audiences(self) -> list[frozenset[int]]:
        """The different audiences in order of first appearance."""
        return list(dict.fromkeys(flow.audience for flow in self.flows if flow.audience))

    @property
    def wanted(self) -> list[Flow]:
        return [flow for flow in self.flows if flow.audience]


def flow_name(number: int, flow: Flow) -> str:
    return f"t{number}" + (f"[{','.join(map(str, flow.cell))}]" if flow.cell else "")


def write_dataset(folder: Path, world: World, parts: int = 2) -> Path:
    """A dataset folder as ``ingest`` leaves it; flows are split over ``parts`` files."""
    numbers = {audience: i for i, audience in enumerate(world.audiences)}
    flows = [
        {
            "flow": flow_name(i, flow),
            "topic": f"t{i}",
            "topic_id": i,
            "cell": list(flow.cell),
            "messages": flow.messages,
            "bytes": flow.bytes,
            "audience_class": numbers.get(flow.audience, -1),
        }
        for i, flow in enumerate(world.flows)
    ]
    classes = [
        {
            "audience_class": number,
            "subscribers": sorted(audience),
            "messages": sum(f.messages for f in world.flows if f.audience == audience),
            "bytes": sum(f.bytes for f in world.flows if f.audience == audience),
            "flows": sum(f.audience == audience for f in world.flows),
        }
        for audience, number in numbers.items()
    ]
    names = [{"subscriber": f"s{i}", "subscriber_id": i} for i in range(world.subscribers)]
    cut = len(flows) // parts
    write_stage(folder / "flows", FLOWS, [flows[:cut], flows[cut:]])
    write_stage(folder / "classes", CLASSES, [classes[::-1]])
    write_stage(folder / "subscribers", SUBSCRIBERS, [names[::-1]])
    write_manifest(folder, world)
    return folder


def write_manifest(folder: Path, world: World) -> None:
    manifest = {
        "key": world.key,
        "seconds": world.seconds,
        "cover": "overlap",
        "grid": "atomic",
        "exact": True,
        "parameters": world.parameters,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    seal_dataset(folder)


def write_stage(folder: Path, schema: pa.Schema, parts: Sequence[list[dict[Any, Any]]]) -> None:
    folder.mkdir(parents=True)
    for number, rows in enumerate(parts):
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    if (folder.parent / "manifest.json").exists():
        seal_dataset(folder.parent)


LATER = ("wanted", "lo", "hi")
"""Columns that the datasets made here do without."""
FLOWS, CLASSES, SUBSCRIBERS = (
    pa.schema([field for field in arrow_schema(table) if field.name not in LATER])
    for table in (tables.FLOWS, tables.CLASSES, tables.SUBSCRIBERS)
)


def make_problem(
    audiences: Sequence[Set[Position]], messages: Sequence[float] | np.ndarray, subscribers: int
) -> InterestProblem:
    """A problem with one row per audience; equal audiences share a class."""
    different = list(dict.fromkeys(map(frozenset, audiences)))
    return InterestProblem(
        indptr=np.cumsum([0, *map(len, audiences)]).astype(np.int64),
        audience=np.array([s for a in audiences for s in sorted(a)], dtype=np.int32),
        messages=np.array(messages, dtype=np.float64),
        bytes=np.array(messages, dtype=np.float64) * 10,
        flows=np.ones(len(audiences), dtype=np.int64),
        classes=np.array([different.index(frozenset(a)) for a in audiences], dtype=np.int32),
        seconds=1.0,
        subscribers=pa.array([f"s{i}" for i in range(subscribers)]),
        source="made",
        rows="flow",
    )


@st.composite
def worlds(draw: st.DrawFn, flows: int = 8, subscribers: int = 6) -> World:
    """Random worlds in which at least one flow is wanted; whole numbers of messages."""
    users = draw(st.integers(1, subscribers))
    audience = st.frozensets(st.integers(0, users - 1), max_size=users)
    amount = st.integers(0, 50).map(float)
    cell = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    flow = st.builds(Flow, audience, amount, amount, cell)
    drawn = draw(st.lists(flow, min_size=1, max_size=flows))
    somebody = st.frozensets(st.integers(0, users - 1), min_size=1)
    wanted = draw(st.builds(Flow, somebody, st.integers(1, 50).map(float), amount, cell))
    return World((*drawn, wanted), users, seconds=draw(st.sampled_from([1.0, 3.0, 0.1])))


def plan_dataset(dataset: Path, method: str, channels: int = 2, seed: int = 0) -> ChannelsSection:
    """The plan of a method, with as many of the channels as there are flows."""
    found = find_method(method)
    problem = load_interest(dataset, found.rows)
    params = found.params(min(channels, problem.flow_count))
    return channels_by_method(problem, found, params, seed)


def save_plan(
    section: PlannedSection, dataset: Path, out: Path, replace: bool = False
) -> StoredPlan:
    """Write a plan of one layer."""
    return save_layers((section,), dataset, out, replace)
