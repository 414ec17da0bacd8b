"""Datasets of a small world with brokers on sites, as ingest leaves them, and designs for them.

Topics have one attribute from 0 to 100 and two cells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from overlays import write_manifest, write_stage

import fanplan

EDGES = [0.0, 50.0, 100.0]
SITES = {"b0": "east", "b1": "east", "b2": "west", "b3": "west", "b4": None, "b5": "west"}
PUBLISHERS = {"p0": "b0", "p1": "b3", "p2": "b4"}
Box = tuple[str, str, float, float]
Publication = tuple[float, str, str, int, float]


@dataclass(frozen=True)
class World:
    """Who is where, who wants what (subscriber, topic, from, to), and what was sent.

    A publication has time, publisher, topic, bytes and value, a link two brokers and a latency.
    """

    homes: dict[str, str]
    wants: tuple[Box, ...]
    sent: tuple[Publication, ...]
    brokers: bool = True
    links: tuple[tuple[str, str, float | None], ...] = ()

    def audience(self, topic: str, low: float, high: float) -> set[str]:
        return {who for who, t, lo, hi in self.wants if t == topic and lo < high and low < hi}

    def wanting(self, topic: str, value: float) -> set[str]:
        return {who for who, t, lo, hi in self.wants if t == topic and lo <= value < hi}


def world_of(seed: int, ends: tuple[float, ...] = (0.0, 50.0, 100.0), sent: int = 300) -> World:
    """Fourteen subscribers, ten topics; filters are from one of ``ends`` to another."""
    draw = np.random.default_rng(seed)
    homes = {f"s{i:02d}": f"b{draw.integers(0, 6)}" for i in range(14)}
    wants = []
    for who in homes:
        for topic in draw.choice(10, draw.integers(2, 6), replace=False):
            low, high = sorted(draw.choice(ends, 2, replace=False).tolist())
            wants.append((who, f"t{topic}", low, high))
    names = [*PUBLISHERS]
    messages = [
        (float(i), names[draw.integers(0, 3)], f"t{int(9.99 * draw.random() ** 2)}",
         int(draw.integers(1, 9)), float(draw.uniform(0, 100)))
        for i in range(sent)
    ]  # fmt: skip
    return World(homes, tuple(wants), tuple(messages))


def cell_of(value: float) -> int:
    return int(np.searchsorted(EDGES, value, side="right")) - 1


def flow_of(topic: str, value: float) -> str:
    return f"{topic}[{cell_of(value)}]"


# ---- the dataset


def write_world(folder: Path, world: World, **manifest: Any) -> Path:
    """All stages of a dataset that planning, replay and simulation of a design read."""
    folder.mkdir(parents=True)
    topics = sorted({w[1] for w in world.wants} | {p[2] for p in world.sent})
    number = {topic: i for i, topic in enumerate(topics)}
    people = {who: i for i, who in enumerate(sorted(world.homes))}
    traffic: Counter[tuple[str, int]] = Counter((p[2], cell_of(p[4])) for p in world.sent)
    audience = {
        (topic, cell): frozenset(world.audience(topic, EDGES[cell], EDGES[cell + 1]))
        for topic, cell in sorted(traffic)
    }
    groups = [a for a in dict.fromkeys(audience.values()) if a]
    row = {a: i for i, a in enumerate(groups)}
    tables = interest_stages(world, topics, number, people)
    tables |= flow_stages(world, traffic, audience, row, number, people)
    if world.brokers:
        tables |= broker_stages(world)
    rows = {name: write_stage(folder, name, columns) for name, columns in tables.items()}
    told = {"dimensions": 1, "grid": "uniform", "exact": True, "rates": "measured"} | manifest
    write_manifest(folder, 10.0, rows, **told)
    return folder


def interest_stages(
    world: World, topics: list[str], number: dict[str, int], people: dict[str, int]
) -> dict[str, dict[str, Any]]:
    boxes = [([lo], [hi]) for _, _, lo, hi in world.wants]
    cells = [([float(cell_of(lo))], [float(np.searchsorted(EDGES, hi))]) for (lo,), (hi,) in boxes]
    who = [w[0] for w in world.wants]
    own = {
        "topic_id": pa.array([number[w[1]] for w in world.wants], pa.int32()),
        "subscription": pa.array(range(len(who)), pa.int64()),
        "subscriber_id": pa.array([people[w] for w in who], pa.int32()),
    }
    times, senders, sent, sizes, values = (list(column) for column in zip(*world.sent, strict=True))
    return {
        "publications": {
            "time": times,
            "publisher": senders,
            "topic": sent,
            "bytes": pa.array(sizes, pa.int64()),
            "x0": values,
        },
        "topics": {
            "topic": topics,
            "topic_id": pa.array(range(len(topics)), pa.int32()),
            "space": pa.array([1] * len(topics), pa.int32()),
        },
        "subscribers": {
            "subscriber": [*people],
            "subscriber_id": pa.array(people.values(), pa.int32()),
        },
        "subscriptions": {
            "subscription": own["subscription"],
            "subscriber": who,
            "subscriber_id": own["subscriber_id"],
            "topic": [w[1] for w in world.wants],
            "filter": [""] * len(who),
            "broker": pa.array([world.homes[w] if world.brokers else None for w in who]),
        },
        "grid": {
            "topic_id": pa.array(range(len(topics)), pa.int32()),
            "axis": pa.array([0] * len(topics), pa.int32()),
            "edges": pa.array([EDGES] * len(topics)),
        },
        "regions": own | ends_of(boxes),
        "cover": own | ends_of(cells),
    }


def ends_of(boxes: list[tuple[list[float], list[float]]]) -> dict[str, Any]:
    return {"lo": pa.array([b[0] for b in boxes]), "hi": pa.array([b[1] for b in boxes])}


def flow_stages(
    world: World,
    traffic: Counter[tuple[str, int]],
    audience: dict[tuple[str, int], frozenset[str]],
    row: dict[frozenset[str], int],
    number: dict[str, int],
    people: dict[str, int],
) -> dict[str, dict[str, Any]]:
    sizes: Counter[tuple[str, int]] = Counter()
    asked: Counter[tuple[str, int]] = Counter()
    times, names = defaultdict(list), sorted({*PUBLISHERS, *(p[1] for p in world.sent)})
    for time, publisher, topic, size, value in world.sent:
        sizes[topic, cell_of(value)] += size
        asked[topic, cell_of(value)] += len(world.wanting(topic, value))
        of = row.get(audience[topic, cell_of(value)])
        if of is not None:
            times[names.index(publisher), of].append(time)
    flows = [*audience]
    inside = {a: [f for f in flows if audience[f] == a] for a in row}
    ends = sorted(times)
    who = {
        "publisher": pa.array([end[0] for end in ends], pa.int32()),
        "audience_class": pa.array([end[1] for end in ends], pa.int32()),
    }
    return {
        "flows": {
            "flow": [f"{topic}[{cell}]" for topic, cell in flows],
            "topic": [topic for topic, _ in flows],
            "topic_id": pa.array([number[topic] for topic, _ in flows], pa.int32()),
            "cell": pa.array([[cell] for _, cell in flows], pa.list_(pa.int32())),
            "messages": [float(traffic[f]) for f in flows],
            "bytes": [float(sizes[f]) for f in flows],
            "audience_class": pa.array([row.get(audience[f], -1) for f in flows], pa.int32()),
            "wanted": [float(asked[f]) for f in flows],
            **ends_of([([EDGES[cell]], [EDGES[cell + 1]]) for _, cell in flows]),
        },
        "classes": {
            "audience_class": pa.array(row.values(), pa.int32()),
            "subscribers": pa.array(
                [sorted(people[s] for s in a) for a in row], pa.list_(pa.int32())
            ),
            "messages": [float(sum(traffic[f] for f in inside[a])) for a in row],
            "bytes": [float(sum(sizes[f] for f in inside[a])) for a in row],
            "flows": pa.array([len(inside[a]) for a in row], pa.int64()),
            "wanted": [float(sum(asked[f] for f in inside[a])) for a in row],
        },
        "senders": who | {"messages": [float(len(times[end])) for end in ends]},
        "sender_times": who | {"times": pa.array([times[end] for end in ends])},
    }


def broker_stages(world: World) -> dict[str, dict[str, Any]]:
    """Brokers, who advertises where, and the routes that an overlay is planned from."""
    names = sorted(SITES)
    routes: Counter[tuple[int, tuple[int, ...]]] = Counter()
    reached: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for _, publisher, topic, _, value in world.sent:
        if publisher not in PUBLISHERS:
            continue
        people = world.wanting(topic, value)
        ends = tuple(sorted({names.index(world.homes[who]) for who in people}))
        routes[names.index(PUBLISHERS[publisher]), ends] += 1
        reached[names.index(PUBLISHERS[publisher]), ends] += len(people)
    keys = sorted(routes)
    nothing = pa.nulls(len(names), pa.float64())
    topics = ["t0"] * len(PUBLISHERS)
    return {
        "brokers": {"broker": names, "capacity": nothing, "cost": nothing,
                    "site": pa.array([SITES[name] for name in names]),
                    "multicast_domain": pa.nulls(len(names), pa.string())},
        "advertisements": {"publisher": [*PUBLISHERS], "topic": topics,
                           "broker": [*PUBLISHERS.values()]},
        "routes": {
            "source": pa.array([source for source, _ in keys], pa.int32()),
            "destinations": pa.array([list(ends) for _, ends in keys], pa.list_(pa.int32())),
            "messages": [float(routes[key]) for key in keys],
            "deliveries": [float(reached[key]) for key in keys],
        },
        "descriptors": {
            "broker": names,
            "published": pa.array([[*PUBLISHERS.values()].count(b) for b in names], pa.int64()),
            "subscribed": pa.array(
                [sum(world.homes[w[0]] == b for w in world.wants) for b in names], pa.int64()
            ),
        },
        **({"links": link_columns(world)} if world.links else {}),
        "similarity": {
            "i": pa.array([], pa.int32()), "j": pa.array([], pa.int32()),
            **dict.fromkeys(("overlap", "cover", "interest"), pa.array([], pa.float64())),
        },
    }  # fmt: skip


def link_columns(world: World) -> dict[str, Any]:
    a, b, latency = (list(column) for column in zip(*world.links, strict=True))
    wide, free = pa.nulls(len(a), pa.float64()), [1.0] * len(a)
    return {"a": a, "b": b, "latency_ms": pa.array(latency, pa.float64()), "bandwidth": wide,
            "cost": free}  # fmt: skip


def later(world: World, seed: int) -> World:
    """Other publications, also by a stranger and of a new topic; one wants more, and one is new."""
    draw = np.random.default_rng(seed)
    first = next(iter(world.homes))
    wants = (*world.wants, (first, "t3", 0.0, 100.0), (first, "new", 0.0, 50.0))
    wants = (*wants, ("s99", "new", 0.0, 100.0), ("s99", "t0", 0.0, 100.0))
    sent = list(world_of(seed, sent=120).sent)
    sent += [(200.0 + i, "p1", "new", 5, float(draw.uniform(0, 100))) for i in range(9)]
    sent += [(300.0, "p9", "t0", 4, 10.0), (301.0, "p9", "new", 4, 10.0)]
    return replace(world, homes=world.homes | {"s99": "b1"}, wants=wants, sent=tuple(sent))


# ---- plans


def planned(folder: Path, world: World, **manifest: Any) -> tuple[Path, fanplan.Dataset]:
    """A design for a world, and its dataset."""
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world, **manifest))
    return fanplan.design(dataset, channels=2).save(folder / "plan"), dataset
