"""Where clients are on NATS: the connections that a publisher sends on and a subscriber has."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.live.entry import DEFAULT as NO_FLOW_KNOWN
from fanplan.live.entry import EntryTables
from fanplan.live.message import ENDED, KEPT, LAST, NO_CHANNEL, Header, Message, encode
from fanplan.live.names import subject
from fanplan.live.nats.frames import fixed_part, framed, framed_heads, texts
from fanplan.live.nats.plan import AGAIN, DEFAULT, END, LOCAL, NO_FLOW, NatsPlan
from fanplan.live.nats.reach import PlanReach
from fanplan.live.nats.wire import Connection, Refused
from fanplan.live.transport import Batch, Range, Take


async def open_all(connections: Sequence[Connection]) -> None:
    """Open all; an error in the words of a server or of the machine."""
    try:
        await asyncio.gather(*(one.open() for one in connections))
    except (OSError, TimeoutError) as error:
        where = f"{connections[0].address.host}:{connections[0].address.port}"
        if "Authorization" in str(error):
            what, remedy = "its plan is not in force there", "Name the export that is"
            raise InputError(Problem(where, what, remedy)) from error
        what = f"no connection ({error or 'no answer'})"
        raise InputError(Problem(where, what, "Start the servers of the export")) from error


class NatsOutgoing:
    """A publisher at its broker: it sends each flow on the subjects that the plan names."""

    def __init__(self, plan: NatsPlan, name: str, tables: EntryTables) -> None:
        if name not in plan.entries:
            remedy = "Name one of the plan's publishers"
            raise InputError(Problem(f"publisher {name!r}", "is not in the plan", remedy))
        self.plan, self.entry = plan, plan.entries[name]
        self._source = plan.sources.index(name)
        self._epoch = bytes.fromhex(plan.epoch)
        self._targets = plan.publish.get(self.entry, {})
        self._flows, self._axes = tables.flows, tables.dimensions
        self._topics = texts([topic.encode() for topic in tables.topics.names])
        self._marked = PlanReach(plan).marked(self.entry)
        self._to = [
            (
                Connection(plan.address(self.entry, account), f"publisher {name}"),
                framed_heads(self._heads(account, tables)),
            )
            for account in self._marked
        ]

    @property
    def _default_account(self) -> str:
        return self.plan.accounts_at(self.entry)[0]

    def _heads(self, account: str, tables: EntryTables) -> list[list[bytes]]:
        """Where each flow goes in an account; then each topic, for what has no flow."""
        words = [subject(topic, tables.syntax) for topic in tables.topics.names]
        prefix, topic = f"PUB {self.plan.prefix}", tables.places[:, 0].tolist()
        flows = [
            [
                f"{prefix}.{way}.{flow}.{words[topic[flow]]}".encode()
                for own, way in self._targets.get(flow, ())
                if own == account
            ]
            for flow in range(tables.flows)
        ]
        here = account == self._default_account
        default = [[f"{prefix}.{DEFAULT}.{NO_FLOW}.{w}".encode()] if here else [] for w in words]
        return flows + default

    async def open(self) -> None:
        await open_all([connection for connection, _ in self._to])

    def known(self) -> set[int]:
        return {*self._targets}

    def send(self, batch: Batch) -> None:
        """Frame all for each connection, and hand them over as one."""
        rows = np.where(batch.flow == NO_FLOW_KNOWN, self._flows + batch.topic, batch.flow)
        kept = LAST if batch.last else KEPT
        channel = NO_CHANNEL if batch.before is None else kept
        fixed = fixed_part(self._epoch, self._source, batch.sent_ns, channel)
        for connection, heads in self._to:
            frames = framed(batch, rows, heads, self._topics, self._axes, fixed)
            if frames:
                connection.write_batch(frames, len(batch))

    def end(self, turn: int) -> None:
        """Say, after all that was sent, that it was the last in this epoch."""
        content = encode(Message(Header(self._epoch, ENDED, self._source, turn), "", (), b""))
        for (connection, _), ways in zip(self._to, self._marked.values(), strict=True):
            for way in ways:
                words = f"{self.plan.prefix}.{way}.{END}.{self._source}"
                connection.publish(words.encode(), content)

    @property
    def up(self) -> bool:
        """Whether all servers are there."""
        return all(connection.up for connection, _ in self._to)

    async def drained(self) -> None:
        for connection, _ in self._to:
            await connection.drained()

    async def flushed(self) -> None:
        """A server that is away gets what waits for it when it is back."""
        for connection, _ in self._to:
            if connection.up:
                with suppress(Refused):
                    await connection.flush()

    async def close(self) -> None:
        await self.flushed()
        for connection, _ in self._to:
            await connection.close()


class NatsIncoming:
    """A subscriber with a connection to each server that sends to it."""

    def __init__(self, plan: NatsPlan, name: str) -> None:
        if name not in plan.listens:
            remedy = "Name one of the plan's subscribers"
            raise InputError(Problem(f"subscriber {name!r}", "is not in the plan", remedy))
        self.plan, self.name, self.sources = plan, name, plan.sources
        self._take: Take | None = None
        self._asked: dict[int, Connection] = {}
        self._answers = f"{AGAIN}.{secrets.token_hex(8)}"
        self._from: dict[tuple[int, str], Connection] = {}
        for each in plan.listens[name]:
            at = (each.broker, each.account)
            if at not in self._from:
                self._from[at] = Connection(plan.address(*at), f"subscriber {name}")
            self._from[at].subscribe(each.subject)
        for (_, account), one in self._from.items():
            one.subscribe(f"{plan.prefix}.{'*' if account == LOCAL else DEFAULT}.{END}.>")

    async def open(self, take: Take) -> None:
        self._take = take
        for one in self._from.values():
            one.on_message = self._came
        await open_all([*self._from.values()])

    def _came(self, _: int, __: bytes, content: bytes) -> None:
        if self._take is not None:
            self._take(content)

    async def ask(self, source: int, ranges: Sequence[Range]) -> None:
        """At the server of the source; if that is away, another time."""
        with suppress(OSError, TimeoutError):
            server = await self._server_of(source)
            words = f"{AGAIN}.{self.plan.epoch}.{source}"
            told = {"to": self._answers, "lost": ranges}
            server.publish(words.encode(), json.dumps(told).encode())

    async def _server_of(self, source: int) -> Connection:
        entry = self.plan.entries[self.sources[source]]
        if entry not in self._asked:
            one = Connection(self.plan.address(entry, LOCAL), f"asks {self.name}", self._came)
            one.subscribe(self._answers)
            self._asked[entry] = await one.open()
        return self._asked[entry]

    async def close(self) -> None:
        for one in (*self._from.values(), *self._asked.values()):
            await one.close()
