"""A rehearsal compiles what a design calls: the kernels that take longest, for the same types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fanplan.cli.run import rehearsing

SCRIPT = """
import json, sys

from fanplan import api
from fanplan.planners import rehearsal
from fanplan.planners.channels.kmodes.rules import recover_in_turn
from fanplan.planners.channels.kmodes.seed import open_channels
from fanplan.planners.channels.kmodes.swap import try_swaps
from fanplan.planners.delivery.assign import assign
from fanplan.planners.delivery.members import regroup
from fanplan.planners.overlay.arborescence import contract
from fanplan.planners.overlay.swap import next_swap

LONG = (contract, next_swap, open_channels, try_swaps, recover_in_turn, assign, regroup)


def known():
    return {kernel.__name__: len(kernel.signatures) for kernel in LONG}


rehearsal.rehearse()
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


def test_a_rehearsal_ends_with_the_work() -> None:
    with pytest.raises(KeyboardInterrupt), rehearsing() as process:
        assert process.poll() is None
        raise KeyboardInterrupt
    assert process.poll() is not None
