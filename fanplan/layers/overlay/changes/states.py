"""What stands between two overlays, judged by the check: trees, limits, and what they carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints
from fanplan.layers.overlay.changes.shape import Shape
from fanplan.layers.overlay.check.check import (
    check_crowded,
    check_limits,
    counted,
)
from fanplan.layers.overlay.check.clients import between_brokers
from fanplan.layers.overlay.check.evidence import Truth, link_facts
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.network.brokers import ClientProblem, Routes
from fanplan.network.dataset import load_clients, load_overlay, read_brokers, read_links
from fanplan.plan.axis import Axis
from fanplan.plan.findings import EXAMPLES, Findings
from fanplan.plan.steps import State
from fanplan.plan.stored import StoredPlan
from fanplan.plan.walks import Proved, prove

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


def evidence(plan: StoredPlan, dataset: Path | None) -> Evidence:
    """From the stages that the plan was made from."""
    record = plan.section(OverlayRecord)
    if dataset is None:
        return Evidence(lambda shape, names: no_routes(), {}, None, record.seconds)
    brokers = read_brokers(dataset)
    capacity = dict(zip(brokers.names.to_pylist(), brokers.capacity.tolist(), strict=True))
    if record.clients == "given":
        problem = load_overlay(dataset)
        return Evidence(lambda shape, names: problem.routes, capacity, dataset, problem.seconds)
    clients = load_clients(dataset)
    routes: RoutesOf = lambda shape, names: client_routes(clients, shape, names)  # noqa: E731
    return Evidence(routes, capacity, dataset, clients.seconds)


def no_routes() -> Routes:
    nothing = np.zeros(0)
    ints = nothing.astype(np.int32)
    return Routes(ints, np.zeros(1, np.int64), ints, nothing, nothing)


def client_routes(problem: ClientProblem, shape: Shape, names: pa.Array) -> Routes:
    """Routes between brokers, by where clients are; one without a broker sends and gets nothing."""
    sending = homes(shape, "publisher", problem.publishers, names)
    wanting = homes(shape, "subscriber", problem.subscribers, names)
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


def homes(shape: Shape, role: str, clients: pa.Array, names: pa.Array) -> Ints:
    """The position of the broker of each client; -1 if it has none."""
    places = [min(shape.clients.get((name, role)) or {""}) for name in clients.to_pylist()]
    return Axis("broker", names).positions(pa.array(places, pa.string()))


def judge(shape: Shape, limits: LimitsRecord, found: Evidence) -> State:
    """Every tree in use must be one; limits may be exceeded for a while, and are named then."""
    truth, broken, exceeded = found.truth(shape), Findings(), Findings()
    links = sorted(shape.links())
    ends = positions(links, truth.brokers)
    row = {link: at for at, link in enumerate(links)}
    used = {n: np.array([row[x] for x in sorted(shape.trees[n])], int) for n in shape.used()}
    trees = {n: prove(ends, rows, len(truth.brokers)) for n, rows in used.items()}
    for number, tree in trees.items():
        require_proved(number, tree, len(used[number]), truth, broken)
    figures = {"brokers": float(len(truth.brokers)), "links": float(len(links))}
    if broken.violations:
        return State(figures, tuple(broken.violations))
    hung = list(trees.values())
    check_limits(among(limits, shape), hung, ends, truth, exceeded)
    degree = np.bincount(ends.ravel(), minlength=1).max(initial=0)
    figures |= {"degree": float(degree), "diameter": float(max(tree.diameter for tree in hung))}
    if found.known:
        figures |= carried(shape, trees, ends, truth, exceeded)
    return State(figures, (), (*exceeded.violations, *exceeded.warnings))


def positions(links: list[tuple[str, str]], brokers: pa.Array) -> Ints:
    if not links:
        return np.zeros((0, 2), np.int32)
    ends = pa.array([end for link in links for end in link], pa.string())
    return Axis("broker", brokers).positions(ends).reshape(-1, 2)


def require_proved(number: int, tree: Proved, links: int, truth: Truth, broken: Findings) -> None:
    apart = tree.apart
    examples = [repr(truth.names[int(i)]) for i in apart[:EXAMPLES]]
    broken.violate(f"tree {number}: cut off", len(apart), examples)
    if not len(apart) and links != len(truth.brokers) - 1:
        broken.violate(f"tree {number}: has a cycle", 1, [f"{links} links"])


def among(limits: LimitsRecord, shape: Shape) -> LimitsRecord:
    """Limits of hops between brokers that stand."""
    hops = tuple(x for x in limits.hops if {x[0], x[1]} <= shape.brokers)
    return limits.model_copy(update={"hops": hops})


def carried(
    shape: Shape, trees: dict[int, Proved], ends: Ints, truth: Truth, exceeded: Findings
) -> dict[str, float]:
    """The overlay's ledger, as the check counts it."""
    of = np.array([shape.of.get(name, min(shape.trees)) for name in truth.names])
    counts = [counted(tree, of == number, ends, truth) for number, tree in trees.items()]
    processed: Floats = np.sum([found.processed for found in counts], axis=0)
    crossed = np.zeros(len(ends))
    for tree, found in zip(trees.values(), counts, strict=True):
        below = tree.links >= 0
        crossed[tree.links[below]] += found.crossed[below]
    check_crowded(truth, processed, crossed, ends, exceeded)
    arrived = float(sum(found.arrived.sum() for found in counts))
    delay = float(sum(found.delay for found in counts))
    return {
        "link_messages": float(crossed.sum()),
        "processed": float(processed.sum()),
        "forwarded": float(processed.sum()) - arrived,
        "delay": delay,
    }
