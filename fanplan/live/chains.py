"""Messages of a flow in the order of their source, if that keeps them: what was lost is asked for.

Such a message tells the number of the one before it in its flow. If that did not come, the message
waits with all that follow, and the source is asked for what is missing.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from fanplan.live.message import GONE, LAST, Message
from fanplan.live.transport import Range

FIRST_SECONDS, MOST_SECONDS = 0.05, 2.0
"""A source is asked after this long, then again after twice as long each time, up to a limit."""
GIVEN_UP_SECONDS = 60.0
"""What was not sent again for this long is given up: its source has ended."""
MOST_HELD = 1 << 16
"""Messages of a flow that wait; when there are more, what is missing is given up."""

Key = tuple[bytes, int, int, str]
"""A flow of a source: epoch, source, flow, and the topic for what has no flow."""
Ask = Callable[[bytes, int, Sequence[Range]], Awaitable[None]]


@dataclass
class Gap:
    """Messages that wait for one that is missing, and since when."""

    held: list[Message] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    @property
    def first(self) -> int:
        """The number of the message that the first of those that wait follows."""
        return min(each.header.sequence for each in self.held)


class Chains:
    """The flows of one subscriber. ``on_free`` gets what had to wait; ``given_up`` counts gaps."""

    def __init__(self, ask: Ask, on_free: Callable[[Message], None]) -> None:
        self._ask, self._on_free = ask, on_free
        self._last: dict[Key, int] = {}
        self._gaps: dict[Key, Gap] = {}
        self._asking: asyncio.Task[None] | None = None
        self.given_up = 0

    def take(self, message: Message, whole: bool) -> None:
        """Hand on a message, or let it wait.

        ``whole``: all was heard since the plan began, so that also the first one may miss some.
        """
        header = message.header
        if header.channel == GONE:
            self._gone(header.epoch, header.source, header.sequence, header.number)
            return
        key = header.epoch, header.source, header.flow, message.topic
        last = self._last.setdefault(key, 0 if whole else header.sequence)
        if header.sequence > last:
            self._wait(key, message)
        else:
            self._pass(key, message)
            if key in self._gaps:
                self._go_on(key)

    def missing(self, epoch: bytes, source: int) -> bool:
        """Whether something of a source in an epoch did not come yet."""
        return any(key[:2] == (epoch, source) for key in self._gaps)

    def forget(self, epoch: bytes) -> None:
        """An epoch is over: what waits goes on as it is."""
        for key in [key for key in self._gaps if key[0] == epoch]:
            self._give_up(key, self._gaps[key].held[-1].header.number)
        self._last = {key: last for key, last in self._last.items() if key[0] != epoch}

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    # ---- what waits

    def _pass(self, key: Key, message: Message) -> None:
        self._last[key] = max(self._last[key], message.header.number)
        if message.header.channel != LAST:
            self._on_free(message)

    def _wait(self, key: Key, message: Message) -> None:
        gap = self._gaps.setdefault(key, Gap())
        gap.held.append(message)
        if len(gap.held) > MOST_HELD:
            self._give_up(key, gap.first)
        elif self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_for_all())

    def _go_on(self, key: Key) -> None:
        """Hand on what need not wait any longer."""
        held = sorted(self._gaps.pop(key).held, key=lambda each: each.header.number)
        for at, each in enumerate(held):
            if each.header.sequence > self._last[key]:
                self._gaps[key] = Gap(held[at:])
                return
            self._pass(key, each)

    def _give_up(self, key: Key, number: int) -> None:
        """What is missing up to a number will not come."""
        self.given_up += 1
        self._last[key] = max(self._last[key], number)
        self._go_on(key)

    def _gone(self, epoch: bytes, source: int, first: int, number: int) -> None:
        for key, gap in [*self._gaps.items()]:
            if key[:2] == (epoch, source) and gap.first == first:
                self._give_up(key, number)

    # ---- asking

    async def _ask_for_all(self) -> None:
        pause = FIRST_SECONDS
        while self._gaps:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MOST_SECONDS)
            for key in [k for k, gap in self._gaps.items() if late(gap)]:
                self._give_up(key, self._gaps[key].first)
            lost: dict[tuple[bytes, int], list[Range]] = defaultdict(list)
            for key, gap in self._gaps.items():
                lost[key[:2]].append((self._last[key], gap.first))
            for (epoch, source), ranges in lost.items():
                await self._ask(epoch, source, ranges)


def late(gap: Gap) -> bool:
    return time.monotonic() - gap.since > GIVEN_UP_SECONDS
