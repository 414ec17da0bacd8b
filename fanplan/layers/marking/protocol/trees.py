"""Layer 1, what both kinds of trees have in common: links with counts, and where clients lead."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from fanplan.layers.marking.protocol.messages import Client, Mark
from fanplan.layers.marking.protocol.tier import Heard, Layer, Local

Origin = int | None
"""The neighbour that a descriptor came from; None for the node's own clients."""


class Count(NamedTuple):
    """The σ and τ of a directed link: descriptors if it were a p-link, or an s-link."""

    sigma: int
    tau: int


class Table(NamedTuple):
    """What a node knows of the marks around it.

    ``into`` and ``out`` have the gain of each directed link from or to a neighbour; a pair is a
    link in and one out that follows it in a tree.
    """

    into: tuple[tuple[int, float], ...] = ()
    out: tuple[tuple[int, float], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


class TreeLayer(Layer):
    """Keeps a node in the trees; ``counted`` false leaves out numbers, for broadcasting.

    ``out`` and ``into`` are the directed links to and from neighbours that trees use, with counts.
    ``reshaped`` tells whether it changed where clients lead.
    """

    reshaped = False

    def __init__(self, local: Local, heard: Heard, counted: bool) -> None:
        super().__init__(local, heard)
        self.counted = counted
        self.out: dict[int, Count] = {}
        self.into: dict[int, Count] = {}

    def total(self, clients: dict[int, Client]) -> int:
        """Descriptors of some of the node's clients, or 1 for any where they are not counted."""
        total = sum(client.descriptors for client in clients.values())
        return total if self.counted else min(total, 1)

    def table(self) -> Table:
        here, gain = self.local.node, self.local.gain
        return Table(
            tuple((n, gain(n, here, *count)) for n, count in sorted(self.into.items())),
            tuple((n, gain(here, n, *count)) for n, count in sorted(self.out.items())),
            self.pairs(),
        )

    @abstractmethod
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Links in and out that follow each other, where their order of gains is not plain."""

    @abstractmethod
    def first_mark(self, neighbour: int) -> Mark:
        """The mark of a link that has just come into a tree."""

    @abstractmethod
    def carries(self, publisher: Client, origin: Origin, neighbour: int) -> bool:
        """Whether a publisher's tree goes on to a neighbour, from where it came."""

    @abstractmethod
    def lift(
        self, subscriber: Client, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        """Trees from a neighbour that a subscriber is lacking in; None if it has none from there.

        ``lacking`` tells where its descriptors came from, and the trees they are lacking in there.
        """

    @abstractmethod
    def on_way(self, publisher: Client, origin: Origin, subscriber: Client, side: Origin) -> bool:
        """Whether this node is on the way of the data from the one to the other."""
