"""Carry versions out on running applications, each once and whole.

Before a version is begun that is written down, and when it is done as well. A version that was
begun and not done is asked for again after a restart: an applier goes on with it where it stopped,
which switching by epochs allows: who has switched already stays where it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import EXPORT, write_whole
from fanplan.data.engine import Engine
from fanplan.verbs.export import export
from fanplan.watching.state import State


class Applier(Protocol):
    """Brings running applications from one version to the next."""

    def apply(self, old: Path, new: Path) -> dict[str, Any]:
        """From the version in the folder ``old`` to that in ``new``; what is told of it.

        Called again with the same two after an interruption, it must come to the same end.
        """


@dataclass(frozen=True)
class Switching:
    """Applications of `fanplan.live` on NATS; ``running`` is the export that they began with."""

    running: Path
    engine: Engine

    def __post_init__(self) -> None:
        system = system_of(self.running)
        if system != SWITCHED:
            what = f"is an export for {system}, where applications cannot change plans as they run"
            raise InputError(Problem(str(self.running), what, f"Name one for {SWITCHED}"))

    def apply(self, old: Path, new: Path) -> dict[str, Any]:
        """Export the new version, and switch: what was begun there goes on where it stopped."""
        switch = import_module("fanplan.live.switch").switch
        out, before = new / "export", old / "export"
        before = before if before.exists() else self.running
        if not out.exists():
            export(new / "plan", new / "dataset", SWITCHED, out, like=before, engine=self.engine)
        report = switch(before, out, progress=self.engine.progress)
        return {"export": f"versions/{new.name}/export", "switch": report.json()}


SWITCHED = "nats"
"""The system on which plans change while applications run."""


def system_of(folder: Path) -> str:
    """The system that an export is for."""
    try:
        told = json.loads((folder / EXPORT.sign).read_text(encoding="utf-8"))
        return str(told["system"])
    except (OSError, ValueError, KeyError) as error:
        remedy = "Name the folder that `fanplan export` wrote"
        raise InputError(Problem(str(folder), f"is not an export ({error})", remedy)) from error


def enact_versions(state: State, applier: Applier) -> None:
    """All versions that count and are not done, in their order."""
    for number in range(1, state.last().version + 1):
        path = state.folder / "applied" / f"{number}.json"
        about = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if about.get("done"):
            continue
        write_whole(path, json.dumps({"version": number, "done": False}))
        told = applier.apply(state.version(number - 1), state.version(number))
        write_whole(path, json.dumps({"version": number, "done": True, **told}))
