"""How far a switch came: a file in the new export, written whole after every step."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fanplan.core.folder import write_whole

RECORD = "switch.json"
JOINING, CUTTING, LEAVING, DONE = "joining", "cutting", "leaving", "done"
"""Until `CUTTING` the old plan is in force, and all can be undone; from then on the new one is."""
SERVERS = "servers"


@dataclass(frozen=True)
class SwitchReport:
    """What a switch did. ``applied`` is false if the new plan was in force already.

    ``passed`` names clients that did not answer, and were passed over. ``disturbed`` names servers
    that failed since the last switch; durable publishers sent ``sent_again`` publications once
    more, as somebody had lost them. ``seconds`` has the time of each step.
    """

    old: str
    new: str
    applied: bool = True
    publishers: int = 0
    subscribers: int = 0
    agents: int = 0
    links_added: int = 0
    links_removed: int = 0
    homes_moved: int = 0
    probes: int = 0
    turns: int = 0
    passed: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    sent_again: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Record:
    """Where a switch is. ``servers`` is the folder that the servers run with.

    ``starts`` says when each server was started, as far as durable publishers know: one that was
    started since has lost messages.
    """

    folder: Path
    servers: Path
    old: str
    new: str
    phase: str = JOINING
    starts: dict[str, str] = field(default_factory=dict)

    def at(self, phase: str) -> Record:
        """The same one step on, safe on the disk."""
        told: dict[str, Any] = {
            "old": self.old,
            "new": self.new,
            "phase": phase,
            "servers": str(self.servers),
        }
        told["starts"] = self.starts
        write_whole(self.folder / RECORD, json.dumps(told, indent=1) + "\n")
        return replace(self, phase=phase)


def switch_record(folder: Path, before: Path, epochs: tuple[str, str], servers: Path) -> Record:
    """The record of this switch; a new one if there is none, or that of another.

    ``before`` is the old export, with the record of how its plan came into force.
    """
    told = stored(folder)
    same = (told.get("old"), told.get("new")) == epochs and told.get("phase") != DONE
    if same:
        return Record(folder, servers, *epochs, told["phase"], told.get("starts", {}))
    return Record(folder, servers, *epochs, starts=stored(before).get("starts", {}))


def servers_of(folder: Path) -> Path:
    """Where the servers of an export's plan have their files."""
    return Path(stored(folder).get("servers", folder / SERVERS))


def stored(folder: Path) -> dict[str, Any]:
    try:
        told = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
