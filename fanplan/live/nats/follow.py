"""Clients that go from plan to plan: what each does when an operator says so.

Every client listens in the account `local` of one server. Commands are repeated until they are
answered, so each may come twice: then it is only answered again. They are

``prepare``: connect as the next plan says, beside the old one;
``probed``: tell the probes that came on ways of the next plan;
``cut``: publish by the next plan from now on, and end the old one by markers;
``settle``: tell whether the end markers of these publishers have all come;
``leave``: close all connections of the old plan; or ``abandon``: those of the next one.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fanplan.core.errors import FanplanError
from fanplan.live.entry import Entry, load_entry
from fanplan.live.kept import Kept
from fanplan.live.message import GONE, REDELIVERED, Header, Message, encode
from fanplan.live.names import token
from fanplan.live.nats.agent import Agent
from fanplan.live.nats.ends import NatsIncoming, NatsOutgoing, open_all
from fanplan.live.nats.plan import AGAIN, LOCAL, NatsPlan, load_plan
from fanplan.live.nats.reach import PlanReach
from fanplan.live.nats.wire import Connection
from fanplan.live.publisher import Publishing
from fanplan.live.subscriber import Reading, Subscribed
from fanplan.live.transport import Batch

DO, SAID = "fp-switch.do", "fp-switch.said"
SIGN = "fanplan"
"""Connections on which clients listen to commands have it in front of their names."""
PUBLISHER, SUBSCRIBER, AGENT = "publisher", "subscriber", "agent"

Told = dict[str, Any]


class Follower(ABC):
    """One client's ear for commands."""

    kind = ""

    def __init__(self, plan: NatsPlan, name: str) -> None:
        self.plan, self.name, self.id = plan, name, secrets.token_hex(4)
        self.next: NatsPlan | None = None
        self.left: Told = {}
        self._ears: dict[str, Connection] = {}
        self._one_at_a_time = asyncio.Lock()
        self._doing: set[asyncio.Task[None]] = set()

    @abstractmethod
    def place(self, plan: NatsPlan) -> int:
        """The broker at whose server it listens to commands."""

    def subjects(self, _: NatsPlan) -> tuple[str, ...]:
        """What it listens to there."""
        return (DO,)

    async def open(self) -> None:
        await self._listen(self.plan)

    async def _listen(self, plan: NatsPlan) -> None:
        name = f"{SIGN} {self.kind} {self.id} {token(self.name)}"
        ear = Connection(plan.address(self.place(plan), LOCAL), name)
        ear.on_message = partial(self._hear, ear)
        for subject in self.subjects(plan):
            ear.subscribe(subject)
        await open_all([ear])
        self._ears[plan.epoch] = ear

    async def _deafen(self, plan: NatsPlan) -> None:
        if (ear := self._ears.pop(plan.epoch, None)) is not None:
            await ear.close()

    async def close(self) -> None:
        for task in self._doing:
            task.cancel()
        for ear in self._ears.values():
            await ear.close()

    # ---- commands

    def _hear(self, ear: Connection, _: int, __: bytes, content: bytes) -> None:
        told = json.loads(content)
        if self.plan.epoch in (told["old"], told["new"]):
            task = asyncio.get_running_loop().create_task(self._obey(ear, told))
            self._doing.add(task)
            task.add_done_callback(self._doing.discard)

    async def _obey(self, ear: Connection, told: Told) -> None:
        async with self._one_at_a_time:
            try:
                answer = await self._do(told)
            except (FanplanError, OSError, TimeoutError) as error:
                answer = {"error": str(error) or "no answer"}
            said = {"id": self.id, "kind": self.kind, "name": self.name, "did": told["do"]}
            said |= {"turn": told.get("turn", 0), "step": told["new"]} | answer
            # The answer to the last command cannot go where the old plan listens any more.
            for way in [ear] if ear in self._ears.values() else [*self._ears.values()][:1]:
                way.publish(SAID.encode(), json.dumps(said).encode())

    async def _do(self, told: Told) -> Told:
        if self.plan.epoch == told["new"]:
            return self.left  # It has left the old plan already.
        if told["do"] == "prepare":
            return await self._prepare(Path(told["folder"]))
        if self.next is None:
            return {} if told["do"] == "abandon" else {"error": "is not prepared"}
        if told["do"] == "abandon":
            await self.abandon()
            await self._deafen(self.next)
            self.next = None
        elif told["do"] == "leave":
            await self.leave()
            old, self.plan, self.next = self.plan, self.next, None
            await self._deafen(old)
            return self.left
        else:
            return await self.do(told)
        return {}

    async def _prepare(self, folder: Path) -> Told:
        if self.next is None:
            plan = await asyncio.to_thread(load_plan, folder)
            try:
                await self.prepare(folder, plan)
                await self._listen(plan)
            except BaseException:
                await self.abandon()
                raise
            self.next = plan
        return {}

    # ---- what kinds of clients do in their own way

    @abstractmethod
    async def prepare(self, folder: Path, plan: NatsPlan) -> None:
        """Connect as the next plan says."""

    async def do(self, _: Told) -> Told:
        """Other commands; those that are not for this kind are as good as done."""
        return {}

    @abstractmethod
    async def leave(self) -> None:
        """Close what is of the old plan."""

    @abstractmethod
    async def abandon(self) -> None:
        """Close what is of the next plan."""


