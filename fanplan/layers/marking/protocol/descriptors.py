"""Layer 5: descriptors travel by the marks and are kept where they arrive."""

from __future__ import annotations

from typing import Any

from fanplan.layers.marking.protocol.marks import MarksLayer
from fanplan.layers.marking.protocol.messages import (
    ADVERTISEMENT,
    DESCRIPTORS,
    SUBSCRIPTION,
    Client,
    Mark,
    Subscription,
)
from fanplan.layers.marking.protocol.tier import CLIENT, Heard, Layer, Local
from fanplan.layers.marking.protocol.trees import Origin, TreeLayer

Kept = dict[Origin, list[Client]]
"""Clients by the neighbour that their descriptors came from."""


class DescriptorLayer(Layer):
    """p-links take advertisements downstream, s-links subscriptions upstream.

    Ge et al. (2002), section 5, step 2. A link with another mark takes none; what came over it
    before is withdrawn by the end that sent it.
    """

    hears = frozenset((ADVERTISEMENT, SUBSCRIPTION, CLIENT))

    def __init__(self, local: Local, heard: Heard, trees: TreeLayer, marks: MarksLayer) -> None:
        super().__init__(local, heard)
        self.trees, self.marks = trees, marks
        self.publishers: Kept = {}
        self.subscribers: Kept = {}
        self.lacking: dict[Origin, dict[int, frozenset[int]]] = {}

    def stale(self) -> bool:
        return self.marks.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        old = self.publishers, self.subscribers, self.lacking
        self.publishers = {n: list(names.values()) for n, names in self.advertised().items()}
        come = self.subscribed()
        self.subscribers = {n: [s.client for s in names.values()] for n, names in come.items()}
        self.lacking = {n: {s.client.name: s.lacking for s in come[n].values()} for n in come}
        self.says = {}
        self.advertise()
        self.subscribe()
        return old != (self.publishers, self.subscribers, self.lacking)

    def advertised(self) -> dict[Origin, dict[int, Client]]:
        """Publishers by origin: the node's own, and those that p-links brought."""
        return self.kept(ADVERTISEMENT, self.marks.into, "p") | own(self.local.published)

    def subscribed(self) -> dict[Origin, dict[int, Subscription]]:
        """Subscribers by origin: the node's own, and those that s-links brought."""
        mine = {x.name: Subscription(x, frozenset()) for x in self.local.subscribed.values()}
        return self.kept(SUBSCRIPTION, self.marks.out, "s") | own(mine)

    def kept(self, kind: str, marks: dict[int, Mark], mark: Mark) -> dict[Origin, dict[int, Any]]:
        """Entries of a kind that links with the right mark brought."""
        told = self.heard.of(kind)
        return {n: names for n, names in told.items() if names and marks.get(n) == mark}

    def advertise(self) -> None:
        for n in (n for n, mark in self.marks.out.items() if mark == "p"):
            self.says.setdefault(n, {}).update(
                ((ADVERTISEMENT, client.name), client)
                for origin, clients in self.publishers.items()
                for client in clients
                if self.trees.carries(client, origin, n)
            )

    def subscribe(self) -> None:
        come: dict[Client, dict[Origin, frozenset[int]]] = {}
        for origin, clients in self.subscribers.items():
            for client in clients:
                come.setdefault(client, {})[origin] = self.lacking[origin][client.name]
        for n in (n for n, mark in self.marks.into.items() if mark == "s"):
            says = self.says.setdefault(n, {})
            for client, lacking in come.items():
                left = self.trees.lift(client, lacking, n)
                if left is not None:
                    says[SUBSCRIPTION, client.name] = Subscription(client, left)

    def stored(self) -> int:
        """Descriptors that neighbours sent and did not withdraw."""
        return sum(
            client.descriptors
            for kind in DESCRIPTORS
            for names in self.heard.of(kind).values()
            for client in names.values()
        )


def own(clients: dict[int, Any]) -> dict[Origin, dict[int, Any]]:
    return {None: dict(clients)} if clients else {}
