"""A rehearsal compiles what a design calls: the kernels that take longest, for the same types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fanplan.cli.run import REHEARSED, rehearsing
from fanplan.verbs.rehearsal import PARTS

SCRIPT = """
import json, sys

import numpy as np

from fanplan import api
from fanplan.verbs import rehearsal
from fanplan.layers.channels.search.model.rules import recover_in_turn
from fanplan.layers.channels.search.free.seed import open_channels
from fanplan.layers.channels.search.free.swap import try_swaps
from fanplan.layers.delivery.search.choices import assign_classes, regroup
from fanplan.layers.overlay.published.spanning import contract_cycles
from fanplan.layers.overlay.search.swap import next_swap

LONG = (contract_cycles, next_swap, open_channels, try_swaps, recover_in_turn)
LONG += (assign_classes, regroup)


def known():
    return {kernel.__name__: len(kernel.signatures) for kernel in LONG}


for part in rehearsal.PARTS.values():
    part(np.random.default_rng(0))
rehearsed = known()
api.design(api.open_dataset(sys.argv[1]), channels=3)
print(json.dumps([rehearsed, known()]))
"""


def test_a_design_finds_its_kernels_compiled(demo: Path) -> None:
    words = (sys.executable, "-c", SCRIPT, str(demo / "dataset"))
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rehearsed, designed = json.loads(told)
    assert rehearsed == designed
    assert set(rehearsed.values()) == {1}


def test_a_rehearsal_ends_with_the_work(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), rehearsing(tmp_path) as processes:
        assert [process.poll() for process in processes] == [None, None]
        raise KeyboardInterrupt
    assert None not in [process.poll() for process in processes]


def test_what_was_rehearsed_is_not_again(tmp_path: Path) -> None:
    with rehearsing(tmp_path) as processes:
        assert [process.wait() for process in processes] == [0, 0]
    with rehearsing(tmp_path) as processes:
        assert not processes
    # As if a source had changed since.
    os.utime(tmp_path / "rehearsed-brokers", (0, 0))
    with rehearsing(tmp_path) as processes:
        assert len(processes) == 1


def test_every_part_is_rehearsed() -> None:
    assert tuple(PARTS) == REHEARSED
