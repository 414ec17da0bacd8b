"""Carry versions out on running applications, each once and whole.

Before a version is begun that is written down, and when it is done as well. A version that was
begun and not done is asked for again after a restart: an applier goes on with it where it stopped,
which switching by epochs allows: who has switched already stays where it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from fanplan.core.folder import write_whole
from fanplan.watch.state import State


class Applier(Protocol):
    """Brings running applications from one version to the next."""

    def apply(self, old: Path, new: Path) -> dict[str, Any]:
        """From the version in the folder ``old`` to that in ``new``; what is told of it.

        Called again with the same two after an interruption, it must come to the same end.
        """


def carry_out(state: State, applier: Applier) -> None:
    """All versions that count and are not done, in their order."""
    for number in range(1, state.last().version + 1):
        path = state.folder / "applied" / f"{number}.json"
        about = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if about.get("done"):
            continue
        write_whole(path, json.dumps({"version": number, "done": False}))
        told = applier.apply(state.version(number - 1), state.version(number))
        write_whole(path, json.dumps({"version": number, "done": True, **told}))
