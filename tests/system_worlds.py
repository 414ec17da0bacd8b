"""Small checked plans with their ways, for tests of systems; made without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from delivery_datasets import World, planned, world_of, write_world

import fanplan
from fanplan.layers.registry import load_plan
from fanplan.plan.stored import StoredPlan
from fanplan.systems.traffic import Traffic, read_traffic

SPACE: dict[str, Any] = {
    "attributes": {"value": {"min": 0.0, "max": 100.0}},
    "spaces": [[], ["value"]],
}


def design(
    folder: Path, seed: int = 0, brokers: bool = True, sent: int = 300
) -> tuple[StoredPlan, Path, Traffic]:
    """A design for a drawn world of fourteen subscribers, with the traffic of its publications."""
    world = replace(world_of(seed, sent=sent), brokers=brokers)
    plan, dataset = planned(folder, world, **SPACE)
    stored = load_plan(plan)
    return stored, dataset.path, read_traffic(stored, dataset.path)


def overlay(folder: Path, seed: int = 0) -> tuple[StoredPlan, Path, Traffic]:
    """An overlay alone."""
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world_of(seed), **SPACE))
    plan = fanplan.overlay(dataset).save(folder / "plan")
    stored = load_plan(Path(plan))
    return stored, dataset.path, read_traffic(stored, dataset.path)


def crowd(folder: Path, people: int = 40) -> tuple[StoredPlan, Path, Traffic]:
    """Channels that many join: a few topics that nearly everybody wants."""
    homes = {f"s{i:02d}": "b0" for i in range(people)}
    wants = [
        (who, f"t{t}", 0.0, 100.0) for i, who in enumerate(homes) for t in range(4) if i % 7 != t
    ]
    sent = [(float(i), "p0", f"t{i % 4}", 8, 10.0) for i in range(80)]
    world = World(homes, tuple(wants), tuple(sent), brokers=False)
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world, **SPACE))
    stored = load_plan(fanplan.channels(dataset, channels=4).save(folder / "plan"))
    return stored, dataset.path, read_traffic(stored, dataset.path)


def wanted(traffic: Traffic) -> set[tuple[int, str]]:
    """(publication, subscriber) pairs that must arrive."""
    who = traffic.ways.subscribers
    found = np.divmod(traffic.wanted, len(who))
    return {(int(n), who[s]) for n, s in zip(*found, strict=True)}
