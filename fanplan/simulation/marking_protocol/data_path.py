"""Layer 6: matches are found, and signals up and down lay the way of the data."""

from __future__ import annotations

from itertools import product
from typing import Any

from fanplan.simulation.marking_protocol.descriptors import DescriptorLayer
from fanplan.simulation.marking_protocol.layer import Heard, Layer, Local
from fanplan.simulation.marking_protocol.messages import DOWN, UP, Client, Key, meet
from fanplan.simulation.marking_protocol.trees import Origin, TreeLayer

Pair = tuple[int, int]
"""The names of a publisher and a subscriber."""


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
        self.matches: set[Pair] = set()
        self.forward: dict[Pair, Origin] = {}

    def stale(self) -> bool:
        return self.descriptors.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        self.says, self.forward, self.matches = {}, {}, set()
        self.match()
        self.relay_up()
        self.relay_down()
        return False

    def match(self) -> None:
        for origin, publishers in self.descriptors.publishers.items():
            for side, subscribers in self.descriptors.subscribers.items():
                for publisher, subscriber in product(publishers, subscribers):
                    if self.trees.on_way(publisher, origin, subscriber, side) and meet(
                        publisher, subscriber, self.arc
                    ):
                        pair = (publisher.name, subscriber.name)
                        self.matches.add(pair)
                        self.lay(pair, side)
                        self.say(origin, (UP, pair), True)
                        self.say(side, (DOWN, pair), publisher)

    def relay_up(self) -> None:
        """Signals from downstream go on to where the publisher's descriptors came from."""
        origins = {
            client.name: origin
            for origin, clients in self.descriptors.publishers.items()
            for client in clients
        }
        for n, pairs in self.heard.of(UP).items():
            for pair in pairs:
                self.lay(pair, n)
                self.say(origins.get(pair[0]), (UP, pair), True)

    def relay_down(self) -> None:
        """Signals from upstream go on to where the subscriber's came from, on the same tree."""
        for n, pairs in self.heard.of(DOWN).items():
            for pair, publisher in pairs.items():
                for side in self.sides(publisher, n, pair[1]):
                    self.lay(pair, side)
                    self.say(side, (DOWN, pair), publisher)

    def sides(self, publisher: Client, origin: int, subscriber: int) -> list[Origin]:
        return [
            side
            for side, clients in self.descriptors.subscribers.items()
            for client in clients
            if client.name == subscriber and self.trees.on_way(publisher, origin, client, side)
        ]

    def lay(self, pair: Pair, side: Origin) -> None:
        self.forward[pair] = side

    def say(self, neighbour: Origin, key: Key, value: Any) -> None:
        if neighbour is not None:
            self.says.setdefault(neighbour, {})[key] = value
