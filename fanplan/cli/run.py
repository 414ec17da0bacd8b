"""What every command needs to run: an engine for Spark, and errors in the words of its flags."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.cli.flags import flags_named
from fanplan.core.errors import InfeasibleError, InputError, MachineError
from fanplan.core.owned import started, undisturbed
from fanplan.core.version import PACKAGE
from fanplan.data.params import ReadParams

if TYPE_CHECKING:
    from fanplan.api import Dataset, Engine
    from fanplan.plan.stored import StoredPlan


def engine(master: str | None, remote: str | None, quiet: bool) -> Engine:
    from fanplan.api import Engine
    from fanplan.core.progress import progress

    return Engine(master, remote, progress(quiet))


@contextmanager
def named_by_flag(flags: Mapping[str, str]) -> Iterator[None]:
    """Errors about options name the flags."""
    try:
        yield
    except (InputError, MachineError) as error:
        problems = [replace(p, where=flags.get(p.where, p.where)) for p in error.problems]
        raise type(error)(problems) from error.__cause__
    except InfeasibleError as error:
        where = flags.get(error.problem.where, error.problem.where)
        raise InfeasibleError(
            error.limit, error.value, replace(error.problem, where=where)
        ) from None


@contextmanager
def dataset_of(
    plan: Path,
    workload: Path,
    engine: Engine,
    lost_limit: float | None,
    require: Callable[[StoredPlan], object] | None = None,
) -> Iterator[Dataset]:
    """The dataset of a plan, for a command that ingests a workload on the way.

    ``require`` raises before that if the plan will not do.
    """
    from fanplan import api

    asked = {"lost_limit": lost_limit}
    with (
        named_by_flag(flags_named(ReadParams)),
        api.dataset_of_plan(plan, workload, engine, asked, require) as dataset,
    ):
        yield dataset


REHEARSED = ("brokers", "delivery")
"""Parts of a rehearsal."""


@contextmanager
def rehearsing(stamps: Path = PACKAGE / "__pycache__") -> Iterator[list[subprocess.Popen[bytes]]]:
    """Beside a design: other processes compile its kernels while Spark has the data in hand.

    Each leaves a stamp. A part is not rehearsed again before a source changes.
    """
    changed = max(file.stat().st_mtime for file in PACKAGE.rglob("*.py"))
    files = {part: stamps / f"rehearsed-{part}" for part in REHEARSED}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for part, file in files.items():
            if not file.is_file() or file.stat().st_mtime < changed:
                with undisturbed():
                    processes.append(silent("fanplan.verbs.rehearsal", part, str(file)))
        yield processes
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def silent(*words: str) -> subprocess.Popen[bytes]:
    """A module of Fanplan in a process that tells nothing."""
    command = (sys.executable, "-P", "-m", *words)
    nowhere = subprocess.DEVNULL
    return started(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
