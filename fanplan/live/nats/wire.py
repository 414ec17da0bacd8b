"""A connection to a NATS server: the protocol's own words, in batches, and again when it broke.

It speaks what plans need: publish, subscribe, ping. Messages that are published while a server is
away wait, up to a limit, and go out when it is back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

Taken = Callable[[int, bytes, bytes], None]
"""What is done with a message: the number of its subscription, its subject, its content."""

END = b"\r\n"
AGAIN_SECONDS = 0.05
OPEN_SECONDS = 10.0
MOST_WAITING = 64 << 20
"""Bytes that wait for a server that is away."""


@dataclass(frozen=True)
class Address:
    """Where a server listens, and as whom to speak to it."""

    host: str
    port: int
    user: str = ""
    password: str = ""


class Refused(ConnectionError):
    """A server's own words for why it does not want a connection."""


class Connection(asyncio.Protocol):
    """One connection; it is opened again until it is closed.

    ``on_message`` is called for each message. ``lost`` counts messages that found no room to wait.
    """

    def __init__(self, address: Address, name: str, on_message: Taken | None = None) -> None:
        self.address, self.name, self.on_message = address, name, on_message
        self.subjects: dict[int, str] = {}
        self.lost = self.opened = 0
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._out: list[bytes] = []
        self._waiting = 0
        self._pongs: list[asyncio.Future[None]] = []
        self._free = asyncio.Event()
        self._free.set()
        self._closing = False
        self._said = ""
        self._again: asyncio.Task[None] | None = None

    # ---- opening and closing

    async def open(self, seconds: float = OPEN_SECONDS) -> Connection:
        """Connect; an error with the server's words if it refuses or does not answer."""
        try:
            await asyncio.wait_for(self._connect(), seconds)
        except BaseException:
            await self.close()
            raise
        return self

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, self.address.host, self.address.port)
        await self.flush()

    async def _reconnect(self) -> None:
        while not self._closing:
            try:
                await self._connect()
                return
            except OSError:
                await asyncio.sleep(AGAIN_SECONDS)

    async def close(self) -> None:
        self._closing = True
        if self._again is not None:
            self._again.cancel()
        if self._transport is not None:
            self._send_waiting()
            self._transport.close()
        await asyncio.sleep(0)

    @property
    def up(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._rest = transport, b""
        transport.set_write_buffer_limits(1 << 20)
        self.opened += 1
        told = {"verbose": False, "pedantic": False, "lang": "fanplan", "version": "1",
                "name": self.name, "echo": False}  # fmt: skip
        if self.address.user:
            told |= {"user": self.address.user, "pass": self.address.password}
        lines = [f"CONNECT {json.dumps(told)}\r\n".encode()]
        lines += [f"SUB {subject} {sid}\r\n".encode() for sid, subject in self.subjects.items()]
        transport.write(b"".join(lines))

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._free.set()
        for pong in self._pongs:
            if not pong.done():
                pong.set_exception(Refused(self._said or "the connection broke"))
        self._pongs.clear()
        if not self._closing and (self._again is None or self._again.done()) and self.opened:
            self._again = asyncio.get_running_loop().create_task(self._reconnect())

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    # ---- speaking

    def subscribe(self, subject: str) -> int:
        """Ask for a subject; the number of the subscription."""
        sid = len(self.subjects) + 1
        self.subjects[sid] = subject
        if self._transport is not None:
            self._write(f"SUB {subject} {sid}\r\n".encode())
        return sid

    def publish(self, subject: bytes, content: bytes, reply: bytes = b"") -> None:
        """Send a message with the next batch."""
        head = b"PUB %b %b%d\r\n" % (subject, reply + b" " if reply else b"", len(content))
        self._write(head + content + END)

    def write_batch(self, frames: bytes, count: int) -> None:
        """Send messages that are framed already."""
        if self._transport is None and self._waiting + len(frames) > MOST_WAITING:
            self.lost += count
        else:
            self._write(frames)

    def _write(self, frame: bytes) -> None:
        if self._transport is None and self._waiting + len(frame) > MOST_WAITING:
            self.lost += 1
            return
        if not self._out and self._transport is not None:
            asyncio.get_running_loop().call_soon(self._send_waiting)
        self._out.append(frame)
        self._waiting += len(frame)

    def _send_waiting(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()
            self._waiting = 0

    async def drained(self) -> None:
        """Until there is room for more."""
        self._send_waiting()
        await self._free.wait()

    async def flush(self) -> None:
        """Until the server has all that was sent before."""
        pong = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        self._send_waiting()
        if self._transport is None:
            raise Refused(self._said or "the connection broke")
        self._transport.write(b"PING\r\n")
        await pong

    # ---- listening

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        at, size = 0, len(data)
        taken = self.on_message
        while (end := data.find(END, at)) >= 0:
            if data.startswith(b"MSG ", at):
                words = data[at + 4 : end].split(b" ")
                stop = end + 2 + int(words[-1])
                if stop + 2 > size:
                    break
                if taken is not None:
                    taken(int(words[1]), words[0], data[end + 2 : stop])
                at = stop + 2
            else:
                self.control(data[at:end])
                at = end + 2
        self._rest = data[at:]

    def control(self, line: bytes) -> None:
        """A line that is no message."""
        if line == b"PING" and self._transport is not None:
            self._transport.write(b"PONG\r\n")
        elif line == b"PONG" and self._pongs:
            pong = self._pongs.pop(0)
            if not pong.done():
                pong.set_result(None)
        elif line.startswith(b"-ERR"):
            self._said = line[5:].decode(errors="replace").strip("'")
