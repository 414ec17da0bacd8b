"""An overlay by names as it stands between two plans, and how the check judges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import linear_sum_assignment

from fanplan.core.arrays import Ints
from fanplan.layers.overlay.check.check import check_crowded, check_tree_limits, count_carried
from fanplan.layers.overlay.check.evidence import Truth, between_brokers, link_facts
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.network.brokers import ClientProblem, Routes
from fanplan.network.dataset import load_clients, load_overlay, read_brokers, read_links
from fanplan.plan.axis import Axis
from fanplan.plan.changes import Row
from fanplan.plan.findings import EXAMPLES, Findings
from fanplan.plan.steps import State
from fanplan.plan.stored import StoredPlan
from fanplan.plan.walks import Proved, prove

TOLD = ("link_messages", "processed", "forwarded", "delay")
"""Entries of an overlay's ledger that are told."""

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


RoutesOf = Callable[[Shape, pa.Array], Routes]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a dataset says of brokers and traffic; without one nothing is known of either."""

    routes: RoutesOf
    capacity: dict[str, float]
    dataset: Path | None
    seconds: float

    @property
    def known(self) -> bool:
        return self.dataset is not None

    def truth(self, shape: Shape) -> Truth:
        """In the positions of the brokers that stand."""
        names = pa.array(sorted(shape.brokers), pa.string())
        capacity = np.array([self.capacity.get(name, np.inf) for name in names.to_pylist()])
        links = None if self.dataset is None else read_links(self.dataset, names)
        return Truth(
            names,
            capacity,
            np.zeros(len(names)),
            self.routes(shape, names),
            lambda ends: np.zeros(len(ends)),
            *link_facts(links),
            self.seconds,
        )


def overlay_shape(plan: StoredPlan) -> Shape:
    """The overlay of a stored plan."""
    brokers = plan.read("brokers", ("broker",))["broker"].to_pylist()
    trees: dict[int, set[Link]] = {
        number: set() for number in range(plan.section(OverlayRecord).trees)
    }
    of = dict.fromkeys(brokers, 0)
    if plan.section(OverlayRecord).trees > 1:
        for row in plan.read("tree_links", ("tree", "a", "b")).to_pylist():
            trees[row["tree"]].add(by_name(row["a"], row["b"]))
        for row in plan.read("tree_sources", ("broker", "tree")).to_pylist():
            of[row["broker"]] = row["tree"]
    else:
        rows = plan.read("links", ("a", "b")).to_pylist()
        trees[0] = {by_name(row["a"], row["b"]) for row in rows}
    clients: dict[Client, set[str]] = {}
    for row in plan.read("clients", ("client", "role", "broker")).to_pylist():
        clients.setdefault((row["client"], row["role"]), set()).add(row["broker"])
    return Shape(set(brokers), trees, of, clients)


def by_name(a: str, b: str) -> Link:
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


def running_shape(shape: Shape, running: dict[int, int]) -> Shape:
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
        links.append(by_name(above[other], other))
        other = above[other]
    return links


def evidence(plan: StoredPlan, dataset: Path | None) -> Evidence:
    """From the stages that the plan was made from."""
    record = plan.section(OverlayRecord)
    if dataset is None:
        return Evidence(lambda shape, names: Routes.none(), {}, None, record.seconds)
    brokers = read_brokers(dataset)
    capacity = dict(zip(brokers.names.to_pylist(), brokers.capacity.tolist(), strict=True))
    if record.clients == "given":
        problem = load_overlay(dataset)
        return Evidence(lambda shape, names: problem.routes, capacity, dataset, problem.seconds)
    clients = load_clients(dataset)
    routes: RoutesOf = lambda shape, names: routes_where_clients_are(clients, shape, names)  # noqa: E731
    return Evidence(routes, capacity, dataset, clients.seconds)


def routes_where_clients_are(problem: ClientProblem, shape: Shape, names: pa.Array) -> Routes:
    """Routes between brokers, by where clients are; one without a broker sends and gets nothing."""
    sending = homes_standing(shape, "publisher", problem.publishers, names)
    wanting = homes_standing(shape, "subscriber", problem.subscribers, names)
    routes = problem.routes
    kept = [
        (row, routes.destinations(row)[wanting[routes.destinations(row)] >= 0])
        for row in np.flatnonzero(sending[routes.source] >= 0).tolist()
    ]
    rows = np.array([row for row, _ in kept], np.int64)
    some = Routes(
        routes.source[rows],
        np.cumsum([0, *(len(ends) for _, ends in kept)]),
        np.concatenate([np.zeros(0, np.int32), *(ends for _, ends in kept)]),
        routes.messages[rows],
        routes.deliveries[rows],
    )
    return between_brokers(some, sending, wanting)


def homes_standing(shape: Shape, role: str, clients: pa.Array, names: pa.Array) -> Ints:
    """The position of the broker of each client; -1 if it has none."""
    places = [min(shape.clients.get((name, role)) or {""}) for name in clients.to_pylist()]
    return Axis("broker", names).positions(pa.array(places, pa.string()))


def judge_overlay(shape: Shape, limits: LimitsRecord, found: Evidence) -> State:
    """Every tree in use must be one; limits may be exceeded for a while, and are named then."""
    truth, broken, exceeded = found.truth(shape), Findings(), Findings()
    links = sorted(shape.links())
    ends = ends_by_name(links, truth.brokers)
    row = {link: at for at, link in enumerate(links)}
    used = {n: np.array([row[x] for x in sorted(shape.trees[n])], int) for n in shape.used()}
    trees = {n: prove(ends, rows, len(truth.brokers)) for n, rows in used.items()}
    for number, tree in trees.items():
        require_tree(number, tree, len(used[number]), truth, broken)
    figures = {"brokers": float(len(truth.brokers)), "links": float(len(links))}
    if broken.violations:
        return State(figures, tuple(broken.violations))
    hung = list(trees.values())
    check_tree_limits(limits_among(limits, shape), hung, ends, truth, exceeded)
    degree = np.bincount(ends.ravel(), minlength=1).max(initial=0)
    figures |= {"degree": float(degree), "diameter": float(max(tree.diameter for tree in hung))}
    if found.known:
        figures |= carried_figures(shape, trees, ends, truth, exceeded)
    return State(figures, (), (*exceeded.violations, *exceeded.warnings))


def ends_by_name(links: list[tuple[str, str]], brokers: pa.Array) -> Ints:
    if not links:
        return np.zeros((0, 2), np.int32)
    ends = pa.array([end for link in links for end in link], pa.string())
    return Axis("broker", brokers).positions(ends).reshape(-1, 2)


def require_tree(number: int, tree: Proved, links: int, truth: Truth, broken: Findings) -> None:
    apart = tree.apart
    examples = [repr(truth.names[int(i)]) for i in apart[:EXAMPLES]]
    broken.violate(f"tree {number}: cut off", len(apart), examples)
    if not len(apart) and links != len(truth.brokers) - 1:
        broken.violate(f"tree {number}: has a cycle", 1, [f"{links} links"])


def limits_among(limits: LimitsRecord, shape: Shape) -> LimitsRecord:
    """Limits of hops between brokers that stand."""
    hops = tuple(x for x in limits.hops if {x[0], x[1]} <= shape.brokers)
    return limits.model_copy(update={"hops": hops})


def carried_figures(
    shape: Shape, trees: dict[int, Proved], ends: Ints, truth: Truth, exceeded: Findings
) -> dict[str, float]:
    """What is told of the overlay's ledger, as the check counts it."""
    of = np.array([shape.of.get(name, min(shape.trees)) for name in truth.names])
    carried = count_carried(trees, of, ends, truth)
    check_crowded(truth, carried, ends, exceeded)
    return {name: carried.ledger[name] for name in TOLD}
