"""Ends of NATS by name, for the library."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.live.entry import DEFAULT as NO_FLOW_KNOWN
from fanplan.live.entry import load_entry
from fanplan.live.message import Header, Message, encode
from fanplan.live.names import subject
from fanplan.live.nats.plan import DEFAULT, NO_FLOW, NatsPlan, Target, load_plan
from fanplan.live.nats.wire import Connection, Refused
from fanplan.live.transport import Publication, Take
from fanplan.workload.topics import TopicSyntax


def outgoing(folder: Path, name: str) -> NatsOutgoing:
    return NatsOutgoing(load_plan(folder), name, load_entry(folder).syntax)


def incoming(folder: Path, name: str) -> tuple[bytes, NatsIncoming]:
    plan = load_plan(folder)
    return bytes.fromhex(plan.epoch), NatsIncoming(plan, name)


async def opened(connections: Sequence[Connection]) -> None:
    """Open all; an error in the words of a server or of the machine."""
    try:
        await asyncio.gather(*(one.open() for one in connections))
    except (OSError, TimeoutError) as error:
        where = f"{connections[0].address.host}:{connections[0].address.port}"
        what = f"no connection ({error or 'no answer'})"
        raise InputError(Problem(where, what, "Start the servers of the export")) from error


class NatsOutgoing:
    """A publisher at its broker: it sends each flow on the subjects that the plan names."""

    def __init__(self, plan: NatsPlan, name: str, syntax: TopicSyntax) -> None:
        if name not in plan.entries:
            remedy = "Name one of the plan's publishers"
            raise InputError(Problem(f"publisher {name!r}", "is not in the plan", remedy))
        self.plan, self.entry, self._syntax = plan, plan.entries[name], syntax
        self._source = sorted(plan.entries).index(name)
        self._epoch = bytes.fromhex(plan.epoch)
        self._targets = plan.publish.get(self.entry, {})
        accounts = {account for targets in self._targets.values() for account, _ in targets}
        accounts.add(self._default_account)
        self._to = {
            account: Connection(plan.address(self.entry, account), f"publisher {name}")
            for account in sorted(accounts)
        }
        self._topics: dict[str, str] = {}
        self._heads: dict[tuple[int, str], list[tuple[Connection, bytes]]] = {}

    @property
    def _default_account(self) -> str:
        return self.plan.default.get(self.entry, self.plan.accounts[0])

    async def open(self) -> None:
        await opened([*self._to.values()])

    def knows(self, flow: int) -> bool:
        return flow in self._targets

    def send(self, publications: Sequence[Publication]) -> None:
        """Frame all for each connection, and hand them over as one."""
        frames: dict[Connection, list[bytes]] = defaultdict(list)
        for one in publications:
            header = Header(self._epoch, one.flow, self._source, one.number, sent_ns=one.sent_ns)
            content = encode(Message(header, one.topic, one.x, one.payload))
            tail = b" %d\r\n%b\r\n" % (len(content), content)
            key = (one.flow, one.topic)
            for connection, head in self._heads.get(key) or self._made_heads(*key):
                frames[connection].append(head + tail)
        for connection, parts in frames.items():
            connection.write_batch(b"".join(parts), len(parts))

    def _made_heads(self, flow: int, topic: str) -> list[tuple[Connection, bytes]]:
        targets: tuple[Target, ...] = self._targets.get(flow, ())
        token = str(flow)
        if flow == NO_FLOW_KNOWN:
            targets, token = ((self._default_account, DEFAULT),), NO_FLOW
        words = subject(topic, self._syntax)
        prefix = self.plan.prefix
        found = [
            (self._to[account], f"PUB {prefix}.{way}.{token}.{words}".encode())
            for account, way in targets
        ]
        self._heads[flow, topic] = found
        return found

    async def drained(self) -> None:
        await asyncio.gather(*(one.drained() for one in self._to.values()))

    async def close(self) -> None:
        for one in self._to.values():
            if one.up:
                with suppress(Refused):
                    await one.flush()
            await one.close()


class NatsIncoming:
    """A subscriber with a connection to each server that sends to it."""

    def __init__(self, plan: NatsPlan, name: str) -> None:
        if name not in plan.listens:
            remedy = "Name one of the plan's subscribers"
            raise InputError(Problem(f"subscriber {name!r}", "is not in the plan", remedy))
        self._from: dict[tuple[int, str], Connection] = {}
        for each in plan.listens[name]:
            at = (each.broker, each.account)
            if at not in self._from:
                self._from[at] = Connection(plan.address(*at), f"subscriber {name}")
            self._from[at].subscribe(each.subject)

    async def open(self, take: Take) -> None:
        for one in self._from.values():
            one.on_message = lambda _sid, _subject, content: take(content)
        await opened([*self._from.values()])

    async def close(self) -> None:
        for one in self._from.values():
            await one.close()
