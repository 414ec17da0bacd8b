"""Kills of a watch: `python tests/watch/kills.py [--kills 30]`, of Python and of Spark's JVM.

A run is killed at a moment drawn at random, again and again, and in the end left alone. Its
versions and decisions must be those of a run that nobody disturbed, byte by byte.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ASKED = ("--window", "10", "--patience", "2", "--half-life", "2", "--files", "2", "--once")


def words(plan: Path, desk: Path, state: Path) -> list[str]:
    given = (str(plan), "--stream", str(desk), "--state", str(state), *ASKED)
    return [sys.executable, "-m", "fanplan", "watch", *given, "--master", "local[2]", "--json"]


def killed_runs(plan: Path, desk: Path, folder: Path, kills: int, seed: int) -> int:
    """How many runs were killed; afterwards ``killed`` and ``whole`` are in the folder."""
    draw = np.random.default_rng(seed)
    began = time.monotonic()
    subprocess.run(words(plan, desk, folder / "whole"), check=True, capture_output=True)
    took, done = time.monotonic() - began, 0
    for number in range(kills):
        process = subprocess.Popen(
            words(plan, desk, folder / "killed"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=float(draw.uniform(0.2, 0.9)) * took)
        except subprocess.TimeoutExpired:
            kill(process, folder / "killed", of_java=number % 3 == 2)
            done += 1
        process.wait()
    subprocess.run(words(plan, desk, folder / "killed"), check=True, capture_output=True)
    return done


def kill(process: subprocess.Popen[bytes], state: Path, of_java: bool) -> None:
    """End Python, or Spark, which ends Python too."""
    told = state / "jvm.json"
    if of_java and told.is_file():
        os.kill(json.loads(told.read_text())["pid"], signal.SIGKILL)
    else:
        process.kill()


def same_state(one: Path, other: Path) -> bool:
    """Whether two watches came to the same versions and decisions."""
    return decided(one) == decided(other)


def decided(state: Path) -> dict[str, bytes]:
    files = sorted(file for file in (state / "versions").rglob("*") if file.is_file())
    # Spark gives the files of a stage names at random; what is planned has none of them.
    kept = [file for file in files if "dataset" not in file.relative_to(state).parts]
    found = {str(file.relative_to(state)): file.read_bytes() for file in kept}
    return found | {"decisions": (state / "decisions.jsonl").read_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    from streams import write_window, write_workload

    import fanplan
    from fanplan.data.engine import Engine

    with tempfile.TemporaryDirectory() as name:
        folder, engine = Path(name), Engine("local[2]")
        desk = write_workload(folder / "desk", attributes=True)
        for window in range(3):
            write_window(desk, window, attributes=True)
        dataset = fanplan.ingest(desk, folder / "dataset", engine=engine)
        fanplan.channels(dataset, 2, engine=engine).save(folder / "plan")
        for window in range(3, 24):
            write_window(desk, window, attributes=True, swapped=window > 4)
        done = killed_runs(folder / "plan", desk, folder, asked.kills, asked.seed)
        same = same_state(folder / "killed", folder / "whole")
        print(f"{done} kills, versions and decisions {'the same' if same else 'DIFFER'}")
        sys.exit(not same)


if __name__ == "__main__":
    main()
