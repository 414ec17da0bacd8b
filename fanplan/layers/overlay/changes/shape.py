"""An overlay by names: brokers, the links of trees, which tree takes what, where clients are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.changes import Row
from fanplan.plan.stored import StoredPlan

Link = tuple[str, str]
Client = tuple[str, str]
"""name, role"""


@dataclass
class Shape:
    """What stands. ``of`` has the tree that messages take by where they enter."""

    brokers: set[str]
    trees: dict[int, set[Link]]
    of: dict[str, int]
    clients: dict[Client, set[str]]

    def copy(self) -> Shape:
        trees = {number: set(tree) for number, tree in self.trees.items()}
        clients = {client: set(homes) for client, homes in self.clients.items()}
        return Shape(set(self.brokers), trees, dict(self.of), clients)

    def links(self) -> Counter[Link]:
        """In how many trees each link is."""
        return Counter(link for tree in self.trees.values() for link in tree)

    def apply(self, row: Row) -> None:
        """Carry out one change."""
        action = row["action"]
        ends: Any = row.get("from_broker"), row.get("to_broker")
        if action in ("start", "stop"):
            (self.brokers.add if action == "start" else self.brokers.discard)(row["broker"])
            self.of.pop(row["broker"], None)
        elif action == "source":
            self.of[row["broker"]] = row["tree"]
            self.trees.setdefault(row["tree"], set())  # the tree of a lone broker has no link
        elif action == "link":
            self.trees.setdefault(row["tree"], set()).add(ends)
        elif action == "unlink":
            self.trees[row["tree"]].discard(ends)
        else:
            homes = self.clients.setdefault((row["client"], row["role"]), set())
            homes.discard(ends[0])
            homes.update(end for end in ends[1:] if end is not None)

    def used(self) -> list[int]:
        """Trees that something takes; the only one, if there are no several."""
        return sorted({self.of.get(broker, min(self.trees)) for broker in self.brokers})

    def same(self, other: Shape) -> bool:
        """Whether the same stands; empty trees and clients without a broker do not count."""

        def told(shape: Shape) -> tuple[object, ...]:
            trees = {number: tree for number, tree in shape.trees.items() if tree}
            clients = {client: homes for client, homes in shape.clients.items() if homes}
            of = {broker: shape.of.get(broker, 0) for broker in shape.brokers}
            return shape.brokers, trees, of, clients

        return told(self) == told(other)


def shape_of(plan: StoredPlan) -> Shape:
    """The overlay of a stored plan."""
    brokers = plan.read("brokers", ("broker",))["broker"].to_pylist()
    trees: dict[int, set[Link]] = {
        number: set() for number in range(plan.section(OverlayRecord).trees)
    }
    of = dict.fromkeys(brokers, 0)
    if plan.section(OverlayRecord).trees > 1:
        for row in plan.read("tree_links", ("tree", "a", "b")).to_pylist():
            trees[row["tree"]].add(in_order(row["a"], row["b"]))
        for row in plan.read("tree_sources", ("broker", "tree")).to_pylist():
            of[row["broker"]] = row["tree"]
    else:
        rows = plan.read("links", ("a", "b")).to_pylist()
        trees[0] = {in_order(row["a"], row["b"]) for row in rows}
    clients: dict[Client, set[str]] = {}
    for row in plan.read("clients", ("client", "role", "broker")).to_pylist():
        clients.setdefault((row["client"], row["role"]), set()).add(row["broker"])
    return Shape(set(brokers), trees, of, clients)


def in_order(a: str, b: str) -> Link:
    return (a, b) if a < b else (b, a)


def matched_trees(old: Shape, new: Shape) -> dict[int, int]:
    """The number under which each tree of the new plan runs: that of the one most like it."""
    common = np.array(
        [[len(tree & other) for other in new.trees.values()] for tree in old.trees.values()], float
    )
    # Of equal answers the one that keeps most numbers.
    common *= common.size + 1
    np.fill_diagonal(common, common.diagonal() + 1)
    rows, columns = linear_sum_assignment(common, maximize=True)
    running = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    others = [number for number in new.trees if number not in running]
    return running | {number: len(old.trees) + i for i, number in enumerate(others)}


def renumbered(shape: Shape, running: dict[int, int]) -> Shape:
    trees = {running[number]: tree for number, tree in shape.trees.items()}
    of = {broker: running[number] for broker, number in shape.of.items()}
    return Shape(shape.brokers, trees, of, shape.clients)


def way(tree: Iterable[Link], one: str, other: str) -> list[Link]:
    """The links between two brokers in a tree. Linear in its links."""
    beside: dict[str, list[str]] = {}
    for a, b in tree:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    above = {one: one}
    reached = [one]
    for broker in reached:
        for far in beside.get(broker, ()):
            if far not in above:
                above[far] = broker
                reached.append(far)
    links = []
    while other != one:
        links.append(in_order(above[other], other))
        other = above[other]
    return links
