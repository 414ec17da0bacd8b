"""A churn simulated: the same course of events for the best marking, PubE and SubE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.layers.marking.problem.marking import Network
from fanplan.layers.marking.protocol.churn import Event, MarkingChurn, Move, Restart, course_of
from fanplan.layers.marking.protocol.loop import Engine
from fanplan.layers.marking.protocol.messages import MESSAGES
from fanplan.layers.marking.protocol.node import SCHEMES, Rules, Scheme
from fanplan.layers.marking.protocol.rest import Aim, Members, Rest, look
from fanplan.layers.marking.protocol.routing import Routing, routing_of
from fanplan.layers.marking.search.marking import exact_marking


@dataclass(frozen=True)
class SchemeRun:
    """One scheme under a course of events.

    ``start`` and ``sent`` count messages by kind, until the first clients were in and after that.
    ``rests`` are the network at rest, first after the start and then after each burst;
    ``converged_ms`` is how long after the last event of each burst anything was still learned.
    ``parts`` are the links of each part that a solver decided, in both phases. ``state`` is what
    nodes keep at the end of what they were told, by kind.
    """

    scheme: Scheme
    start: Counter[str]
    sent: Counter[str]
    rests: list[Rest]
    converged_ms: list[float]
    elections: int
    parts: list[int]
    state: Counter[str]

    def summary(self, events: int) -> dict[str, Any]:
        """Figures, messages also per event."""
        stored = [rest.stored for rest in self.rests]
        messages = {kind: self.sent[kind] for kind in MESSAGES if self.sent[kind]}
        return {
            "messages": sum(messages.values()),
            "messages_per_event": sum(messages.values()) / max(events, 1),
            "by_kind": messages,
            "by_kind_per_event": {k: n / max(events, 1) for k, n in messages.items()},
            "state_by_kind": {kind: n for kind in MESSAGES if (n := self.state[kind])},
            "start_messages": sum(self.start.values()),
            "stored_mean": float(np.mean(stored)),
            "stored_peak": max(stored),
            "stored_node_peak": max(rest.fullest for rest in self.rests),
            "cost": self.rests[-1].cost,
            "optimum": self.rests[-1].optimum,
            "converged_ms_mean": float(np.mean(self.converged_ms or [0.0])),
            "converged_ms_max": max(self.converged_ms, default=0.0),
            "elections": self.elections,
            "parts": len(self.parts),
            "part_links_mean": float(np.mean(self.parts or [0])),
            "part_links_max": max(self.parts, default=0),
            "pairs": self.rests[-1].pairs,
            "wrong_rests": sum(not rest.right for rest in self.rests),
        }


@dataclass(frozen=True)
class ChurnResult:
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


def marking_churn(
    network: Network, churn: MarkingChurn, given: pa.Table | None = None
) -> ChurnResult:
    """Simulate publishers and subscribers that come and go, under the protocol of section 5.

    ``given`` is the table of trees where ``churn.trees`` is ``given``. Whenever the network is at
    rest it is compared with the exact marking of the problem that its clients pose.
    """
    routing = routing_of(network, churn.trees, given)
    course = course_of(routing, churn)
    members = Members({}, {})
    runs = [Run(scheme, routing, churn) for scheme in SCHEMES]
    for burst in (course.start, *course.bursts):
        note(members, burst)
        problem = routing.problem(*members.counts(network.size))
        aim = Aim(problem, exact_marking(problem))
        for run in runs:
            run.go(burst, aim, members)
    moves = [event.comes for burst in course.bursts for event in burst if isinstance(event, Move)]
    joins = sum(moves)
    results = {run.scheme: run.result() for run in runs}
    return ChurnResult(churn, joins, len(moves) - joins, results)


class Run:
    """A scheme under way."""

    def __init__(self, scheme: Scheme, routing: Routing, churn: MarkingChurn) -> None:
        self.scheme = scheme
        self.rules = Rules(scheme, routing, churn.hold_ms, churn.matching / 2)
        self.engine = Engine(self.rules, churn.loss, churn.seed + 1)
        self.sent: list[Counter[str]] = []
        self.rests: list[Rest] = []
        self.converged_ms: list[float] = []

    def go(self, burst: Sequence[Event], aim: Aim, members: Members) -> None:
        """Let the events of a burst happen, wait for the rest, and look."""
        engine = self.engine
        engine.sent = Counter()
        last = engine.now + burst[-1].delay_ms
        for event in burst:
            engine.after(event.delay_ms, partial(apply, engine, event))
        engine.rest()
        self.sent.append(engine.sent)
        self.rests.append(look(engine, aim, members, self.rules))
        self.converged_ms.append(max(engine.moved - last, 0.0))

    def result(self) -> SchemeRun:
        return SchemeRun(
            self.scheme,
            start=self.sent[0],
            sent=sum(self.sent[1:], Counter()),
            rests=self.rests,
            converged_ms=self.converged_ms[1:],
            elections=self.engine.elections,
            parts=self.engine.parts,
            state=self.engine.state(),
        )


def note(members: Members, burst: Sequence[Event]) -> None:
    """Who is present after these events."""
    for event in burst:
        if isinstance(event, Move):
            clients = members.publishers if event.role == "publisher" else members.subscribers
            clients.pop(event.client.name, None)
            if event.comes:
                clients[event.client.name] = event.client


def apply(engine: Engine, event: Event) -> None:
    if isinstance(event, Restart):
        engine.restart(event.node)
    elif event.comes:
        engine.join(event.client, event.role)
    else:
        engine.leave(event.client, event.role)
