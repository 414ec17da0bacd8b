"""Layer 5: descriptors travel by the marks and are kept where they arrive."""

from __future__ import annotations

from fanplan.simulation.marking_protocol.layer import CLIENT, Heard, Layer, Local
from fanplan.simulation.marking_protocol.marks import MarksLayer
from fanplan.simulation.marking_protocol.messages import ADVERTISEMENT, SUBSCRIPTION, Client, Mark
from fanplan.simulation.marking_protocol.trees import Origin, TreeLayer

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

    def stale(self) -> bool:
        return self.marks.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        old = self.publishers, self.subscribers
        self.publishers = self.kept(ADVERTISEMENT, self.marks.into, "p", self.local.published)
        self.subscribers = self.kept(SUBSCRIPTION, self.marks.out, "s", self.local.subscribed)
        self.says = {}
        self.advertise()
        self.subscribe()
        return old != (self.publishers, self.subscribers)

    def kept(self, kind: str, marks: dict[int, Mark], mark: Mark, own: dict[int, Client]) -> Kept:
        """Clients of a kind: the node's own, and those that links with the right mark brought."""
        kept: Kept = {None: list(own.values())} if own else {}
        for n, names in self.heard.of(kind).items():
            if names and marks.get(n) == mark:
                kept[n] = list(names.values())
        return kept

    def advertise(self) -> None:
        for n in (n for n, mark in self.marks.out.items() if mark == "p"):
            self.says.setdefault(n, {}).update(
                ((ADVERTISEMENT, client.name), client)
                for origin, clients in self.publishers.items()
                for client in clients
                if self.trees.carries(client, origin, n)
            )

    def subscribe(self) -> None:
        for n in (n for n, mark in self.marks.into.items() if mark == "s"):
            self.says.setdefault(n, {}).update(
                ((SUBSCRIPTION, client.name), client)
                for origin, clients in self.subscribers.items()
                for client in clients
                if self.trees.lifts(client, origin, n)
            )

    def stored(self) -> int:
        """Descriptors that came over links and are kept."""
        return sum(
            client.descriptors
            for kept in (self.publishers, self.subscribers)
            for origin, clients in kept.items()
            if origin is not None
            for client in clients
        )
