"""Where `fanplan` begins and ends: whoever stops it, at whatever moment, sees no stack trace.

Nothing that takes time is imported before signals are seen to and the JVM that Spark may need is
under way. After the command nothing is left: no Spark, no temporary folder.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

STOPPED = {signal.SIGINT, signal.SIGTERM}
SOON = 0.05
"""Seconds until a signal that got lost is heard again: what lost it has ended by then."""
STREAMS = ("stdin", "stdout", "stderr")


def main() -> None:
    """Run the command of this process and end with its exit code."""
    for number in STOPPED:
        signal.signal(number, leave_at_once)
    open_streams()
    from fanplan.data import jvm_ahead

    # All that follows takes a second or two, and so does a JVM.
    jvm_ahead.begin(sys.argv[1:])
    from fanplan.cli.app import run
    from fanplan.core.stop import interrupt

    sys.unraisablehook = heard_again
    signal.signal(signal.SIGINT, interrupt)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # While an error was being told.
        code = 128 + signal.SIGINT
    for number in STOPPED:
        signal.signal(number, signal.SIG_IGN)
    end_spark(at_once=code > 1)
    jvm_ahead.end_begun()
    end_python(code)


def leave_at_once(number: int, _frame: FrameType | None) -> None:
    """At most a JVM has begun, and that ends with this process."""
    os._exit(128 + number)


def heard_again(lost: sys.UnraisableHookArgs) -> None:
    """A signal is heard again if it came where Python drops what is raised, as after an import."""
    from fanplan.core.stop import Heard, Terminated

    numbers = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}
    number = numbers.get(lost.exc_type)
    if number is None:
        sys.__unraisablehook__(lost)
    # Whoever ended Spark for it needs no other.
    elif not Heard.ended_spark and (main := threading.main_thread().ident):
        threading.Timer(SOON, signal.pthread_kill, (main, number)).start()


def open_streams() -> None:
    """Streams that are there, even if the caller closed them, and that bear what befalls them."""
    for number in range(len(STREAMS)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)
    for number, name in enumerate(STREAMS[1:], 1):
        raw = Outlet(number, "wb", closefd=False)
        lines = raw.isatty() or number == 2
        text = io.TextIOWrapper(
            io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=lines
        )
        setattr(sys, name, text)


class Outlet(io.FileIO):
    """A stream to a reader who may go away: then nobody hears the rest, and the work goes on.

    If it cannot be written for another reason that is told on stderr, where nobody else is left to
    be told.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError) or self.fileno() == 2:
                return len(data)
            from fanplan.core.failures import of_system

            raise of_system("stdout", error, "cannot be written") from error


def end_python(code: int) -> NoReturn:
    """End at once: to take apart all that was imported takes Python a quarter of a second."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # What cannot be written was told when it was said.
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def end_spark(at_once: bool) -> None:
    """End Spark if it was started."""
    sparks = sys.modules.get("fanplan.data.spark")
    if sparks is not None:
        sparks.kill() if at_once else sparks.stop()
