"""Publishers and subscribers by name, from the folder that `fanplan export` wrote."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Self

from fanplan.core.errors import InputError, Problem
from fanplan.live.entry import EXPORT_AGAIN, Entry, load_entry
from fanplan.live.publisher import Publishing
from fanplan.live.subscriber import Subscribed

PathLike = str | Path

TRANSPORTS = {
    "nats.json": "fanplan.live.nats.client",
    "multicast.json": "fanplan.live.multicast.client",
}
"""Modules by the file that an export for their system has."""


class Publisher(Publishing):
    """``async with Publisher(export, name) as p: await p.send(topic, attributes, payload)``.

    It follows switches to other plans. With ``durable`` it keeps what it sent until a switch, and
    who lost some of it is sent that again, in order.
    """

    def __init__(self, export: PathLike, name: str, durable: bool = False) -> None:
        folder = Path(export)
        system = transport(folder)
        if durable and not system.DURABLE:
            what = "publishers cannot be asked for what was lost: there are no servers"
            raise InputError(Problem(str(folder), what, "Publish without durable, or on NATS"))
        super().__init__(Entry(load_entry(folder)), system.outgoing(folder, name), durable)
        self._following = system.following(folder, name, self)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await listen(self)
        return self

    async def __aexit__(self, *told: object) -> None:
        await self._following.close()
        await super().__aexit__(*told)


class Subscriber(Subscribed):
    """``async with Subscriber(export, name) as s: async for message in s: …``."""

    def __init__(self, export: PathLike, name: str) -> None:
        folder = Path(export)
        system = transport(folder)
        epoch, incoming = system.incoming(folder, name)
        super().__init__(load_entry(folder), name, epoch, incoming)
        self._following = system.following(folder, name, self)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await listen(self)
        return self

    async def close(self) -> None:
        await self._following.close()
        await super().close()


async def listen(client: Publisher | Subscriber) -> None:
    """Let a client hear commands; it is closed if it cannot."""
    try:
        await client._following.open()
    except BaseException:
        await client.__aexit__()
        raise


def transport(folder: Path) -> Any:
    """The module that carries messages of an export."""
    found = [module for file, module in TRANSPORTS.items() if (folder / file).is_file()]
    if not found:
        what = f"is not an export for a system with clients: it has no {' or '.join(TRANSPORTS)}"
        raise InputError(Problem(str(folder), what, EXPORT_AGAIN))
    return import_module(found[0])
