"""Time, and links that keep the order of messages even if they lose and delay some."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.protocol.messages import Message

Place = tuple[int, int]
"""A broker in a tree: (tree, broker)."""

TreeLink = tuple[Place, Place]
"""From the first to the second."""

ROUND_TRIPS = 2.0
"""A sender waits for so many of the longest round trips before it sends again."""


@dataclass(frozen=True)
class LinkParams:
    """Each message takes from ``least_ms`` to ``most_ms``, drawn evenly, on a link or a shortcut.

    ``loss`` is the chance that a message, or the receipt for one, gets lost.
    """

    least_ms: float = 1.0
    most_ms: float = 10.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.least_ms <= self.most_ms < math.inf:
            what = f"{self.least_ms} to {self.most_ms} ms is no range of times"
            problems.append(Problem("latency", what, "Give two times from 0, the lesser one first"))
        if not 0 <= self.loss < 1:
            problems.append(Problem("loss", f"{self.loss} is no such share", "Give 0 to below 1"))
        if self.loss and not self.most_ms:
            what = "messages get lost, but none takes time"
            problems.append(Problem("loss", what, "Give a latency above 0"))
        if problems:
            raise InputError(problems)


class OrderedLinks:
    """A queue of events, and a link between any two brokers that talk to each other.

    Messages of a link are numbered. A receiver takes them in order and each once; where messages
    get lost, it sends receipts, and the sender sends again what it has no receipt for.
    """

    def __init__(self, params: LinkParams, seed: int) -> None:
        self.params, self.now, self.resent = params, 0.0, 0
        self.receivers: dict[Place, Callable[[int, Message], None]] = {}
        self._rng = np.random.default_rng(seed)
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
        if self.params.loss:
            self._open.add((link, number))
        self.at(self.now + after_ms, self._transmit, link, number, message)

    def _transmit(self, link: TreeLink, number: int, message: Message) -> None:
        self._post(self._arrive, link, number, message)
        if self.params.loss:
            patience = 2 * ROUND_TRIPS * self.params.most_ms
            self.at(self.now + patience, self._repeat, link, number, message)

    def _post(self, action: Callable[..., None], *arguments: Any) -> None:
        """Carry something over a link, unless it gets lost."""
        least, most, loss = self.params.least_ms, self.params.most_ms, self.params.loss
        if loss and self._rng.random() < loss:
            return
        self.at(self.now + least + (most - least) * self._rng.random(), action, *arguments)

    def _repeat(self, link: TreeLink, number: int, message: Message) -> None:
        if (link, number) in self._open:
            self.resent += 1
            self._transmit(link, number, message)

    def _arrive(self, link: TreeLink, number: int, message: Message) -> None:
        if self.params.loss:
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
