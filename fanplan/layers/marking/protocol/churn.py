"""A churn simulated: the same course of events for the best marking, PubE and SubE.

Publishers and subscribers come and go, and nodes restart. All of it is drawn beforehand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.layers.marking.protocol.loop import ProtocolLoop, Role
from fanplan.layers.marking.protocol.messages import MESSAGES, MarkingClient
from fanplan.layers.marking.protocol.node import SCHEMES, NodeRules, Scheme
from fanplan.layers.marking.protocol.rest import Aim, PresentClients, Rest, look
from fanplan.layers.marking.protocol.routing import Routing, routing_of
from fanplan.layers.marking.search.marking import exact_marking


@dataclass(frozen=True)
class MarkingChurn:
    """What happens to a network, and how it is simulated.

    ``events`` clients come or go, and ``restarts`` nodes restart between them; ``burst`` of these
    happen within ``burst_ms`` before the network comes to rest again. ``trees`` is
    ``shared:CORE``, ``per-source`` or ``given``. A packet is lost with the chance ``loss``. Nodes
    follow their counts when these have not changed for ``hold_ms``. A publisher and a subscriber
    match with the chance ``matching``.
    """

    events: int = 1000
    seed: int = 0
    loss: float = 0.0
    restarts: int = 0
    trees: str = "per-source"
    burst: int = 1
    burst_ms: float = 100.0
    hold_ms: float = 30.0
    matching: float = 0.3

    def __post_init__(self) -> None:
        least = {"events": 0, "restarts": 0, "burst": 1, "burst_ms": 0, "hold_ms": 0, "seed": 0}
        problems = [
            Problem(name, f"{getattr(self, name)} is too little", f"Give {low} or more")
            for name, low in least.items()
            if not low <= getattr(self, name) < math.inf
        ]
        if not 0 <= self.loss < 1:
            problems.append(Problem("loss", f"{self.loss} is out of range", "Give 0 to below 1"))
        if not 0 <= self.matching <= 1:
            problems.append(Problem("matching", f"{self.matching} is not a chance", "Give 0 to 1"))
        if problems:
            raise InputError(problems)


def marking_churn(
    network: MarkedNetwork, churn: MarkingChurn, given: pa.Table | None = None
) -> MarkingChurnResult:
    """Simulate publishers and subscribers that come and go, under the protocol of section 5.

    ``given`` is the table of trees where ``churn.trees`` is ``given``. Whenever the network is at
    rest it is compared with the exact marking of the problem that its clients pose.
    """
    routing = routing_of(network, churn.trees, given)
    course = course_of(routing, churn)
    members = PresentClients({}, {})
    runs = {scheme: SchemeRun(scheme, routing, churn) for scheme in SCHEMES}
    for burst in (course.start, *course.bursts):
        note(members, burst)
        problem = routing.problem(*members.counts(network.size))
        aim = Aim(problem, exact_marking(problem))
        for run in runs.values():
            run.go(burst, aim, members)
    moves = [
        event.comes for burst in course.bursts for event in burst if isinstance(event, ClientMove)
    ]
    return MarkingChurnResult(churn, sum(moves), len(moves) - sum(moves), runs)


def note(members: PresentClients, burst: Sequence[Event]) -> None:
    """Who is present after these events."""
    for event in burst:
        if isinstance(event, ClientMove):
            clients = members.publishers if event.role == "publisher" else members.subscribers
            clients.pop(event.client.name, None)
            if event.comes:
                clients[event.client.name] = event.client


@dataclass(frozen=True)
class MarkingChurnResult:
    """A churn and what the three schemes did under it."""

    churn: MarkingChurn
    joins: int
    leaves: int
    runs: dict[Scheme, SchemeRun]

    @property
    def right(self) -> bool:
        """Whether every network was as it must be whenever it was at rest."""
        return all(rest.right for run in self.runs.values() for rest in run.rests)

    def summary(self) -> dict[str, Any]:
        """All figures, as one JSON object."""
        events = self.churn.events + self.churn.restarts
        return {
            "trees": self.churn.trees,
            "events": self.churn.events,
            "joins": self.joins,
            "leaves": self.leaves,
            "restarts": self.churn.restarts,
            "loss": self.churn.loss,
            "burst": self.churn.burst,
            "hold_ms": self.churn.hold_ms,
            "seed": self.churn.seed,
            "rests": len(self.runs["best"].rests),
            "right": self.right,
            "schemes": {scheme: run.summary(events) for scheme, run in self.runs.items()},
        }


class SchemeRun:
    """One scheme under a course of events.

    ``bursts`` count messages by kind, those until the first clients were in first. ``rests`` are
    the network at rest, first after the start and then after each burst; ``converged_ms`` is how
    long after the last event of each of them anything was still learned.
    """

    def __init__(self, scheme: Scheme, routing: Routing, churn: MarkingChurn) -> None:
        self.rules = NodeRules(scheme, routing, churn.hold_ms, churn.matching / 2)
        self.engine = ProtocolLoop(self.rules, churn.loss, churn.seed + 1)
        self.bursts: list[Counter[str]] = []
        self.rests: list[Rest] = []
        self.converged_ms: list[float] = []

    def go(self, burst: Sequence[Event], aim: Aim, members: PresentClients) -> None:
        """Let the events of a burst happen, wait for the rest, and look."""
        engine = self.engine
        engine.sent = Counter()
        last = engine.now + burst[-1].delay_ms
        for event in burst:
            engine.after(event.delay_ms, partial(apply, engine, event))
        engine.rest()
        self.bursts.append(engine.sent)
        self.rests.append(look(engine, aim, members, self.rules))
        self.converged_ms.append(max(engine.moved - last, 0.0))

    @property
    def sent(self) -> Counter[str]:
        """Messages by kind, after the start."""
        return sum(self.bursts[1:], Counter())

    def summary(self, events: int) -> dict[str, Any]:
        """Figures, messages also per event.

        Parts are those that a solver decided, also at the start. State is what nodes keep at the
        end of what they were told.
        """
        stored, sent, state = [rest.stored for rest in self.rests], self.sent, self.engine.state()
        converged_ms, parts = self.converged_ms[1:], self.engine.parts
        messages = {kind: sent[kind] for kind in MESSAGES if sent[kind]}
        return {
            "messages": sum(messages.values()),
            "messages_per_event": sum(messages.values()) / max(events, 1),
            "by_kind": messages,
            "by_kind_per_event": {k: n / max(events, 1) for k, n in messages.items()},
            "state_by_kind": {kind: n for kind in MESSAGES if (n := state[kind])},
            "start_messages": self.bursts[0].total(),
            "stored_mean": float(np.mean(stored)),
            "stored_peak": max(stored),
            "stored_node_peak": max(rest.fullest for rest in self.rests),
            "cost": self.rests[-1].cost,
            "optimum": self.rests[-1].optimum,
            "converged_ms_mean": float(np.mean(converged_ms or [0.0])),
            "converged_ms_max": max(converged_ms, default=0.0),
            "elections": self.engine.elections,
            "parts": len(parts),
            "part_links_mean": float(np.mean(parts or [0])),
            "part_links_max": max(parts, default=0),
            "pairs": self.rests[-1].pairs,
            "wrong_rests": sum(not rest.right for rest in self.rests),
        }


def apply(engine: ProtocolLoop, event: Event) -> None:
    if isinstance(event, Restart):
        engine.restart(event.node)
    elif event.comes:
        engine.join(event.client, event.role)
    else:
        engine.leave(event.client, event.role)


# ---- the course of events


class ClientMove(NamedTuple):
    """A client that comes or goes, this long after its burst began."""

    delay_ms: float
    client: MarkingClient
    role: Role
    comes: bool


class Restart(NamedTuple):
    """A node that restarts, this long after its burst began."""

    delay_ms: float
    node: int


Event = ClientMove | Restart


class ChurnCourse(NamedTuple):
    """All that happens: who is there at the start, then burst by burst."""

    start: list[Event]
    bursts: list[list[Event]]


def course_of(routing: Routing, churn: MarkingChurn) -> ChurnCourse:
    """Draw a course. It depends on the seed and the network, not on how links are marked."""
    rng = np.random.default_rng(churn.seed)
    network = routing.network
    crowds = [
        crowd_of("publisher", network.published, routing.publishing, rng),
        crowd_of("subscriber", network.subscribed, routing.subscribing, rng),
    ]
    start: list[Event] = [
        ClientMove(0.0, client, c.role, True) for c in crowds for client in c.present
    ]
    usual = [len(crowd.present) for crowd in crowds]
    return ChurnCourse(start, list(bursts(crowds, usual, network.size, churn, rng)))


def bursts(
    crowds: list[Crowd], usual: list[int], nodes: int, churn: MarkingChurn, rng: np.random.Generator
) -> Iterator[list[Event]]:
    total = churn.events + churn.restarts
    restarts = set(rng.choice(total, churn.restarts, replace=False).tolist()) if total else set()
    for first in range(0, total, churn.burst):
        size = min(churn.burst, total - first)
        delays = np.sort(rng.random(size)) * churn.burst_ms * (churn.burst > 1)
        events: list[Event] = []
        for number, delay in enumerate(delays.tolist(), first):
            if number in restarts:
                events.append(Restart(delay, int(rng.integers(nodes))))
            else:
                which = int(rng.integers(2))
                events.append(crowds[which].event(rng, usual[which], delay))
        yield events


@dataclass
class Crowd:
    """The clients of one role: who is present and who is away, and how new ones are drawn."""

    role: Role
    nodes: list[int]
    counts: list[int]
    present: list[MarkingClient] = field(default_factory=list)
    away: list[MarkingClient] = field(default_factory=list)

    def event(self, rng: np.random.Generator, usual: int, delay_ms: float) -> ClientMove:
        """One leaves, the sooner the more there are; or comes back; or a new one comes."""
        here = len(self.present)
        if rng.random() < here / (here + usual):
            client = self.present.pop(int(rng.integers(here)))
            self.away.append(client)
            return ClientMove(delay_ms, client, self.role, False)
        if self.away and rng.random() < 0.5:
            client = self.away.pop(int(rng.integers(len(self.away))))
        else:
            client = self.new(rng)
        self.present.append(client)
        return ClientMove(delay_ms, client, self.role, True)

    def new(self, rng: np.random.Generator) -> MarkingClient:
        """At any node, with as many descriptors as one of the network's nodes has."""
        node = self.nodes[int(rng.integers(len(self.nodes)))]
        return self.named(node, self.counts[int(rng.integers(len(self.counts)))], rng)

    def named(self, node: int, count: int, rng: np.random.Generator) -> MarkingClient:
        return MarkingClient(len(self.present) + len(self.away), node, count, float(rng.random()))


def crowd_of(role: Role, counts: Longs, nodes: list[int], rng: np.random.Generator) -> Crowd:
    members = np.flatnonzero(counts).tolist()
    if not members:
        what = f"the network has no {role}"
        raise InputError(Problem(role, what, "Give descriptors to at least one node"))
    crowd = Crowd(role, nodes, counts[members].tolist())
    for node in members:
        crowd.present.append(crowd.named(node, int(counts[node]), rng))
    return crowd
