"""Small checked plans with their ways, for tests of systems; made without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from delivery_datasets import planned, world_of, write_world

import fanplan
from fanplan.layers.registry import load_plan
from fanplan.plan.stored import StoredPlan
from fanplan.systems.traffic import Traffic, read_traffic

SPACE: dict[str, Any] = {
    "attributes": {"value": {"min": 0.0, "max": 100.0}},
    "spaces": [[], ["value"]],
}


def design(folder: Path, seed: int = 0, brokers: bool = True) -> tuple[StoredPlan, Path, Traffic]:
    """A design for a drawn world of fourteen subscribers, with the traffic of its publications."""
    world = replace(world_of(seed), brokers=brokers)
    plan, dataset = planned(folder, world, **SPACE)
    stored = load_plan(plan)
    return stored, dataset.path, read_traffic(stored, dataset.path)


def overlay(folder: Path, seed: int = 0) -> tuple[StoredPlan, Path, Traffic]:
    """An overlay alone."""
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world_of(seed), **SPACE))
    plan = fanplan.overlay(dataset).save(folder / "plan")
    stored = load_plan(Path(plan))
    return stored, dataset.path, read_traffic(stored, dataset.path)


def wanted(traffic: Traffic) -> set[tuple[int, str]]:
    """(publication, subscriber) pairs that must arrive."""
    who = traffic.ways.subscribers
    found = np.divmod(traffic.wanted, len(who))
    return {(int(n), who[s]) for n, s in zip(*found, strict=True)}
