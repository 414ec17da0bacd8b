"""Ends of IP multicast by name, for the library."""

from __future__ import annotations

from pathlib import Path

from fanplan.live.multicast.plan import load_plan
from fanplan.live.multicast.sockets import Receiver, Sender


def outgoing(folder: Path, name: str) -> Sender:
    return Sender(load_plan(folder), name)


def incoming(folder: Path, name: str) -> tuple[bytes, Receiver]:
    plan = load_plan(folder)
    return plan.epoch, Receiver(plan, name)
