"""What a command says when it fails: a sentence on stderr, with --json an object on stdout."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from signal import SIGINT, SIGTERM

import typer

from fanplan.cli.show import say, show_json
from fanplan.core.errors import FanplanError, InputError, MachineError, Problem
from fanplan.core.failures import explained, of_spark, spark_gone
from fanplan.core.stop import Heard, Terminated

TRACEBACK = "FANPLAN_TRACEBACK"
"""Set this in the environment to see the stack trace of a failure."""


class StoppedError(FanplanError):
    """Somebody ended the command."""

    def __init__(self, exit_code: int, by: str) -> None:
        self.exit_code = exit_code
        super().__init__(Problem("stopped", by, "Run it again: nothing is left half-done"))


def show_error(error: BaseException, json: bool) -> int:
    """Tell what went wrong; the exit code."""
    if isinstance(error, SystemExit) and not isinstance(error, Terminated) and not Heard.signal:
        return error.code if isinstance(error.code, int) else 1
    failed = as_our_error(error)
    if os.environ.get(TRACEBACK):
        say(*"".join(traceback.format_exception(error)).splitlines(), err=True)
    for line in map(str, failed.problems or str(failed).splitlines()):
        say(f"fanplan: {line}", err=True)
    if json:
        show_json(failed.json())
    return failed.exit_code


def as_our_error(error: BaseException) -> FanplanError:
    """Any error as one of ours."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return StoppedError(128 + SIGINT, "by Ctrl-C")
        case Terminated():
            return StoppedError(int(str(error.code)), "by a request to end")
    if Heard.signal is not None:
        # Whatever it is, it came from that.
        return as_our_error(Terminated() if Heard.signal == SIGTERM else KeyboardInterrupt())
    if isinstance(error, typer.TyperException):
        return usage(error)
    cause = error.__cause__ if isinstance(error, MachineError) else None
    if cause is not None and of_spark(cause):
        error = cause
    jvm = sys.modules.get("fanplan.data.jvm")
    if not isinstance(error, FanplanError) and jvm is not None and not jvm.alive():
        # What Python meets then may be anything.
        return spark_gone()
    return explained(error) or defect(error)


def usage(error: typer.TyperException) -> FanplanError:
    """A command or flag that is not known, or is used wrongly; no words if help was shown."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fanplan"
    where = path.removeprefix("fanplan").strip() or "command"
    problem = Problem(where, message.strip().rstrip(".?"), f"See {path} --help")
    return InputError(problem if message else ())


def defect(error: BaseException) -> MachineError:
    """What Fanplan did not expect. The stack trace goes into a file, for a report."""
    said = traceback.format_exception_only(error)[-1].strip().splitlines()
    return MachineError(
        Problem("an unexpected error", said[0] if said else type(error).__name__, kept_trace(error))
    )


def kept_trace(error: BaseException) -> str:
    """Where the stack trace is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="fanplan-error-", suffix=".txt", encoding="utf-8", delete=False
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"Set {TRACEBACK}=1 to see the details, and report them"
    return f"Please report it, with the details in {file.name}"
