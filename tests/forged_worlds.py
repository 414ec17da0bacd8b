"""A plan of each layer, alone and in a design, for whoever forges all that it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloud_worlds import write_cloud_dataset
from datasets import Flow, World, write_dataset
from delivery_datasets import planned, world_of
from group_datasets import write_cell_dataset, write_group_dataset
from group_worlds import random_world as group_world
from marking_datasets import write_marking_dataset
from marking_worlds import figure_2, tree_table
from mesh_worlds import WANTED, write_mesh_dataset
from overlay_worlds import random_world, write_overlay_dataset
from overlays import routes_of

import fanplan

FLOWS = World(
    (
        Flow(frozenset({0, 1, 2}), 9.0, 90.0),
        Flow(frozenset({1, 2, 3}), 8.0, 80.0),
        Flow(frozenset({4, 5}), 7.0, 70.0),
        Flow(frozenset({0, 1, 4, 5}), 6.0, 60.0),
        Flow(frozenset({2, 3, 4}), 5.0, 50.0),
        Flow(frozenset({3}), 4.0, 40.0),
        Flow(frozenset({0, 5}), 0.5, 5.0),
    ),
    subscribers=6,
)
LINKS = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
SENT = {(0, (3, 5)): 20.0, (0, (3, 4, 5, 6)): 20.0, (0, (6,)): 100.0, (6, (3, 6)): 30.0}

Made = tuple[Path, Path]
"""A plan and its dataset."""


def channels(folder: Path) -> Made:
    dataset = fanplan.Dataset(write_dataset(folder / "dataset", FLOWS))
    limits: dict[str, Any] = {"max_channels_per_subscriber": 4, "max_channel_rate": 20.0}
    named: dict[str, Any] = {"pinned": ("t0",), "off_multicast": ("t6",)}
    made = fanplan.channels(dataset, 3, unicast_limit=0.9, **limits, **named)
    return made.save(folder / "plan"), dataset.path


def single(folder: Path) -> Made:
    """One channel for each flow: the bound is dual or spectral."""
    dataset = fanplan.Dataset(write_dataset(folder / "dataset", FLOWS))
    made = fanplan.channels(dataset, 2, method="lloyd")
    return made.save(folder / "plan"), dataset.path


def overlay(folder: Path) -> Made:
    world = random_world(7, brokers=8, links=True)
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "dataset", world))
    limits: dict[str, Any] = {
        "degree": 4,
        "degrees": {"b1": 3},
        "diameter": 7,
        "within": [("p0", ["b1"], 6)],
    }
    return fanplan.overlay(dataset, **limits).save(folder / "plan"), dataset.path


def trees(folder: Path) -> Made:
    world = random_world(3, brokers=6)
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "dataset", world))
    return fanplan.overlay(dataset, trees=2).save(folder / "plan"), dataset.path


def allocate(folder: Path) -> Made:
    world = random_world(7, brokers=8, capacity=40.0)
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "dataset", world))
    return fanplan.allocate(dataset).save(folder / "plan"), dataset.path


def cut(folder: Path) -> Made:
    """Publishers where most messages are cut, within what brokers can forward too."""
    world = random_world(5, brokers=6, capacity=60.0)
    dataset = fanplan.Dataset(write_overlay_dataset(folder / "dataset", world))
    limits: dict[str, Any] = {"lcf": 0.9, "brokers": 6, "publishers": "cut", "stable": True}
    return fanplan.allocate(dataset, **limits).save(folder / "plan"), dataset.path


def switches(folder: Path) -> Made:
    """Channels within the tables of switches."""
    dataset = write_cloud_dataset(folder / "dataset")
    made = fanplan.channels(dataset, 40, max_switch_entries=6, engine=fanplan.Engine("local[2]"))
    return made.save(folder / "plan"), dataset


def mesh(folder: Path) -> Made:
    dataset = write_mesh_dataset(folder / "dataset", WANTED, "key-1")
    return fanplan.mesh(dataset, degree=2).save(folder / "plan"), dataset.path


def mesh_of_flows(folder: Path) -> Made:
    dataset = write_mesh_dataset(folder / "dataset", WANTED, "key-1")
    return fanplan.mesh(dataset, connect="flows").save(folder / "plan"), dataset.path


def groups(folder: Path) -> Made:
    names = [f"b{i}" for i in range(7)]
    dataset = write_group_dataset(folder / "dataset", names, routes_of(SENT), LINKS)
    made = fanplan.groups(fanplan.Dataset(dataset), "budget:5")
    return made.save(folder / "plan"), dataset


def best(folder: Path) -> Made:
    """Groups above a threshold."""
    names = [f"b{i}" for i in range(7)]
    dataset = write_group_dataset(folder / "dataset", names, routes_of(SENT), LINKS)
    made = fanplan.groups(fanplan.Dataset(dataset), "threshold:20")
    return made.save(folder / "plan"), dataset


def cells(folder: Path) -> Made:
    dataset = write_cell_dataset(folder / "dataset", group_world(4, 3), full=False)
    made = fanplan.groups(fanplan.Dataset(dataset), "top:60%", cells=3, mark="overlap")
    return made.save(folder / "plan"), dataset


def marking(folder: Path) -> Made:
    trees = tree_table(A="AB BC BD")
    dataset = write_marking_dataset(folder / "dataset", figure_2(), trees)
    made = fanplan.mark(fanplan.Dataset(dataset), trees="per-source")
    return made.save(folder / "plan"), dataset


def merged(folder: Path) -> Made:
    covers = [(False, "D", ["C"], 1)]
    dataset = write_marking_dataset(folder / "dataset", figure_2(), covers=covers)
    made = fanplan.mark(fanplan.Dataset(dataset), trees="shared:B", merge=True)
    return made.save(folder / "plan"), dataset


def design(folder: Path) -> Made:
    plan, dataset = planned(folder, world_of(1))
    return plan, dataset.path


def flat(folder: Path) -> Made:
    """A design without brokers."""
    plan, dataset = planned(folder, replace(world_of(2), brokers=False))
    return plan, dataset.path


PLANS: dict[str, Callable[[Path], Made]] = {
    each.__name__: each
    for each in (
        *(channels, single, switches, overlay, trees, allocate, cut, groups, best, cells),
        *(marking, merged, mesh, mesh_of_flows, design, flat),
    )
}


def make_plans(folder: Path) -> dict[str, Made]:
    """All of them, each with its dataset."""
    return {name: make(folder / name) for name, make in PLANS.items()}
