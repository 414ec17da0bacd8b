"""What the layers of a node have in common: they hear entries, work, and say entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from fanplan.layers.marking.protocol.messages import Key, MarkingClient

CLIENT, WAKE = "client", "wake"
"""What a node notices beside the kinds of entries: its own clients, and the time."""

Says = dict[int, dict[Key, Any]]
"""Entries for each neighbour."""


class NodeClock(Protocol):
    """The time, a way to be woken later, and a place to note what is counted."""

    now: float

    def wake(self, node: int, time_ms: float) -> None: ...

    def elected(self) -> None: ...

    def solved(self, links: int) -> None: ...


@dataclass
class LocalView:
    """All that a node knows without being told: itself, its clients and its neighbours.

    ``sending`` is the price of a descriptor on the link with each neighbour, ``storing`` that of
    keeping one at the node itself and at each neighbour.
    """

    node: int
    sending: dict[int, float]
    storing: dict[int, float]
    clock: NodeClock
    published: dict[int, MarkingClient] = field(default_factory=dict)
    subscribed: dict[int, MarkingClient] = field(default_factory=dict)

    def gain(self, tail: int, head: int, sigma: int, tau: int) -> float:
        """What a link of this node saves as an s-link, by its counts (the paper's η)."""
        sending = self.sending[head if tail == self.node else tail]
        return sigma * (sending + self.storing[head]) - tau * (sending + self.storing[tail])


class HeardFrom:
    """What neighbours told a node, by kind, neighbour and name."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[int, dict[Any, Any]]] = {}

    def of(self, kind: str) -> dict[int, dict[Any, Any]]:
        """Entries of a kind: those of each neighbour by name."""
        return self.entries.get(kind, {})

    def all(self) -> Iterator[tuple[Key, Any]]:
        """Every entry, as often as neighbours told it."""
        for kind, told in self.entries.items():
            for names in told.values():
                yield from (((kind, name), value) for name, value in names.items())

    def put(self, neighbour: int, key: Key, value: Any) -> bool:
        """Keep a value, or drop it if None; whether that is new."""
        names = self.entries.setdefault(key[0], {}).setdefault(neighbour, {})
        if names.get(key[1]) == value:
            return False
        if value is None:
            del names[key[1]]
        else:
            names[key[1]] = value
        return True

    def forget(self, neighbour: int) -> list[str]:
        """Drop all that a neighbour told; the kinds of it."""
        return [kind for kind, told in self.entries.items() if told.pop(neighbour, None)]


class NodeLayer(ABC):
    """A part of a node's work.

    ``work`` derives from what is known, heard and worked out below what is said to each neighbour,
    all of it, and returns whether anything changed that layers above use. It is called when an
    entry of a kind in ``hears`` changed, or when the layer is ``stale``.
    """

    hears: frozenset[str] = frozenset()

    def __init__(self, local: LocalView, heard: HeardFrom) -> None:
        self.local, self.heard = local, heard
        self.says: Says = {}
        self.changed = False

    def stale(self) -> bool:
        """Whether a layer below changed."""
        return False

    @abstractmethod
    def work(self) -> bool:
        """See above."""

    def say(self, neighbour: int | None, key: Key, value: object) -> None:
        """Put an entry for a neighbour; None is the node itself, which needs no telling."""
        if neighbour is not None:
            self.says.setdefault(neighbour, {})[key] = value