class PublisherFollower(Follower):
    """A publisher's. ``_old`` is where it sent before it was cut over."""

    kind = PUBLISHER

    def __init__(self, plan: NatsPlan, name: str, client: Publishing) -> None:
        super().__init__(plan, name)
        self.client = client
        self._ready: tuple[Entry, NatsOutgoing] | None = None
        self._old: NatsOutgoing | None = None
        self._ends: Batch | None = None
        self._first, self._turn = 0, 0

    def place(self, plan: NatsPlan) -> int:
        return plan.entries[self.name]

    def subjects(self, plan: NatsPlan) -> tuple[str, ...]:
        again = f"{AGAIN}.{plan.epoch}.{plan.sources.index(self.name)}"
        return (DO,) if self.client.kept is None else (DO, again)

    def _hear(self, ear: Connection, _: int, subject: bytes, content: bytes) -> None:
        if (kept := self.client.kept) is not None and subject.startswith(AGAIN.encode()):
            self._send_again(ear, kept, subject.decode(), json.loads(content))
        else:
            super()._hear(ear, _, subject, content)

    def _send_again(self, ear: Connection, kept: Kept, subject: str, told: Told) -> None:
        """What somebody lost goes to that one alone."""
        _, epoch, source = subject.split(".")
        to, head = told["to"].encode(), partial(Header, bytes.fromhex(epoch), source=int(source))
        for low, high in told["lost"]:
            found, gone = kept.lost((low, high))
            if gone:
                header = head(flow=0, number=gone, channel=GONE, sequence=high)
                ear.publish(to, encode(Message(header, "", (), b"")))
            for (flow, number, sent, topic, x, payload, _), before in found:
                header = head(
                    flow, number=number, channel=REDELIVERED, sequence=before, sent_ns=sent
                )
                ear.publish(to, encode(Message(header, topic, x, payload)))
            kept.again += len(found)

    async def prepare(self, folder: Path, plan: NatsPlan) -> None:
        entry, outgoing = await asyncio.to_thread(self._made, folder, plan)
        self._ready = entry, outgoing
        await outgoing.open()

    def _made(self, folder: Path, plan: NatsPlan) -> tuple[Entry, NatsOutgoing]:
        tables = load_entry(folder)
        return Entry(tables), NatsOutgoing(plan, self.name, tables)

    async def do(self, told: Told) -> Told:
        if told["do"] != "cut" or self._ready is None:
            return {}
        if self._old is None:
            self._old, self._ends, self._first = self.client.cut(*self._ready)
        # A command is repeated until it is answered: markers of a turn are counted, so sent once.
        if told["turn"] > self._turn:
            self._turn = told["turn"]
            if self._ends is not None:
                self._old.send(self._ends)
            self._old.end(self._turn)
        await self._old.drained()
        return {} if self._old.up else {"error": "a server is away"}

    async def close(self) -> None:
        await super().close()
        await self.abandon()
        if self._old is not None:
            await self._old.close()

    async def leave(self) -> None:
        if (kept := self.client.kept) is not None:
            kept.forget(self._first)
            self.left, kept.again = {"sent": kept.again}, 0
        if self._old is not None:
            await self._old.close()
        self._old = self._ready = None
        self._turn = 0

    async def abandon(self) -> None:
        if self._ready is not None and self._old is None:
            await self._ready[1].close()
            self._ready = None


class SubscriberFollower(Follower):
    """A subscriber's. Who is not in the next plan stays until the old one has ended."""

    kind = SUBSCRIBER

    def __init__(self, plan: NatsPlan, name: str, client: Subscribed) -> None:
        super().__init__(plan, name)
        self.client = client

    def place(self, plan: NatsPlan) -> int:
        return next((each.broker for each in plan.listens.get(self.name, ())), 0)

    async def prepare(self, folder: Path, plan: NatsPlan) -> None:
        reading = None
        if self.name in plan.listens:
            tables = await asyncio.to_thread(load_entry, folder)
            incoming = NatsIncoming(plan, self.name)
            reading = Reading(tables, self.name, bytes.fromhex(plan.epoch), incoming, whole=True)
        reach, entries = PlanReach(self.plan), self.plan.entries
        ends = {entry: reach.ends(entry, self.name) for entry in {*entries.values()}}
        await self.client.join(reading, {who: ends[entry] for who, entry in entries.items()})

    async def do(self, told: Told) -> Told:
        handover = self.client.handover
        if handover is None:
            return {}
        if told["do"] == "probed":
            handover.probes = [number for number in handover.probes if number >= told["first"]]
            return {"probes": handover.probes}
        left = {*told.get("sources", ())} - handover.ended
        return {"left": len(left)}

    async def leave(self) -> None:
        await self.client.leave()

    async def abandon(self) -> None:
        await self.client.abandon()


class AgentFollower(Follower):
    """An agent's; a broker that needs none in a plan has one that waits for another plan."""

    kind = AGENT

    def __init__(self, plan: NatsPlan, broker: str) -> None:
        super().__init__(plan, broker)
        self._agents: dict[str, Agent] = {}

    def place(self, plan: NatsPlan) -> int:
        return plan.number.get(self.name, 0)

    async def open(self) -> None:
        await self.prepare(Path(), self.plan)
        await super().open()

    async def prepare(self, _: Path, plan: NatsPlan) -> None:
        if (broker := plan.number.get(self.name, -1)) in plan.agents:
            self._agents[plan.epoch] = Agent(plan, broker)
            await self._agents[plan.epoch].open()

    async def leave(self) -> None:
        await self._end(self.plan.epoch)

    async def abandon(self) -> None:
        for epoch in [epoch for epoch in self._agents if epoch != self.plan.epoch]:
            await self._end(epoch)

    async def _end(self, epoch: str) -> None:
        if (agent := self._agents.pop(epoch, None)) is not None:
            with suppress(OSError):
                await agent.close()

    async def close(self) -> None:
        await super().close()
        for epoch in [*self._agents]:
            await self._end(epoch)
