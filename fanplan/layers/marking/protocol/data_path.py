"""Layer 6: matches are found, and signals up and down lay the way of the data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from fanplan.layers.marking.protocol.descriptors import DescriptorLayer
from fanplan.layers.marking.protocol.messages import DOWN, UP, Client, Key, meet
from fanplan.layers.marking.protocol.tier import Heard, Layer, Local
from fanplan.layers.marking.protocol.trees import Origin, TreeLayer

Pair = tuple[int, int]
"""The names of a publisher and a subscriber."""


class Match(NamedTuple):
    """Clients whose descriptors met at a node, and the neighbours that these came from."""

    publisher: Client
    origin: Origin
    subscriber: Client
    side: Origin


class DataPathLayer(Layer):
    """A node where an advertisement meets a subscription on the way of the data tells both sides.

    Ge et al. (2002), section 5, steps 3 and 4. As a valid way is p-links and then s-links, there
    is one such node for a pair: where they change. ``matches`` has the pairs matched here,
    ``forward`` the neighbour to which data of each pair goes on; None at the subscriber's node.
    """

    hears = frozenset((UP, DOWN))

    def __init__(
        self, local: Local, heard: Heard, trees: TreeLayer, descriptors: DescriptorLayer, arc: float
    ) -> None:
        super().__init__(local, heard)
        self.trees, self.descriptors, self.arc = trees, descriptors, arc
        self.matches: dict[Pair, Match] = {}
        self.forward: dict[Pair, Origin] = {}

    def stale(self) -> bool:
        return self.descriptors.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        if self.stale():
            self.matches = {(m.publisher.name, m.subscriber.name): m for m in self.found()}
        self.says, self.forward = {}, {}
        for pair, match in self.matches.items():
            self.forward[pair] = match.side
            self.say(match.origin, (UP, pair), True)
            self.say(match.side, (DOWN, pair), match.publisher)
        self.relay_up()
        self.relay_down()
        return False

    def found(self) -> Iterator[Match]:
        for origin, publishers in self.descriptors.publishers.items():
            for side, subscribers in self.descriptors.subscribers.items():
                for publisher, subscriber in product(publishers, subscribers):
                    match = Match(publisher, origin, subscriber, side)
                    if meet(publisher, subscriber, self.arc) and self.on_way(match):
                        yield match

    def relay_up(self) -> None:
        """Signals from downstream go on to where the publisher's descriptors came from."""
        origins = {
            client.name: origin
            for origin, clients in self.descriptors.publishers.items()
            for client in clients
        }
        for n, pairs in self.heard.of(UP).items():
            for pair in pairs:
                self.forward[pair] = n
                self.say(origins.get(pair[0]), (UP, pair), True)

    def relay_down(self) -> None:
        """Signals from upstream go on to where the subscriber's came from, on the same tree."""
        for n, pairs in self.heard.of(DOWN).items():
            for pair, publisher in pairs.items():
                for side in self.sides(publisher, n, pair[1]):
                    self.forward[pair] = side
                    self.say(side, (DOWN, pair), publisher)

    def sides(self, publisher: Client, origin: int, subscriber: int) -> list[Origin]:
        return [
            side
            for side, clients in self.descriptors.subscribers.items()
            for client in clients
            if client.name == subscriber and self.on_way(Match(publisher, origin, client, side))
        ]

    def on_way(self, match: Match) -> bool:
        lacking = self.descriptors.lacking[match.side][match.subscriber.name]
        return match.publisher.node not in lacking and self.trees.on_way(*match)

    def say(self, neighbour: Origin, key: Key, value: Any) -> None:
        if neighbour is not None:
            self.says.setdefault(neighbour, {})[key] = value
