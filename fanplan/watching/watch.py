"""Watch: follow a stream, keep the plan that fits it, and carry its changes out if asked to."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import write_whole
from fanplan.core.processes import process_state
from fanplan.data.dataset import PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.registry import load_plan
from fanplan.verbs.given import AnyPlan, in_our_words, plan_at
from fanplan.watching.params import WatchParams

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.watching.apply import Applier
    from fanplan.watching.follow import Following
    from fanplan.watching.state import State

NATS = "nats://"
OLD_JVM_SECONDS = 60.0


@dataclass(frozen=True)
class Watched:
    """What a watch came to: the plan in force, all versions, and what was read."""

    state: Path
    version: int
    plan: Path
    windows: int
    counts: dict[str, int]
    versions: tuple[dict[str, Any], ...]

    def json(self) -> dict[str, Any]:
        told = {"state": str(self.state), "version": self.version, "plan": str(self.plan)}
        told |= {"windows": self.windows, **self.counts}
        return told | {"versions": list(self.versions)}


class Watching(TypedDict, total=False):
    """What can be asked of watch: the fields of its parameters."""

    gap: float
    patience: int
    churn: int | None
    change_price: float | None
    window: float
    half_life: float
    lateness: float
    ahead: float
    files: int
    once: bool
    apply: str | None
    monitor: Sequence[str]
    page: int | None


@in_our_words
def watch(
    plan: AnyPlan,
    stream: PathLike,
    state: PathLike,
    *,
    workload: PathLike | None = None,
    applier: Applier | None = None,
    ended: Callable[[], bool] = lambda: False,
    engine: Engine = EMBEDDED,
    **options: Unpack[Watching],
) -> Watched:
    """Follow a stream of publications and of changes of subscriptions with a plan.

    ``stream`` is a workload folder whose folders ``publications`` and ``changes`` grow, or
    ``nats://HOST:PORT/STREAM``, a JetStream stream, with the ``workload`` beside it. All that is
    found goes into the folder ``state``, from which a later run goes on. It runs until ``ended``
    says so, or with ``once`` until all that is there has been followed. New plans are carried out
    by ``applier``, if there is one. Options are the fields of
    `fanplan.watching.params.WatchParams`.
    """
    params, source = WatchParams.given(options), str(stream)
    from fanplan.watching.apply import Switching
    from fanplan.watching.follow import Following, require_followed
    from fanplan.watching.measured import meter_of
    from fanplan.watching.state import State

    if params.apply is not None:
        applier = Switching(Path(params.apply), engine)
    meter = meter_of(params.monitor, params.apply, params.window)
    home = workload_of(source, workload)
    follower = Following(load_plan(plan_at(plan)), home, State(Path(state)), params, engine)
    require_followed(follower.plan, home, follower.description)
    _ = follower.planning  # A plan that cannot be followed is refused before Spark starts.
    with follower.state.held(), jvm_named(follower.state, engine), ExitStack() as stack:
        follower.begin()
        if params.page is not None:
            from fanplan.watching.page import served

            if meter is not None:
                stack.enter_context(meter.looking())
            stack.enter_context(served(follower.state, params.page, meter))
        follow_stream(follower, source, applier, ended)
        return watched(follower.state)


def workload_of(source: str, workload: PathLike | None) -> Path:
    """The workload that a stream is of."""
    if workload is None and source.startswith(NATS):
        what = "a stream does not say who subscribes, nor what attributes there are"
        raise InputError(Problem("workload", what, "Name the workload that was planned for"))
    home = Path(source if workload is None else workload)
    if not home.is_dir():
        raise InputError(Problem(str(home), "is not a folder", "Name the folder of a workload"))
    return home


def follow_stream(
    follower: Following, source: str, applier: Applier | None, ended: Callable[[], bool]
) -> None:
    """Batch after batch; versions are carried out when the batch that made them counts."""
    from fanplan.data.stream.files import follow_files, paths_in, run_batches
    from fanplan.watching.apply import enact_versions

    state, params, engine = follower.state, follower.params, follower.engine
    spark = engine.session()
    told: AbstractContextManager[None] = nullcontext()
    if source.startswith(NATS):
        from fanplan.data.stream.nats import follow_nats, gaps_told, spooled

        frame, told = follow_nats(spark, source), gaps_told(source)
        spool = state.folder / "spool"
    else:
        require_growing(Path(source))
        frame = follow_files(spark, Path(source), ("publications", "changes"), params.files)
        spool = None

    def handle(rows: pa.Table, number: int) -> None:
        folder = (Path(source) if spool is None else spool).absolute()
        files = paths_in(rows) if spool is None else spooled(rows, folder, number)
        follower.advance(number, files, folder)
        if applier is not None:
            enact_versions(state, applier)

    if applier is not None:
        enact_versions(state, applier)
    with told:
        run_batches(frame, state.checkpoint, handle, params.once, ended)


def require_growing(folder: Path) -> None:
    """A folder that publications can come into."""
    if not (folder / "publications").is_dir():
        what = "has no folder publications, into which files could come"
        raise InputError(Problem(str(folder), what, "Make it, and put publications there"))


def watched(state: State) -> Watched:
    last = state.last()
    windows = len(state.decisions())
    plan = state.version(last.version) / "plan"
    versions = tuple(state.versions())
    return Watched(state.folder, last.version, plan, windows, last.counts, versions)


# ---- the JVM of a run that was killed


@contextmanager
def jvm_named(state: State, engine: Engine) -> Iterator[None]:
    """Keep the number of Spark's process, which may outlive a killed run for some seconds."""
    path = state.folder / "jvm.json"
    if path.is_file():
        wait_until_gone(json.loads(path.read_text(encoding="utf-8"))["pid"])
    engine.session()
    from fanplan.data import jvm

    if jvm.pid() is not None:
        write_whole(path, json.dumps({"pid": jvm.pid()}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def wait_until_gone(pid: int) -> None:
    """Two processes must not write one checkpoint; a number taken anew is no Java."""
    deadline, pause = time.monotonic() + OLD_JVM_SECONDS, threading.Event()
    while is_java(pid):
        if time.monotonic() > deadline:
            what = f"Spark of an earlier run still works there (process {pid})"
            raise InputError(Problem("state", what, "End that process"))
        pause.wait(0.1)


def is_java(pid: int) -> bool:
    """Whether a process of that number runs Java; this one's own Spark does not count."""
    from fanplan.data import jvm

    if pid in (os.getpid(), jvm.pid()):
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"java" in words and bool(process_state(pid))
