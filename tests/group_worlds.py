"""Small worlds for groups: brokers with boxes in a plane, points that fall into them, random trees.

All is done with sets and loops here, so that nothing of what is tested is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.layers.groups.problem.build import MarkedCells
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.network.brokers import Routes

EDGES = np.array([0.0, 2.0, 4.0, 6.0])
"""Both axes; boxes end at multiples of a half."""

STEP = 0.5
CELLS = [(i, j) for i in range(3) for j in range(3)]

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class World:
    """Brokers on one tree, boxes of each, and publications (source, x, y)."""

    links: np.ndarray
    boxes: list[list[Box]]
    sent: list[tuple[int, float, float]]

    @property
    def brokers(self) -> int:
        return len(self.boxes)

    @property
    def names(self) -> pa.Array:
        return pa.array([f"b{i}" for i in range(self.brokers)])

    @property
    def trees(self) -> BrokerTrees:
        roots = np.unique([source for source, _, _ in self.sent])
        return hung_at(self.links, roots, self.brokers)

    def wants(self, broker: int, x: float, y: float) -> bool:
        return any(a <= x < b and c <= y < d for a, b, c, d in self.boxes[broker])

    def reached(self, x: float, y: float) -> tuple[int, ...]:
        return tuple(b for b in range(self.brokers) if self.wants(b, x, y))

    def marked(self, cell: int) -> tuple[tuple[int, ...], bool]:
        """Brokers that want a part of a cell, and whether all of them want all of it."""
        i, j = CELLS[cell]
        steps = np.arange(0.0, 2.0, STEP)
        parts = [(EDGES[i] + x, EDGES[j] + y) for x in steps for y in steps]
        shares = [sum(self.wants(b, *part) for part in parts) for b in range(self.brokers)]
        marks = tuple(b for b in range(self.brokers) if shares[b])
        return marks, all(shares[b] == len(parts) for b in marks)


def random_world(seed: int, roots: int) -> World:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    order = rng.permutation(size)
    links = [(order[i], order[rng.integers(i)]) for i in range(1, size)]
    boxes = [[random_box(rng) for _ in range(rng.integers(3))] for _ in range(size)]
    sources = rng.choice(size, min(size, roots), replace=False)
    sent = [
        (int(rng.choice(sources)), *(rng.integers(24, size=2) / 4).tolist())
        for _ in range(rng.integers(1, 30))
    ]
    return World(np.array(links, np.int32).reshape(-1, 2), boxes, sent)


def random_box(rng: np.random.Generator) -> Box:
    (a, b), (c, d) = (np.sort(rng.choice(13, 2, replace=False)) * STEP for _ in range(2))
    return a, b, c, d


def cell_of(x: float, y: float) -> int:
    return CELLS.index((int(x // 2), int(y // 2)))


def routes_of(world: World) -> tuple[Routes, np.ndarray]:
    """Routes with one cell each, and that cell."""
    keys = [(source, cell_of(x, y), world.reached(x, y)) for source, x, y in world.sent]
    found = sorted(set(keys))
    sizes = [len(reached) for _, _, reached in found]
    messages = np.array([keys.count(key) for key in found], float)
    routes = Routes(
        np.array([source for source, _, _ in found], np.int32),
        np.cumsum([0, *sizes]),
        np.array([b for _, _, reached in found for b in reached], np.int32),
        messages,
        messages * sizes,
    )
    return routes, np.array([cell for _, cell, _ in found], np.int32)


def cells_of_world(world: World, cell: np.ndarray, full: bool) -> MarkedCells:
    marks = [world.marked(c) for c in range(len(CELLS))]
    return MarkedCells(
        cell,
        np.cumsum([0, *(len(who) for who, _ in marks)]),
        np.array([b for who, _ in marks for b in who], np.int32),
        np.array([whole for _, whole in marks]) if full else None,
    )


def members_of(problem: GroupsProblem, group: int) -> tuple[int, ...]:
    return tuple(problem.members[problem.starts[group] : problem.starts[group + 1]].tolist())


def way(problem: GroupsProblem, tree: int, broker: int) -> list[int]:
    """From a broker up to the root, both included."""
    up = [broker]
    while up[-1] != problem.trees.root[tree]:
        up.append(int(problem.trees.parent[tree, up[-1]]))
    return up
