"""The marking problem: on which directed links advertisements or subscriptions may travel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import NAMED, InputError, Problem
from fanplan.network.brokers import Links


@dataclass(frozen=True, eq=False)
class MarkedNetwork:
    """Nodes, the links between them, and how many descriptors each node has.

    ``published`` and ``subscribed`` are the f and g of Ge et al. (2002), section 2.3: descriptors
    of the publishers and of the subscribers at each node. ``sending`` is the price of a descriptor
    on each link, in either direction, 1 if not given; ``storing`` that of keeping one at each node,
    0 if not given. ``links`` None: trees may use any link, at the price 1.
    """

    nodes: pa.Array
    published: Longs
    subscribed: Longs
    links: Links | None = None
    sending: Floats | None = None
    storing: Floats | None = None

    def __post_init__(self) -> None:
        problems = [*self._prices(), *self._links()]
        if problems:
            raise InputError(problems)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def name(self, node: int) -> str:
        return str(self.nodes[int(node)].as_py())

    def named(self, which: Ints | Longs) -> str:
        """A few of the nodes by name, and how many there are besides."""
        shown = ", ".join(repr(self.name(node)) for node in which[:NAMED])
        return shown + (f" and {len(which) - NAMED} more" if len(which) > NAMED else "")

    def _prices(self) -> Iterator[Problem]:
        for field in ("sending", "storing"):
            price = getattr(self, field)
            if price is not None and not (np.isfinite(price) & (price >= 0)).all():
                what = "a price is negative or not finite"
                yield Problem(field, what, "Give finite prices of 0 or more")

    def _links(self) -> Iterator[Problem]:
        if self.links is None:
            return
        ends = np.sort(np.stack((self.links.a, self.links.b)), axis=0).astype(np.int64)
        _, first, times = np.unique(ends[0] * self.size + ends[1], True, return_counts=True)
        for i in first[times > 1][:NAMED]:
            what = f"{self.named(ends[:, i])} have parallel links"
            yield Problem("links", what, "Give one link between two nodes")
        for node in ends[0][ends[0] == ends[1]][:NAMED]:
            yield Problem("links", f"{self.name(node)!r} is linked with itself", "Leave it out")
        if not (self.links.latency_ms >= 0).all():
            yield Problem("links", "a latency is negative or not a number", "Give 0 or more")


@dataclass(frozen=True, eq=False)
class SourceTrees:
    """One tree for each publishing node, pruned to subscribers, as directed links in preorder.

    Tree ``i`` starts at node ``root[i]`` and has the entries ``starts[i]:starts[i + 1]``. Entry
    ``e`` is a use of link ``link[e]``; ``above[e]`` is the entry of the link before it, NONE at
    the root. The entries below an entry follow it directly.
    """

    root: Ints
    starts: Longs
    link: Ints
    above: Longs


@dataclass(frozen=True, eq=False)
class SharedTree:
    """One tree for all publishers, hung at its core and pruned to publishers and subscribers.

    ``order`` lists its nodes, parents first. ``parent``, ``down`` and ``up`` have an entry per
    node of the network: its parent, the link from the parent and the link to it. A link is NONE
    where nothing can travel: no publisher before it, or no subscriber behind it.
    """

    core: int
    order: Ints
    parent: Ints
    down: Ints
    up: Ints


@dataclass(frozen=True, eq=False)
class MarkingProblem:
    """What links are marked from: every directed link that lies in a tree, and the trees.

    Link ``t`` leads from node ``tail[t]`` to node ``head[t]``. A descriptor on it costs
    ``sending[t]``; one that is kept at node ``n`` costs ``storing[n]``. With 1 and 0 costs are
    counts of descriptors, as in Eq. 2 of Ge et al. (2002).
    """

    nodes: pa.Array
    published: Longs
    subscribed: Longs
    tail: Ints
    head: Ints
    sending: Floats
    storing: Floats
    trees: SourceTrees | SharedTree
    source: str = ""

    @property
    def size(self) -> int:
        """Number of directed links in trees."""
        return len(self.tail)

    @property
    def shared(self) -> bool:
        return isinstance(self.trees, SharedTree)

    @property
    def publication_price(self) -> Floats:
        """What a publisher's descriptor costs on each link: sent, and kept at its head."""
        return self.sending + self.storing[self.head]

    @property
    def subscription_price(self) -> Floats:
        """What a subscriber's descriptor costs on each link: sent, and kept at its tail."""
        return self.sending + self.storing[self.tail]
