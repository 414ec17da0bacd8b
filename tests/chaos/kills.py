"""Commands that are killed at random moments: the last good state stays, and nothing else."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fanplan
from chaos.count import Part
from chaos.runs import Run, digest, finish

KILL, TERM, INT = signal.SIGKILL, signal.SIGTERM, signal.SIGINT
HITS = {
    ("driver", KILL): -KILL,
    ("driver", TERM): 143,
    ("driver", INT): 130,
    ("group", INT): 130,
    ("jvm", KILL): 3,
    ("worker", KILL): 3,
    ("executor", KILL): 0,
}
"""What is hit by which signal, and how the command then ends unless it was done already.

A terminal sends Ctrl-C to the whole group of processes. A cluster replaces executors.
"""
SEARCHES = ("design", "channels")
"""Commands that keep the best plan so far at the first Ctrl-C."""
AT_A_TIME = 2
"""Commands that are attacked side by side: most of each is the work of one core."""
IN_A_ROW = 4
"""Kills of a command before it may run to its end."""


@dataclass(frozen=True)
class Case:
    """A command, the folder that it writes, where an older one lies, and what can be hit."""

    name: str
    words: tuple[str, ...]
    out: str | None
    hit: tuple[str, ...]


PLAIN = ("driver", "group")
SPARK = (*PLAIN, "jvm", "worker")


def spark_cases(where: tuple[str, ...], hit: tuple[str, ...] = SPARK) -> list[Case]:
    """What is killed, with what `prepare` has made for it."""
    ingest = ("ingest", "newer", "--out", "ingested", *where)
    return [
        Case("ingest", ingest, "ingested", hit),
        Case("replay", ("replay", "plan", "dataset", *where), None, hit),
    ]


def plan_cases(where: tuple[str, ...]) -> list[Case]:
    """Commands that find all stages there, and so need no Spark."""

    def case(name: str, out: str, *words: str) -> Case:
        return Case(name, (name, *words, "--out", out, "--replace", *where), out, PLAIN)

    return [
        case("design", "designed", "dataset", "--channels", "6", "--seed", "1"),
        case("channels", "channelled", "dataset", "--channels", "4"),
        case("report", "reported", "plan", "--workload", "dataset"),
        case("diff", "changed", "plan", "before", "dataset"),
    ]


ALL = ("ingest", "replay", "design", "channels", "report", "diff")


def prepare(folder: Path, engine: fanplan.Engine, names: Collection[str] = ALL) -> None:
    """What commands read, and an older state of each folder that they write."""
    size: dict[str, Any] = {"sites": 2, "users": 30, "flows": 24, "publications": 3000}
    for name, seed in (("older", 1), ("newer", 2)):
        fanplan.generate("enterprise", folder / name, seed=seed, engine=engine, **size)
    dataset = fanplan.ingest(folder / "older", folder / "dataset", engine=engine)
    fanplan.channels(dataset, 3).save(folder / "channelled")
    shutil.copytree(folder / "dataset", folder / "ingested")
    if {*names} <= {"ingest", "channels"}:
        return
    for name, channels in (("plan", 6), ("before", 3)):
        fanplan.design(dataset, channels=channels, engine=engine).save(folder / name)
    fanplan.diff(folder / "before", folder / "plan", dataset, engine=engine).save(
        folder / "changed"
    )
    fanplan.report(folder / "before", folder / "reported", workload=dataset, engine=engine)
    shutil.copytree(folder / "plan", folder / "designed")


def attack(
    folder: Path,
    found: Iterable[Case],
    kills: int,
    seed: int,
    environment: dict[str, str],
    executors: Callable[[], int | None] | None = None,
) -> list[Part]:
    """Kill each command so often at random moments, let it end now and then, and compare.

    Two at a time, each in a copy of the folder; on a cluster one, as it has all executors.
    """

    def attack_copy(number: int, case: Case) -> Part:
        here = folder.with_name(f"{folder.name}-{number}-{case.name}")
        shutil.copytree(folder, here)
        draw, nobody = random.Random(seed + number), lambda: None
        part = attack_case(here, case, kills, draw, environment, executors or nobody)
        shutil.rmtree(here)
        return part

    with ThreadPoolExecutor(1 if executors else AT_A_TIME) as pool:
        cases = [*found]
        return [*pool.map(attack_copy, range(len(cases)), cases)]


def attack_case(
    folder: Path,
    case: Case,
    kills: int,
    draw: random.Random,
    environment: dict[str, str],
    executors: Callable[[], int | None],
) -> Part:
    part = Part(f"kills of {case.name}")
    fine = {state(folder, case)}
    saved = folder.with_name(f"{folder.name}-saved")
    if case.out:
        shutil.copytree(folder / case.out, saved)
    known = {path.name for path in folder.iterdir()}
    began = time.monotonic()
    code, told = finish(Run(case.words, folder, environment))
    seconds = time.monotonic() - began
    new = state(folder, case)
    fine.add(new)
    part.hold(code == 0, f"undisturbed it ended with {code}: {told[-300:]}", 0)
    hits, first = [hit for hit in HITS if hit[0] in case.hit], draw.randrange(len(HITS))
    for number in range(kills):
        if number % IN_A_ROW == 0:
            restore(folder, case, saved)
        hit = hits[(number + first) % len(hits)]
        run = Run(case.words, folder, environment)
        wrong = struck(run, hit, draw.uniform(0, seconds), executors)
        if (now := state(folder, case)) not in fine:
            kept = hit[1] == INT and case.name in SEARCHES
            if kept and sound_plan(folder, case, environment):
                fine.add(now)
            else:
                wrong.append(f"{case.out} is neither the old nor the new")
        part.hold(not wrong, f"{hit[0]}, {hit[1].name}: {'; '.join(wrong)}")
        part.notes[f"{hit[1].name} {hit[0]}"] += 1
        if number % IN_A_ROW == IN_A_ROW - 1 or number == kills - 1:
            ended_well(part, folder, case, environment, new, known)
    shutil.rmtree(saved, ignore_errors=True)
    return part


def sound_plan(folder: Path, case: Case, environment: dict[str, str]) -> bool:
    """Whether what lies there is a whole plan, checked."""
    return finish(Run(("check", str(case.out), "dataset"), folder, environment))[0] == 0


def state(folder: Path, case: Case) -> str | None:
    return digest(folder / case.out) if case.out else None


def restore(folder: Path, case: Case, saved: Path) -> None:
    """The older folder in its place."""
    if case.out:
        shutil.rmtree(folder / case.out, ignore_errors=True)
        shutil.copytree(saved, folder / case.out)


def struck(
    run: Run, hit: tuple[str, signal.Signals], moment: float, executors: Callable[[], int | None]
) -> list[str]:
    """Hit a command at a moment; all that is wrong with how it ended."""
    part, sent = hit
    run.start()
    try:
        run.ended(moment)
        if sent != KILL:
            run.await_command()
        if part == "executor":
            pid = executors()
        else:
            pid = run.await_part("driver" if part == "group" else part)
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            if pid is not None and run.process.poll() is None:
                os.killpg(pid, sent) if part == "group" else os.kill(pid, sent)
        code = run.ended()
        told = run.errors.read_text("utf-8", "replace")
        # After a Ctrl-C that met a class being made Python ends itself by the signal: to a shell
        # that is 130 as well.
        wrong = [] if code in (HITS[hit], 0, -sent) else [f"it ended with {code}"]
        if left := run.await_alone():
            wrong.append(f"still running: {', '.join(words[:80] for words in left)}")
        if "Traceback" in told or "Exception" in told:
            wrong.append(f"it said: {told[-400:]}")
        return wrong
    finally:
        run.end()


def ended_well(
    part: Part,
    folder: Path,
    case: Case,
    environment: dict[str, str],
    new: str | None,
    known: set[str],
) -> None:
    """The next run ends as if nothing had been, and leaves only what belongs there."""
    code, told = finish(Run(case.words, folder, environment))
    left = {p.name for p in folder.iterdir() if not p.name.startswith("told-")} - known
    left |= {f"temporary/{p.name}" for p in (folder / "temporary").iterdir()}
    left -= {"temporary"}
    if code != 0:
        part.failures.append(f"after the kills it ended with {code}: {told[-300:]}")
    elif state(folder, case) != new:
        part.failures.append(f"after the kills {case.out} is another")
    if left:
        part.failures.append(f"left behind: {', '.join(sorted(left))}")
        for name in left:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
