"""What every command needs to run: an engine for Spark, and errors in the words of its flags."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from fanplan.errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from fanplan.api import Engine


def engine(master: str | None, remote: str | None, quiet: bool) -> Engine:
    from fanplan.api import Engine
    from fanplan.progress import progress

    return Engine(master, remote, progress(quiet))


@contextmanager
def named_by_flag(flags: Mapping[str, str]) -> Iterator[None]:
    """Errors about options name the flags."""
    try:
        yield
    except InputError as error:
        problems = [replace(p, where=flags.get(p.where, p.where)) for p in error.problems]
        raise InputError(problems) from None
    except InfeasibleError as error:
        where = flags.get(error.problem.where, error.problem.where)
        raise InfeasibleError(
            error.limit, error.value, replace(error.problem, where=where)
        ) from None


@contextmanager
def rehearsing() -> Iterator[subprocess.Popen[bytes]]:
    """Beside a design: another process compiles its kernels while Spark has the data in hand."""
    words = (sys.executable, "-P", "-m", "fanplan.planners.rehearsal")
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
