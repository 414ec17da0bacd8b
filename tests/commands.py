"""Commands as a user runs them, in this process, where Spark may be running already."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import Any

import pytest

from fanplan.cli import demo, plan
from fanplan.cli.app import main


def run(*words: object) -> int:
    """Exit code of `fanplan WORDS`."""
    with pytest.MonkeyPatch.context() as patch:
        # The processors are busy with tests, which compile the same kernels.
        for command in (demo, plan):
            patch.setattr(command, "rehearsing", nullcontext)
        patch.setattr(sys, "argv", ["fanplan", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
    return int(exit_.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[Any, Any]]:
    """Exit code and JSON answer; nothing else may stand on stdout."""
    capsys.readouterr()
    code = run(*words, "--json")
    return code, json.loads(capsys.readouterr().out)
