"""Many designs in one process: memory and file descriptors stay where they were."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import fanplan
from chaos.count import Part

GROWTH = 1.05
"""Memory may be so many times what it was at first: what allocators keep differs a little."""


def attack_soak(
    folder: Path, dataset: fanplan.Dataset, designs: int, engine: fanplan.Engine
) -> Part:
    """Design, save and check over and over; the first quarter may fill caches."""
    part = Part("soak")
    marks = []
    for number in range(designs):
        out = folder / "plan"
        made = fanplan.design(dataset, channels=3 + number % 5, seed=number, engine=engine)
        made.save(out, replace=number > 0)
        result = fanplan.check(out, dataset, engine=engine)
        part.hold(result.ok, f"design {number} does not hold: {result.violations}")
        if number in (designs // 4, designs - 1):
            gc.collect()
            marks.append((resident(), len(os.listdir("/proc/self/fd"))))
    (memory, files), (last, open_) = marks
    part.notes["MB after a quarter"], part.notes["MB at the end"] = memory >> 20, last >> 20
    part.notes["files open at the end"] = open_
    if last > GROWTH * memory:
        part.failures.append(f"memory grew from {memory >> 20} to {last >> 20} MB")
    if open_ > files:
        part.failures.append(f"open files grew from {files} to {open_}")
    return part


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
