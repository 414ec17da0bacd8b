"""A watch that is killed at random moments comes to the versions of one that nobody disturbed."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from clusters import QUICK_CONF
from streams import decided, write_changes, write_window, write_workload

import fanplan
from chaos.count import Part
from chaos.kills import AT_A_TIME, INT, KILL, TERM, struck
from chaos.runs import GLANCE, Run, finish

ASKED = ("--window", "10", "--patience", "2", "--half-life", "2", "--files", "1", "--once")
STRUCK = (("driver", KILL), ("jvm", KILL), ("worker", KILL), ("driver", TERM), ("driver", INT))
AHEAD = 2
"""Batches within which a run is killed."""
KILLS, WINDOWS = 30, 24


def attack(folder: Path, seed: int) -> Iterator[Part]:
    """At full size."""
    prepare(folder, WINDOWS, fanplan.Engine())
    conf = " ".join(f"'{key}={value}'" for key, value in QUICK_CONF.items())
    yield attack_watch(folder, KILLS, seed, {"FANPLAN_SPARK_CONF": conf})


def prepare(folder: Path, windows: int, engine: fanplan.Engine) -> None:
    """A plan for three windows, and a stream that drifts after them, with changes of interest."""
    desk = write_workload(folder / "desk", attributes=True)
    for window in range(3):
        write_window(desk, window, attributes=True)
    dataset = fanplan.ingest(desk, folder / "dataset", engine=engine)
    fanplan.channels(dataset, 2, engine=engine).save(folder / "plan")
    for window in range(3, windows):
        write_window(desk, window, attributes=True, swapped=window // 4 % 2 == 1)
        if window % 10 == 5:
            change = {"time": window * 10, "subscriber": "u0", "topic": f"t{window % 6 + 6}"}
            write_changes(desk, f"w{window:04d}", [change | {"action": "add"}])


def words(state: str) -> tuple[str, ...]:
    where = ("--stream", "desk", "--state", state, "--master", "local[2]", "--page", "0")
    return ("watch", "plan", *where, *ASKED)


def attack_watch(folder: Path, kills: int, seed: int, environment: dict[str, str]) -> Part:
    """Kill it so often, drop its page's readers in the last run, and compare."""
    part, draw, began = Part("kills of watch"), random.Random(seed), time.time()
    code, told = finish(Run(words("whole"), folder, environment))
    if code != 0:
        part.hold(False, f"undisturbed it ended with {code}: {told[-300:]}")
        return part
    batches = done(folder / "whole")
    start = (folder / "whole" / "watch.json").stat().st_mtime - began
    each = (time.time() - began - start) / batches
    moments = [draw.uniform(0.3 * start, start + AHEAD * each) for _ in range(kills)]

    def disturbed(first: int) -> None:
        """Every second kill, of a watch of its own."""
        state = f"killed-{first}"
        for number in range(first, kills, AT_A_TIME):
            hit = STRUCK[number // AT_A_TIME % len(STRUCK)]
            run = Run(words(state), folder, environment)
            wrong = struck(run, hit, moments[number], lambda: None)
            part.hold(not wrong, f"{hit[0]}, {hit[1].name}: {'; '.join(wrong)}")
            part.notes[f"{hit[1].name} {hit[0]}"] += 1
            part.notes["before the end of the stream"] += done(folder / state) < batches
        dropped = drop_readers(Run(words(state), folder, environment), folder / state)
        part.hold(dropped > 0, "the last run ended otherwise than it should", max(1, dropped))
        part.notes["readers of the page dropped"] += dropped
        if decided(folder / state) != decided(folder / "whole"):
            part.failures.append("versions or decisions are not those of the undisturbed run")

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for _ in pool.map(disturbed, range(min(AT_A_TIME, kills))):
            pass
    return part


def done(state: Path) -> int:
    """Batches that count, with what stands before the first."""
    return sum(not path.name.count(".") for path in state.glob("batches/*"))


def drop_readers(run: Run, state: Path) -> int:
    """Ask for the page and hang up in the middle of the answer, as long as the run lasts.

    How often; 0 if the run did not end well, or complained.
    """
    run.start()
    dropped, page = 0, state / "page.json"
    try:
        while run.ended(10 * GLANCE) is None:
            with suppress(OSError, ValueError):
                dropped += hung_up(json.loads(page.read_text())["address"])
        fine = run.ended() == 0 and "Traceback" not in run.errors.read_text()
        return dropped if fine else 0
    finally:
        run.end()


def hung_up(address: str) -> bool:
    """A reader that goes away without a word after the first bytes."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname or "", where.port or 0), 5) as link:
        link.sendall(f"GET {where.path}told.json HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        link.recv(1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return True
