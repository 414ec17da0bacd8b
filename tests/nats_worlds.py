"""Small worlds and their plans for trials on NATS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from delivery_datasets import World, planned, write_world

import fanplan
from fanplan.core.progress import quiet
from fanplan.layers.registry import load_plan
from fanplan.systems.nats.servers import find_server
from fanplan.systems.nats.trial import trial
from fanplan.systems.params import TrialParams
from fanplan.systems.trial import Tried

# One attribute, which all topics have.
SPACES: dict[str, Any] = {
    "spaces": [[], ["value"]],
    "attributes": {"value": {"min": 0.0, "max": 100.0}},
}


needs_nats = pytest.mark.skipif(find_server() is None, reason="there is no nats-server here")


def designed(folder: Path, world: World) -> tuple[Path, fanplan.Dataset]:
    return planned(folder, world, **SPACES)


def dataset_of(folder: Path, world: World) -> fanplan.Dataset:
    return fanplan.open_dataset(write_world(folder / "dataset", world, **SPACES))


def tried(plan: Path, dataset: fanplan.Dataset, **params: Any) -> Tried:
    return trial(load_plan(plan), dataset.path, TrialParams(**params), quiet())


def total(result: Tried, of: str) -> int:
    """What was measured of rows of one kind, all of which agree."""
    assert not result.differences, result.differences[:9]
    return sum(row["measured"] for row in result.totals() if row["of"] == of)
