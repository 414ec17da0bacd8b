"""When a planner must stop searching. A planner asks between steps and keeps its best answer."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from fanplan.core.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.core.progress import StageProgress


SOON = 1e-3
"""Seconds after which a search ends that has no time left."""


class Stop(Protocol):
    """Asked with the best cost so far; true ends the search."""

    def __call__(self, best_cost: float, /) -> bool: ...


def never(_best_cost: float) -> bool:
    """Let the planner run to its own end."""
    return False


class TimeLimit:
    """Stop after ``seconds`` of wall time, counted from the first question."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deadline: float | None = None

    def __call__(self, _best_cost: float) -> bool:
        return self.left() <= 0

    def left(self) -> float:
        """Seconds that are left; the first question starts the clock."""
        now = time.monotonic()
        if self.deadline is None:
            self.deadline = now + self.seconds
        return self.deadline - now


TERMINATED = 128 + signal.SIGTERM
"""The exit code of what was asked to end."""


class Terminated(SystemExit):
    """A request to end, as an error like Ctrl-C: all that is under way is cleaned up."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


class Heard:
    """The signal that a command was stopped by.

    What is raised for it may get lost, in a finaliser or in a library that makes another error of
    it. Whatever error comes later comes from that.
    """

    signal: int | None = None
    ended_spark = False
    """Whether Spark was ended for it: then nobody needs to hear it again."""

    @classmethod
    def forget(cls) -> None:
        """Another command begins."""
        cls.signal, cls.ended_spark = None, False


def terminate(number: int, _frame: FrameType | None) -> None:
    Heard.signal = number
    raise Terminated


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Ctrl-C, as Python has it, but remembered."""
    Heard.signal = number
    raise KeyboardInterrupt


@contextmanager
def ended_by_term() -> Iterator[None]:
    """Within the block a request to end is raised; only the main thread can hear one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class FileStop:
    """Stop when a file appears: how a driver tells tasks elsewhere that share a folder with it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, _best_cost: float) -> bool:
        return self.path.exists()


class Interrupt:
    """Stop at Ctrl-C: inside ``with``, the first one ends the search, the second the program.

    A Spark session that starts meanwhile sets what Ctrl-C does to its jobs. The search takes that
    back when it asks.
    """

    def __init__(self) -> None:
        self.asked = False
        self.previous: Any = None

    def __call__(self, _best_cost: float) -> bool:
        here = threading.current_thread() is threading.main_thread()
        if here and not self.asked and signal.getsignal(signal.SIGINT) != self.ask:
            signal.signal(signal.SIGINT, self.ask)
        return self.asked

    def __enter__(self) -> Interrupt:
        self.previous = signal.signal(signal.SIGINT, self.ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self.previous)

    def ask(self, number: int, _frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, self.previous)


class AnyOf:
    """Stop as soon as one of several says so."""

    def __init__(self, *stops: Stop) -> None:
        self.stops = stops

    def __call__(self, best_cost: float) -> bool:
        return any(stop(best_cost) for stop in self.stops)

    def left(self) -> float:
        return min((seconds_left(stop) for stop in self.stops), default=math.inf)


def seconds_left(stop: Stop) -> float:
    """Seconds until a stop ends the search, as far as it knows."""
    left = getattr(stop, "left", None)
    return math.inf if left is None else float(left())


def part_of(stop: Stop, share: float) -> Stop:
    """Ends a part of a search, which may take a share of the time that is left from now on."""
    seconds = seconds_left(stop)
    if math.isinf(seconds):
        return stop
    limit = TimeLimit(share * seconds)
    limit.left()
    return AnyOf(stop, limit)


class Watch:
    """Ends a search by time or when asked; remembers which, and tells the best cost.

    ``part_ended`` says what ended a part that had a watch of its own.
    """

    def __init__(self, time: float | None, stop: Stop | None) -> None:
        if time is not None and not time > 0:
            raise InputError(
                Problem("time", f"{time} seconds is not a time limit", "Use a positive number")
            )
        self.time = time
        self.limit = never if time is None else TimeLimit(time)
        self.asked = stop or never
        self.ended: str | None = None
        self.part_ended: str | None = None
        self.stage: StageProgress | None = None

    def left(self) -> float:
        """Seconds that are left; infinite if time is not limited."""
        return seconds_left(self.limit)

    @contextmanager
    def part(self, share: float) -> Iterator[Watch]:
        """A watch for a part of the search, which may take a share of the time that is left."""
        seconds = self.left()
        # A limit of nothing would be none at all.
        own = Watch(max(share * seconds, SOON) if math.isfinite(seconds) else None, self.asked)
        try:
            yield own
        finally:
            self.part_ended = self.part_ended or own.ended

    @property
    def early(self) -> str | None:
        """What ended the search, or a part of it, early."""
        return self.ended or self.part_ended

    def telling(self, stage: StageProgress) -> Watch:
        self.stage = stage
        return self

    def asked_to_stop(self, best_cost: float) -> bool:
        """Whether somebody asked, whatever the time: tasks elsewhere watch their own clocks."""
        if self.asked(best_cost):
            self.ended = "interrupt"
        return self.ended is not None

    def __call__(self, best_cost: float) -> bool:
        if self.stage is not None and math.isfinite(best_cost):
            self.stage.update(best=best_cost)
        if not self.asked_to_stop(best_cost) and self.limit(best_cost):
            self.ended = "time limit"
        return self.ended is not None
