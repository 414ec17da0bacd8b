"""Time, and links that keep the order of messages even if they lose and delay some."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from fanplan.layers.groups.protocol.messages import Message
from fanplan.layers.groups.protocol.params import GroupsChurn

Place = tuple[int, int]
"""A broker in a tree: (tree, broker)."""

TreeLink = tuple[Place, Place]
"""From the first to the second."""

ROUND_TRIPS = 2.0
"""A sender waits for this many of the longest round trips before it sends again."""


class OrderedLinks:
    """A queue of events, and a link between any two brokers that talk to each other.

    Messages of a link are numbered. A receiver takes them in order and each once; where messages
    get lost, it sends receipts, and the sender sends again what it has no receipt for.
    """

    def __init__(self, churn: GroupsChurn) -> None:
        self.latency_ms, self.loss, self.now, self.resent = churn.latency_ms, churn.loss, 0.0, 0
        self.receivers: dict[Place, Callable[[int, Message], None]] = {}
        self._rng = np.random.default_rng(churn.seed)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._sent: dict[TreeLink, int] = defaultdict(int)
        self._taken: dict[TreeLink, int] = defaultdict(int)
        self._early: dict[TreeLink, dict[int, Message]] = defaultdict(dict)
        self._open: set[tuple[TreeLink, int]] = set()

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (time, next(self._order), action, arguments))

    def run(self) -> None:
        """Until nothing is under way."""
        while self._events:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)

    def send(self, link: TreeLink, message: Message, after_ms: float) -> None:
        """Send a message in ``after_ms``; its place in the order of the link is taken now."""
        number = self._sent[link]
        self._sent[link] = number + 1
        if self.loss:
            self._open.add((link, number))
        self.at(self.now + after_ms, self._transmit, link, number, message)

    def _transmit(self, link: TreeLink, number: int, message: Message) -> None:
        self._post(self._arrive, link, number, message)
        if self.loss:
            patience = 2 * ROUND_TRIPS * self.latency_ms[1]
            self.at(self.now + patience, self._repeat, link, number, message)

    def _post(self, action: Callable[..., None], *arguments: Any) -> None:
        """Carry something over a link, unless it gets lost."""
        if self.loss and self._rng.random() < self.loss:
            return
        least, most = self.latency_ms
        self.at(self.now + least + (most - least) * self._rng.random(), action, *arguments)

    def _repeat(self, link: TreeLink, number: int, message: Message) -> None:
        if (link, number) in self._open:
            self.resent += 1
            self._transmit(link, number, message)

    def _arrive(self, link: TreeLink, number: int, message: Message) -> None:
        if self.loss:
            self._post(self._open.discard, (link, number))
        if self.is_new(link, number):
            self._early[link][number] = message
            self._take(link)

    def is_new(self, link: TreeLink, number: int) -> bool:
        """Whether a message is no repetition of one that has come."""
        return number >= self._taken[link] and number not in self._early[link]

    def _take(self, link: TreeLink) -> None:
        early, (sender, receiver) = self._early[link], link
        while self._taken[link] in early:
            message = early.pop(self._taken[link])
            self._taken[link] += 1
            self.receivers[receiver](sender[1], message)
