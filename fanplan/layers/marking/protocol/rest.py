"""What must hold when the network is at rest, checked without the protocol's own words.

At rest no packet is under way, none waits for an answer and no node waits for its counts to settle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.marking.ledger import DescriptorCounts, cost_of_marks, violations
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.protocol.loop import ProtocolLoop
from fanplan.layers.marking.protocol.messages import MarkingClient, meet
from fanplan.layers.marking.protocol.node import NodeRules
from fanplan.layers.marking.protocol.solver import Edge
from fanplan.layers.marking.search.marking import Marking


class Aim(NamedTuple):
    """The problem that the present clients pose, and its best marking."""

    problem: MarkingProblem
    best: Marking


class PresentClients(NamedTuple):
    """The clients that are present, by name."""

    publishers: dict[int, MarkingClient]
    subscribers: dict[int, MarkingClient]

    def counts(self, nodes: int) -> list[Longs]:
        """Descriptors of publishers and of subscribers at each node."""
        found = []
        for clients in self:
            counts = np.zeros(nodes, np.int64)
            for client in clients.values():
                counts[client.node] += client.descriptors
            found.append(counts)
        return found


@dataclass(frozen=True)
class Rest:
    """A network at rest, against what it should be.

    ``disagreeing``: links whose ends do not both have the same mark, or that are in no tree.
    ``invalid``: p-links directly behind s-links (Eq. 1). ``other``: links with another mark than
    the planned one. ``cost`` is that of the marking, ``optimum`` the least. ``stored`` are the
    descriptors kept behind links, ``fullest`` those at the node that has most, ``misplaced`` the
    difference from what Lemma 1 says, over all links. ``pairs`` that match, and of them those that
    no node found, that more than one found, and whose data would not arrive.
    """

    disagreeing: int
    invalid: int
    other: int
    cost: float
    optimum: float
    stored: int
    fullest: int
    misplaced: int
    pairs: int
    missed: int
    repeated: int
    undelivered: int

    @property
    def right(self) -> bool:
        """Whether all is as it must be."""
        marks = self.disagreeing + self.invalid + self.other
        return not marks + self.misplaced + self.missed + self.repeated + self.undelivered


def look(engine: ProtocolLoop, aim: Aim, members: PresentClients, rules: NodeRules) -> Rest:
    """Compare a network at rest with the problem that its clients pose."""
    problem, counts = aim.problem, DescriptorCounts(aim.best.sigma, aim.best.tau)
    planned = {"best": aim.best.publish, "pub_everywhere": np.ones(problem.size, bool)}
    links = list(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    upper = [engine.nodes[a].marks.out.get(b) for a, b in links]
    lower = [engine.nodes[b].marks.into.get(a) for a, b in links]
    publish = np.array([mark == "p" for mark in upper], bool)
    wrong = publish != planned.get(rules.scheme, np.zeros(problem.size, bool))
    stored = [node.descriptors.stored() for node in engine.nodes]
    return Rest(
        disagreeing=sum(a is None or a != b for a, b in zip(upper, lower, strict=True))
        + sum(len(node.marks.out) for node in engine.nodes) - sum(m is not None for m in upper),
        invalid=len(violations(problem, publish)),
        other=int(wrong.sum()),
        cost=cost_of_marks(problem, counts, publish),
        optimum=aim.best.cost,
        stored=sum(stored),
        fullest=max(stored),
        misplaced=misplaced(engine, links, np.where(publish, *counts).tolist(), publish.tolist())
        + abs(int(np.where(publish, *counts).sum()) - sum(stored)),
        **look_at_pairs(engine, members, rules.arc),
    )  # fmt: skip


def misplaced(engine: ProtocolLoop, links: list[Edge], due: list[int], publish: list[bool]) -> int:
    """How many descriptors links have too few or too many; due are σ of p-links, τ of s-links."""
    wrong = 0
    for (tail, head), count, p in zip(links, due, publish, strict=True):
        at, origin = (head, tail) if p else (tail, head)
        layer = engine.nodes[at].descriptors
        kept = (layer.publishers if p else layer.subscribers).get(origin, [])
        wrong += abs(count - sum(client.descriptors for client in kept))
    return wrong


def look_at_pairs(engine: ProtocolLoop, members: PresentClients, arc: float) -> dict[str, int]:
    everyone = product(members.publishers.values(), members.subscribers.values())
    pairs = [(p, s) for p, s in everyone if meet(p, s, arc)]
    found = Counter(pair for node in engine.nodes for pair in node.data_path.matches)
    names = {(p.name, s.name) for p, s in pairs}
    return {
        "pairs": len(pairs),
        "missed": len(names - found.keys()),
        "repeated": sum(n - (pair in names) for pair, n in found.items()),
        "undelivered": sum(not delivered(engine, p, s) for p, s in pairs),
    }


def delivered(engine: ProtocolLoop, publisher: MarkingClient, subscriber: MarkingClient) -> bool:
    """Whether what a publisher sends for a pair gets to the subscriber's node."""
    pair, here = (publisher.name, subscriber.name), publisher.node
    for _ in engine.nodes:
        if pair not in engine.nodes[here].data_path.forward:
            return False
        onward = engine.nodes[here].data_path.forward[pair]
        if onward is None:
            return here == subscriber.node
        here = onward
    return False
