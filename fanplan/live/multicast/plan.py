"""A plan as addresses: where senders send each flow, and which groups subscribers join.

An export has it as ``multicast.json``, ``ways.npz`` and ``hosts.csv``. Subscribers that get
anything by unicast need a line in ``hosts.csv`` with the address of their host.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.files import write_csv
from fanplan.live.entry import DAMAGED, EXPORT_AGAIN

FILE, WAYS, HOSTS = "multicast.json", "ways.npz", "hosts.csv"
UNNAMED = 1 << 31
"""Sources that a plan does not know have numbers from here on."""


class Targets(NamedTuple):
    """The channels and the subscribers that a sender sends a flow to."""

    channels: tuple[int, ...] = ()
    people: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class SentWays:
    """Who sends each (flow, entry) where: rows of flow, entry, sender and channel or subscriber."""

    channels: Longs
    people: Longs

    def save(self, folder: Path) -> None:
        np.savez(folder / WAYS, channels=self.channels, people=self.people)

    @cached_property
    def planned(self) -> set[tuple[int, int]]:
        """The (flow, entry) pairs that the plan has a way for."""
        return {(flow, entry) for flow, entry, _ in self.targets}

    @cached_property
    def targets(self) -> dict[tuple[int, int, int], Targets]:
        """By flow, entry and sender."""
        found: dict[tuple[int, int, int], tuple[list[int], list[int]]]
        found = defaultdict(lambda: ([], []))
        for kind, rows in enumerate((self.channels, self.people)):
            for flow, entry, sender, goal in rows.tolist():
                found[flow, entry, sender][kind].append(goal)
        return {key: Targets(*map(tuple, goals)) for key, goals in found.items()}


@dataclass(frozen=True, eq=False)
class MulticastPlan:
    """All that senders and subscribers need.

    ``addresses`` has that of each channel. ``entries`` are the brokers of publishers, by
    number; a plan without brokers has one, without a name. ``members`` are the channels that each
    subscriber joins, ``hosts`` where it is found.
    """

    epoch: bytes
    port: int
    addresses: tuple[str, ...]
    brokers: tuple[str, ...]
    entries: Mapping[str, int]
    subscribers: tuple[str, ...]
    members: Mapping[str, tuple[int, ...]]
    ways: SentWays
    hosts: Mapping[str, str]

    def save(self, folder: Path) -> None:
        told = {
            "epoch": self.epoch.hex(),
            "port": self.port,
            "addresses": self.addresses,
            "brokers": self.brokers,
            "entries": dict(self.entries),
            "subscribers": self.subscribers,
            "members": dict(self.members),
        }
        (folder / FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        self.ways.save(folder)
        rows = ((who, self.hosts.get(who, "")) for who in self.subscribers)
        write_csv(folder / HOSTS, ("subscriber", "host"), rows)

    def entry_of(self, publisher: str) -> int:
        """The broker where a publisher's messages enter."""
        entry = self.entries.get(publisher, 0 if self.brokers == ("",) else None)
        if entry is None:
            remedy = "Name one of the plan's publishers"
            raise InputError(Problem(f"publisher {publisher!r}", "is not in the plan", remedy))
        return entry

    def source_of(self, publisher: str) -> int:
        """The number of a publisher in messages."""
        known = self._sources.get(publisher)
        return UNNAMED | zlib.crc32(publisher.encode()) if known is None else known

    @cached_property
    def _sources(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(sorted(self.entries))}

    def host_of(self, subscriber: int) -> str:
        name = self.subscribers[subscriber]
        host = self.hosts.get(name)
        if not host:
            what = f"has no host for {name!r}, who gets messages by unicast"
            raise InputError(Problem(HOSTS, what, "Fill in the address of its host"))
        return host


def load_plan(folder: Path) -> MulticastPlan:
    """Read what `MulticastPlan.save` wrote, with the hosts that somebody filled in."""
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        with np.load(folder / WAYS) as stored:
            ways = SentWays(stored["channels"], stored["people"])
        with (folder / HOSTS).open(newline="", encoding="utf-8") as file:
            hosts = {row["subscriber"]: row["host"] for row in csv.DictReader(file) if row["host"]}
        return MulticastPlan(
            epoch=bytes.fromhex(told["epoch"]),
            port=int(told["port"]),
            addresses=tuple(told["addresses"]),
            brokers=tuple(told["brokers"]),
            entries=told["entries"],
            subscribers=tuple(told["subscribers"]),
            members={who: tuple(channels) for who, channels in told["members"].items()},
            ways=ways,
            hosts=hosts,
        )
    except DAMAGED as error:
        what = f"is not an export for multicast ({error})"
        raise InputError(Problem(str(folder), what, EXPORT_AGAIN)) from error
