"""Publishers and subscribers that come and go, and nodes that restart, all drawn beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.protocol.loop import Role
from fanplan.layers.marking.protocol.messages import Client
from fanplan.layers.marking.protocol.routing import Routing


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
            problems.append(Problem("loss", f"{self.loss} is no such chance", "Give 0 to below 1"))
        if not 0 <= self.matching <= 1:
            problems.append(Problem("matching", f"{self.matching} is no chance", "Give 0 to 1"))
        if problems:
            raise InputError(problems)


class Move(NamedTuple):
    """A client that comes or goes, so long after its burst began."""

    delay_ms: float
    client: Client
    role: Role
    comes: bool


class Restart(NamedTuple):
    """A node that restarts, so long after its burst began."""

    delay_ms: float
    node: int


Event = Move | Restart


@dataclass
class Crowd:
    """The clients of one role: who is present and who is away, and how new ones are drawn."""

    role: Role
    nodes: list[int]
    counts: list[int]
    present: list[Client] = field(default_factory=list)
    away: list[Client] = field(default_factory=list)

    def event(self, rng: np.random.Generator, usual: int, delay_ms: float) -> Move:
        """One leaves, the sooner the more there are; or comes back; or a new one comes."""
        here = len(self.present)
        if rng.random() < here / (here + usual):
            client = self.present.pop(int(rng.integers(here)))
            self.away.append(client)
            return Move(delay_ms, client, self.role, False)
        if self.away and rng.random() < 0.5:
            client = self.away.pop(int(rng.integers(len(self.away))))
        else:
            client = self.new(rng)
        self.present.append(client)
        return Move(delay_ms, client, self.role, True)

    def new(self, rng: np.random.Generator) -> Client:
        """At any node, with as many descriptors as one of the network's nodes has."""
        node = self.nodes[int(rng.integers(len(self.nodes)))]
        return self.named(node, self.counts[int(rng.integers(len(self.counts)))], rng)

    def named(self, node: int, count: int, rng: np.random.Generator) -> Client:
        return Client(len(self.present) + len(self.away), node, count, float(rng.random()))


class Course(NamedTuple):
    """All that happens: who is there at the start, then burst by burst."""

    start: list[Event]
    bursts: list[list[Event]]


def course_of(routing: Routing, churn: MarkingChurn) -> Course:
    """Draw a course. It depends on the seed and the network, not on how links are marked."""
    rng = np.random.default_rng(churn.seed)
    network = routing.network
    crowds = [
        crowd_of("publisher", network.published, routing.publishing, rng),
        crowd_of("subscriber", network.subscribed, routing.subscribing, rng),
    ]
    start: list[Event] = [Move(0.0, client, c.role, True) for c in crowds for client in c.present]
    usual = [len(crowd.present) for crowd in crowds]
    return Course(start, list(bursts(crowds, usual, network.size, churn, rng)))


def crowd_of(role: Role, counts: Longs, nodes: list[int], rng: np.random.Generator) -> Crowd:
    members = np.flatnonzero(counts).tolist()
    if not members:
        what = f"the network has no {role}"
        raise InputError(Problem(role, what, "Give descriptors to at least one node"))
    crowd = Crowd(role, nodes, counts[members].tolist())
    for node in members:
        crowd.present.append(crowd.named(node, int(counts[node]), rng))
    return crowd


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
