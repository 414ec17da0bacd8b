"""Whether every publication reaches whom it must, once; and what happens meanwhile, counted.

The audit sees what was asked, in which order the root took it, and what arrived. It reads no table
of any broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fanplan.core.errors import CheckError
from fanplan.layers.groups.protocol.messages import KINDS, OVERHEAD, Message, Update


@dataclass
class Owed:
    """A publication with the brokers that must get it and those that did."""

    route: int
    to: frozenset[int]
    got: set[int] = field(default_factory=set)


class Audit:
    """Each tree by itself. An update is *requested*, then *accepted* by the root, then *confirmed*.

    A publication is owed to the brokers that want its route by all updates that the root accepted
    before it sent the publication: to each of them once, and to nobody else.
    """

    def __init__(self, brokers: pa.Array) -> None:
        self.brokers = brokers
        self.owed: dict[tuple[int, int], Owed] = {}
        self.waiting = 0
        self._wants: dict[int, set[int]] = defaultdict(set)
        self._requested: dict[tuple[int, int], int] = defaultdict(int)
        self._accepted: dict[tuple[int, int], int] = defaultdict(int)
        self._confirmed: dict[tuple[int, int], int] = defaultdict(int)

    def entered(self) -> None:
        self.waiting += 1

    def requested(self, tree: int, update: Update) -> None:
        self._requested[tree, update.broker] = update.number

    def accepted(self, tree: int, update: Update) -> None:
        at = tree, update.broker
        self._step(self._accepted, self._requested[at], at, update.number, "accepted")
        for route in update.added:
            self._wants[route].add(update.broker)
        for route in update.dropped:
            self._wants[route].discard(update.broker)

    def confirmed(self, tree: int, update: Update) -> None:
        at = tree, update.broker
        self._step(self._confirmed, self._accepted[at], at, update.number, "in force")

    def ordered(self, tree: int, number: int, route: int) -> None:
        """The root sends a publication on."""
        self.waiting -= 1
        self.owed[tree, number] = Owed(route, frozenset(self._wants[route]))

    def delivered(self, tree: int, number: int, broker: int) -> None:
        owed = self.owed[tree, number]
        if broker not in owed.to:
            raise self._failure(tree, number, broker, "got it, but did not want it")
        if broker in owed.got:
            raise self._failure(tree, number, broker, "got it twice")
        owed.got.add(broker)

    def close(self) -> None:
        """Nothing is under way any more: all must have come."""
        if self.waiting:
            raise CheckError(f"{self.waiting} publications were never sent on by their root")
        for (tree, number), owed in self.owed.items():
            for broker in sorted(owed.to - owed.got)[:1]:
                raise self._failure(tree, number, broker, "wanted it, but never got it")
        for at, number in self._requested.items():
            if self._confirmed[at] != number:
                name = self.brokers[at[1]].as_py()
                raise CheckError(f"update {number} of broker {name!r} never came into force")

    def _step(
        self,
        done: dict[tuple[int, int], int],
        most: int,
        at: tuple[int, int],
        number: int,
        stage: str,
    ) -> None:
        """Updates of a broker go through every stage one by one, in order."""
        if number != done[at] + 1 or number > most:
            name = self.brokers[at[1]].as_py()
            what = f"is {stage} out of order, after {done[at]}"
            raise CheckError(f"update {number} of broker {name!r} {what}")
        done[at] = number

    def _failure(self, tree: int, number: int, broker: int, what: str) -> CheckError:
        name, route = self.brokers[broker].as_py(), self.owed[tree, number].route
        where = f"publication {number} of tree {tree}, on route {route}"
        return CheckError(f"{where}: broker {name!r} {what}. The same seed repeats the run")


class AuditCounts:
    """Counts; arrays have an entry per broker, summed over the trees.

    ``received``, ``matched``, ``arrived``, ``unwanted`` and ``delay`` are as in the ledger of
    groups, delays in ms from entry. ``entries`` are those of forwarding tables now,
    ``entries_most`` the most at one time. ``held_ms`` has how long publications were held at their
    root, ``accepted_ms`` how long updates took to be in force, ``rebuild_ms`` how long rebuilds.
    """

    def __init__(self, brokers: int) -> None:
        self.received, self.matched, self.arrived, self.unwanted, self.entries = np.zeros(
            (5, brokers), np.int64
        )
        self.delay = np.zeros(brokers)
        self.delay_most = 0.0
        self.entered = self.grouped = 0
        self.control: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """All so far was to set up: count control messages and what rebuilds do from now on."""
        self.set_up, self.control = self.control, Counter()
        self.entries_most = self.entries.copy()
        self.held_ms: list[float] = []
        self.accepted_ms: list[float] = []
        self.rebuild_ms: list[float] = []
        self.built = self.kept = self.evicted = 0

    @property
    def overhead(self) -> int:
        """Control messages that the paper counts."""
        return sum(self.control[kind] for kind in OVERHEAD)

    def sent(self, message: Message) -> None:
        kind = KINDS.get(type(message))
        if kind is not None:
            self.control[kind] += 1

    def delivered(self, broker: int, delay_ms: float) -> None:
        self.arrived[broker] += 1
        self.delay[broker] += delay_ms
        self.delay_most = max(self.delay_most, delay_ms)

    def kept_entries(self, broker: int, more: int) -> None:
        self.entries[broker] += more
        self.entries_most[broker] = max(self.entries_most[broker], self.entries[broker])
