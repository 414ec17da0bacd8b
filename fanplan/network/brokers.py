"""The overlay problem: brokers, what travels between them, and how alike their clients are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs, places_among, starts_of
from fanplan.core.errors import InputError, Problem

EndKey = tuple[int, bytes]
"""What tells routes or groups apart: a source or tree, and the brokers that it leads to."""


def end_keys(source: Ints, starts: Longs, brokers: Ints) -> list[EndKey]:
    ends = zip(source.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [(here, brokers[first:last].tobytes()) for here, first, last in ends]


@dataclass(frozen=True, eq=False)
class Routes:
    """Traffic by where it enters and where it must arrive.

    Messages with the same source broker and the same destination brokers are one route. Route
    ``i`` enters at ``source[i]`` and must reach ``brokers[starts[i]:starts[i + 1]]``: ascending,
    those with a subscriber who wants it, the source included if it has one. ``messages`` and
    ``deliveries`` (to subscribers) are totals over the window.
    """

    source: Ints
    starts: Longs
    brokers: Ints
    messages: Floats
    deliveries: Floats

    def __len__(self) -> int:
        return len(self.source)

    def destinations(self, route: int) -> Ints:
        return self.brokers[self.starts[route] : self.starts[route + 1]]

    @staticmethod
    def none() -> Routes:
        nothing = np.empty(0, np.int32)
        return Routes(nothing, np.zeros(1, np.int64), nothing, np.empty(0), np.empty(0))

    def somewhere(self) -> Routes:
        """Those that lead somewhere: what nobody wants is left out."""
        counts = np.diff(self.starts)
        kept = counts > 0
        starts = starts_of(counts[kept])
        own = (self.source[kept], starts, self.brokers, self.messages[kept], self.deliveries[kept])
        return Routes(*own)


@dataclass(frozen=True, eq=False)
class Links:
    """Links that may be used, each in both directions, as positions of brokers with a < b.

    ``assumed`` says of which links the latency was not given, nothing if it was of all. If they
    are not ``timed``, none is known at all, and each link is a hop.
    """

    a: Ints
    b: Ints
    latency_ms: Floats
    bandwidth: Floats
    """messages per second; infinite if not limited"""
    cost: Floats
    assumed: Bools | None = None
    timed: bool = True

    def both_ways(self) -> tuple[Longs, Longs]:
        """Where each link begins and ends: first all as given, then all back."""
        a, b = self.a.astype(np.int64), self.b.astype(np.int64)
        return np.concatenate((a, b)), np.concatenate((b, a))

    def only(self, kept: Bools) -> Links:
        """Some of the links."""
        assumed = None if self.assumed is None else self.assumed[kept]
        ends, amounts = (self.a, self.b), (self.latency_ms, self.bandwidth, self.cost)
        a, b = (end[kept] for end in ends)
        latency, bandwidth, cost = (amount[kept] for amount in amounts)
        return Links(a, b, latency, bandwidth, cost, assumed, self.timed)


class Rooted(NamedTuple):
    """A tree hung up at a root: ``order`` lists its brokers, parents first, the root before all.

    Per broker: ``parent``, ``link`` (the position of the link to the parent) and ``depth`` in
    links. The root has no parent and no link: NONE. Brokers outside have NONE in all three.
    """

    order: Ints
    parent: Ints
    link: Ints
    depth: Ints


@dataclass(frozen=True, eq=False)
class Similarity:
    """How alike brokers are (Tajuddin 2011, chapter 4), sparse, brokers × brokers.

    ``overlap`` (Eq. 4.2) is symmetric. ``cover[i, j]`` (Eq. 4.5): subscriptions of i cover those of
    j. ``interest[i, j]`` (Eq. 4.7): advertisements of i meet subscriptions of j. The diagonal is
    empty.
    """

    overlap: scipy.sparse.csr_array
    cover: scipy.sparse.csr_array
    interest: scipy.sparse.csr_array


@dataclass(frozen=True, eq=False)
class OverlayProblem:
    """What a tree of brokers is planned from. ``links`` None: any two brokers may be linked.

    ``capacity`` is messages per second, infinite where none is given. ``source`` is the key of the
    dataset, ``seconds`` the window of all totals.
    """

    brokers: pa.Array
    capacity: Floats
    cost: Floats
    routes: Routes
    similarity: Similarity
    links: Links | None
    seconds: float
    source: str

    @property
    def size(self) -> int:
        """Number of brokers."""
        return len(self.brokers)

    @property
    def timed(self) -> bool:
        """Whether delays are in ms; else they are in hops."""
        return self.links is not None and self.links.timed

    def given(self, ends: Ints) -> Longs:
        """Where links, as rows of two positions, stand among those given; an error if one does not.

        Not to be asked if no links are given.
        """
        assert self.links is not None
        key = self.links.a.astype(np.int64) * self.size + self.links.b
        wanted = ends.min(axis=1).astype(np.int64) * self.size + ends.max(axis=1)
        at = places_among(key, wanted)
        for a, b in ends[at == NONE]:
            one, other = self.brokers[int(a)].as_py(), self.brokers[int(b)].as_py()
            what = f"brokers {one!r} and {other!r} are linked, but no such link is given"
            raise InputError(Problem("tree", what, "Use only the given links"))
        return at

    def latencies(self, ends: Ints) -> Floats:
        """Delay of each link in ms; 1, a hop, where no links are given."""
        return np.ones(len(ends)) if self.links is None else self.links.latency_ms[self.given(ends)]


@dataclass(frozen=True, eq=False)
class ClientProblem:
    """What clients are allocated to brokers from (Tajuddin 2011, chapter 6).

    Publishers and subscribers are numbered apart. ``rates`` are publications per second of each
    publisher. ``interest[p, s]`` (Eq. 4.6 summed over the regions) is the expected share of the
    messages of p that s wants; ``common[s, t]`` the overlap of two subscribers, symmetric.
    ``routes`` has traffic from publishers to sets of subscribers: here ``source`` is a publisher
    and ``brokers`` are subscribers.
    """

    publishers: pa.Array
    subscribers: pa.Array
    rates: Floats
    interest: scipy.sparse.csr_array
    common: scipy.sparse.csr_array
    routes: Routes
    brokers: pa.Array
    capacity: Floats
    cost: Floats
    seconds: float
    source: str


def no_similarity(brokers: int) -> Similarity:
    """Nobody is like anybody."""
    nothing = scipy.sparse.csr_array((brokers, brokers), dtype=np.float64)
    return Similarity(nothing, nothing, nothing)
