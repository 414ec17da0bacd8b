"""Publications kept at their entry in a stream of JetStream, and sent again by sequence number."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.live.message import CHANNEL_AT, REDELIVERED
from fanplan.live.nats.plan import LOCAL
from fanplan.live.nats.wire import Connection

if TYPE_CHECKING:
    from fanplan.systems.nats.run import Run

STREAM = "entry"
AGAIN_SECONDS = 0.5
"""How long an acknowledgement may take before a publication is stored again."""
AT_ONCE = 200
"""Messages of a stream that are asked for together."""
WAIT_SECONDS = 30.0


@dataclass
class Stream:
    """The stream of one entry. ``waiting`` are publications without an acknowledgement yet."""

    connection: Connection
    subject: str
    inbox: str
    waiting: dict[int, bytes] = field(default_factory=dict)
    sequence: dict[int, int] = field(default_factory=dict)
    asked: dict[str, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    tokens: itertools.count[int] = field(default_factory=itertools.count)

    async def open(self) -> None:
        self.connection.on_message = self.take
        self.connection.subscribe(f"{self.inbox}.>")
        await self.connection.open()
        config = {"name": STREAM, "subjects": [f"{self.subject}.>"], "storage": "file",
                  "retention": "limits", "num_replicas": 1}  # fmt: skip
        told = await self.request(f"$JS.API.STREAM.CREATE.{STREAM}", config)
        if "error" in told:
            what = str(told["error"].get("description", told["error"]))
            raise InputError(Problem("durable", what, "Put that right, and try again"))

    async def request(self, api: str, content: dict[str, Any]) -> dict[str, Any]:
        token = f"q{next(self.tokens)}"
        answer = self.asked[token] = asyncio.get_running_loop().create_future()
        reply = f"{self.inbox}.{token}".encode()
        self.connection.publish(api.encode(), json.dumps(content).encode(), reply)
        return await asyncio.wait_for(answer, WAIT_SECONDS)

    def keep(self, number: int, content: bytes) -> None:
        """Store a publication; its acknowledgement comes later."""
        self.waiting[number] = content
        subject = f"{self.subject}.{number}".encode()
        self.connection.publish(subject, content, f"{self.inbox}.{number}".encode())

    def take(self, _: int, subject: bytes, content: bytes) -> None:
        """An answer, or an acknowledgement with its sequence number."""
        token = subject.rpartition(b".")[2].decode()
        if token in self.asked:
            answer = self.asked.pop(token)
            if not answer.done():
                answer.set_result(json.loads(content))
            return
        told, number = json.loads(content) if content else {}, int(token)
        if "seq" in told:
            self.waiting.pop(number, None)
            self.sequence.setdefault(number, told["seq"])

    async def acknowledged(self) -> None:
        """Until all is; what is not after a while is stored again, and may then be there twice."""
        for _ in range(int(WAIT_SECONDS / AGAIN_SECONDS)):
            for number, content in [*self.waiting.items()]:
                self.keep(number, content)
            await self.connection.drained()
            for _ in range(50):
                if not self.waiting:
                    return
                await asyncio.sleep(AGAIN_SECONDS / 50)
        what = f"{len(self.waiting)} publications are not acknowledged"
        raise InputError(Problem("durable", what, "Look at the server's log"))

    async def read(self, sequence: int) -> bytes:
        told = await self.request(f"$JS.API.STREAM.MSG.GET.{STREAM}", {"seq": sequence})
        return base64.b64decode(told["message"]["data"])


@asynccontextmanager
async def kept_in_streams(run: Run) -> AsyncIterator[Streams]:
    """While it lasts, all that a run sends is kept at its entry too."""
    streams = Streams(run)
    await asyncio.gather(*(stream.open() for stream in streams.of.values()))
    run.kept = streams.keep
    try:
        yield streams
    finally:
        run.kept = None
        for stream in streams.of.values():
            await stream.connection.close()


class Streams:
    """The streams of all entries of a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        prefix = f"fp-kept.{run.made.epoch}"
        self.of = {
            entry: Stream(
                Connection(run.made.address(entry, LOCAL), "stream"), prefix, f"_INBOX.{entry}"
            )
            for entry in sorted({*run.traffic.ways.entry.tolist()})
        }

    def keep(self, entry: int, number: int, content: bytes) -> None:
        self.of[entry].keep(number, content)

    async def send_again(self) -> int:
        """All that was kept, read from the streams and marked; how many."""
        count = 0
        for stream in self.of.values():
            await stream.acknowledged()
            kept = sorted((sequence, number) for number, sequence in stream.sequence.items())
            for at in range(0, len(kept), AT_ONCE):
                some = kept[at : at + AT_ONCE]
                contents = await asyncio.gather(*(stream.read(seq) for seq, _ in some))
                for (_, number), content in zip(some, contents, strict=True):
                    self.post(number, content)
                await self.run.flush()
                await self.run.room()
                count += len(some)
        return count

    def post(self, number: int, content: bytes) -> None:
        marked = bytearray(content)
        struct.pack_into("<i", marked, CHANNEL_AT, REDELIVERED)
        parcel = int(self.run.traffic.parcel[number])
        self.run.post(parcel, bytes(marked), self.run.topic(number))
        self.run.sent += int(self.run.copies_of(parcel))
