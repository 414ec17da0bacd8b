"""Tiny datasets with brokers and clients, with the stages that Spark would make, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from overlays import write_manifest, write_stage


@dataclass(frozen=True)
class OverlayWorld:
    """Brokers, publishers and subscribers; what publishers send to whom; and given links, if any.

    ``sent`` has (publisher, subscribers, messages). ``links`` has (a, b, latency, bandwidth).
    """

    capacity: tuple[float | None, ...]
    publishers: tuple[int, ...]
    """the broker of each"""
    subscribers: tuple[int, ...]
    """the broker of each"""
    sent: tuple[tuple[int, tuple[int, ...], float], ...]
    links: tuple[tuple[int, int, float, float | None], ...] | None = None
    seconds: float = 2.0
    seed: int = 0


def random_world(
    seed: int, brokers: int = 5, clients: int = 12, links: bool = False, capacity: float = 1000.0
) -> OverlayWorld:
    """A world in which somebody wants something."""
    random = np.random.default_rng(seed)
    publishers = tuple(random.integers(0, brokers, max(2, clients // 4)).tolist())
    subscribers = tuple(random.integers(0, brokers, clients).tolist())
    sent = tuple(
        (
            int(random.integers(len(publishers))),
            tuple(np.flatnonzero(random.random(clients) < 0.3).tolist()),
            float(random.integers(1, 9)),
        )
        for _ in range(15)
    )
    ring = [(i, (i + 1) % brokers) for i in range(brokers)] + [(0, 2)]
    given = tuple((a, b, float(random.integers(1, 50)), None) for a, b in ring) if links else None
    return OverlayWorld((capacity,) * brokers, publishers, subscribers, sent, given, seed=seed)


def write_overlay_dataset(folder: Path, world: OverlayWorld) -> Path:
    """A dataset folder as ``ingest`` and the stages on demand leave it."""
    tables = {
        "brokers": {
            "broker": [f"b{i}" for i in range(len(world.capacity))],
            "capacity": pa.array(world.capacity, pa.float64()),
            "cost": pa.array([None] * len(world.capacity), pa.float64()),
            "site": pa.nulls(len(world.capacity), pa.string()),
            "multicast_domain": pa.nulls(len(world.capacity), pa.string()),
        },
        "subscriptions": {
            "subscriber": [f"s{i}" for i in range(len(world.subscribers))],
            "broker": [f"b{i}" for i in world.subscribers],
        },
        "advertisements": {
            "publisher": [f"p{i}" for i in range(len(world.publishers))],
            "broker": [f"b{i}" for i in world.publishers],
        },
        "subscribers": {
            "subscriber": [f"s{i}" for i in range(len(world.subscribers))],
            "subscriber_id": pa.array(range(len(world.subscribers)), pa.int32()),
        },
        **routes(world),
        **similarity(world),
    }
    if world.links is not None:
        a, b, latency, bandwidth = zip(*world.links, strict=True)
        tables["links"] = {
            "a": [f"b{i}" for i in a],
            "b": [f"b{i}" for i in b],
            "latency_ms": pa.array(latency, pa.float64()),
            "bandwidth": pa.array(bandwidth, pa.float64()),
            "cost": pa.array([1.0] * len(a), pa.float64()),
        }
    folder.mkdir(parents=True)
    stages = {name: write_stage(folder, name, columns) for name, columns in tables.items()}
    write_manifest(folder, world.seconds, stages, parameters={"grid": "atomic"})
    return folder


def routes(world: OverlayWorld) -> dict[str, dict[Any, Any]]:
    """The stages of routes: between clients, and the same between brokers."""
    clients: dict[tuple[Any, ...], float] = {}
    brokers: dict[tuple[Any, ...], list[float]] = {}
    for publisher, wanting, messages in world.sent:
        clients[publisher, wanting] = clients.get((publisher, wanting), 0.0) + messages
        homes = tuple(sorted({world.subscribers[s] for s in wanting}))
        total = brokers.setdefault((world.publishers[publisher], homes), [0.0, 0.0])
        total[0] += messages
        total[1] += messages * len(wanting)
    own = {key: (m, m * len(key[1])) for key, m in clients.items()}
    return {"client_routes": route_table(own), "routes": route_table(brokers)}


def route_table(totals: dict[Any, Any]) -> dict[Any, Any]:
    return {
        "source": pa.array([source for source, _ in totals], pa.int32()),
        "destinations": pa.array([list(ends) for _, ends in totals], pa.list_(pa.int32())),
        "messages": [float(messages) for messages, _ in totals.values()],
        "deliveries": [float(deliveries) for _, deliveries in totals.values()],
    }


def similarity(world: OverlayWorld) -> dict[str, dict[Any, Any]]:
    """Random similarity of brokers and clients."""
    random = np.random.default_rng((world.seed, 1))
    brokers, people = len(world.capacity), len(world.subscribers)
    overlap, common = (np.triu(random.random((n, n)), 1) for n in (brokers, people))
    i, j = np.nonzero(~np.eye(brokers, dtype=bool))
    s, t = np.nonzero(~np.eye(people, dtype=bool))
    p, q = np.nonzero(np.ones((len(world.publishers), people)))
    return {
        "similarity": pairs(i, j)
        | {
            "overlap": (overlap + overlap.T)[i, j],
            "cover": random.random(len(i)),
            "interest": random.random(len(i)),
        },
        "client_overlap": pairs(s, t) | {"overlap": (common + common.T)[s, t]},
        "client_interest": pairs(p, q) | {"interest": random.random(len(p))},
    }


def pairs(i: np.ndarray, j: np.ndarray) -> dict[Any, Any]:
    return {"i": pa.array(i, pa.int32()), "j": pa.array(j, pa.int32())}
