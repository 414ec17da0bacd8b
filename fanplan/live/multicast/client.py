"""Ends of IP multicast by name, for the library."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

from fanplan.live.multicast.plan import load_plan
from fanplan.live.multicast.sockets import Receiver, Sender, receiving_socket

DURABLE = False
"""Whether publishers can be asked for what was lost."""


def outgoing(folder: Path, name: str) -> Sender:
    return Sender(load_plan(folder), name)


def incoming(folder: Path, name: str) -> tuple[bytes, Receiver]:
    """A subscriber joins on the interface that has its address in the table of hosts."""
    plan = load_plan(folder)
    interface = plan.hosts.get(name, "")
    own = interface if is_address(interface) else ""
    return plan.epoch, Receiver(plan, name, partial(receiving_socket, interface=own))


def following(_: Path, __: str, ___: object) -> Staying:
    return Staying()


class Staying:
    """Clients of multicast stay with their plan: groups have no servers that could tell of one."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


def is_address(host: str) -> bool:
    """Whether a host is given by its address, not by a name."""
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True
