"""A run of a plan on servers: everybody connects, publications are sent, all is counted."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.progress import Progress
from fanplan.layers.marking.record import MarkingRecord
from fanplan.live.message import Header, Message, encode
from fanplan.live.names import subject
from fanplan.live.nats.agent import Agent
from fanplan.live.nats.plan import LOCAL, Listening, NatsPlan
from fanplan.live.nats.wire import Connection
from fanplan.plan.stored import StoredPlan
from fanplan.systems.nats.counters import CLIENT, at_rest, since
from fanplan.systems.nats.enact import Enacting, epoch_name
from fanplan.systems.nats.receive import DIRECTLY, LAST, Copy, CountingReceiver, Tally, subject_kind
from fanplan.systems.nats.servers import Servers
from fanplan.systems.params import TrialParams
from fanplan.systems.traffic import Traffic, received_figures
from fanplan.systems.trial import Tried, compared, percentiles
from fanplan.systems.ways import Figures

PROBE = 1 << 48
"""Probes are numbered from here."""
WINDOW = 20_000
"""Copies that may be under way."""
BATCH = 64
PATIENCE = 5.0
"""Seconds without any progress until a barrier is given up."""
QUIET = 1.0
"""Seconds without a copy after which none is expected any more."""
MOST_PAYLOAD = 1024

UNMEASURED = (
    "matches: servers do not count how often they match",
    "control messages: servers do not count what they tell each other of interest",
)


@dataclass
class Run:
    """One run. ``paths`` has (kind, broker) of each subscription of subscribers, ``channels`` the
    channel and broker of each subscription of observers."""

    plan: StoredPlan
    made: NatsPlan
    traffic: Traffic
    servers: Servers
    params: TrialParams
    progress: Progress
    tally: Tally = field(default_factory=Tally)
    watched: Tally = field(default_factory=Tally)
    paths: list[tuple[int, int]] = field(default_factory=list)
    channels: list[tuple[str, str]] = field(default_factory=list)
    senders: dict[tuple[int, str], Connection] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    late: list[Copy] = field(default_factory=list)
    kept: Callable[[int, int, bytes], None] | None = None
    topics: dict[int, str] = field(default_factory=dict)
    sent: int = 0
    """Copies that what was sent must cause."""

    # ---- connections

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Subscribers, observers of channels, agents and publishers; closed at the end."""
        receivers = [*self.receivers(), *self.observers()]
        agents = [Agent(self.made, broker) for broker in self.made.agents]
        self.senders = {
            (entry, account): Connection(self.made.address(entry, account), "publisher")
            for entry in sorted({*self.traffic.ways.entry.tolist()})
            for account in self.made.accounts
        }
        try:
            for some in batches([*receivers, *self.senders.values()], 100):
                await asyncio.gather(*(one.open() for one in some))
            await asyncio.gather(*(agent.open() for agent in agents))
            yield
        except (OSError, TimeoutError) as error:
            what = f"a server no longer answers ({error or 'no answer'})"
            raise InputError(Problem("nats", what, "Put that right, and try again")) from error
        finally:
            for agent in agents:
                await agent.close()
            for one in (*receivers, *self.senders.values()):
                await one.close()

    def receivers(self) -> list[CountingReceiver]:
        found = []
        for who, name in enumerate(self.traffic.ways.subscribers):
            by_place: dict[tuple[int, str], list[Listening]] = defaultdict(list)
            for each in self.made.listens.get(name, ()):
                by_place[each.broker, each.account].append(each)
            for heard in by_place.values():
                # Subscriptions are numbered from 1.
                first = len(self.paths) - 1
                self.paths += [(subject_kind(each.subject), each.broker) for each in heard]
                found.append(CountingReceiver(self.made, who, heard, self.tally, first, CLIENT))
        return found

    def observers(self) -> list[CountingReceiver]:
        """Who counts what each broker sends to each channel."""
        sends = self.traffic.ways.sends
        pairs = sorted({*zip(sends.broker.tolist(), sends.channel.tolist(), strict=True)})
        found = []
        for broker in sorted({broker for broker, _ in pairs}):
            own = [channel for at, channel in pairs if at == broker]
            heard = [Listening(broker, LOCAL, f"{self.made.prefix}.c{c}.>") for c in own]
            first = len(self.channels) - 1
            self.channels += [(str(c), self.made.servers[broker].broker) for c in own]
            found.append(CountingReceiver(self.made, 0, heard, self.watched, first, "observer"))
        return found

    # ---- sending

    def post(self, parcel: int, content: bytes, topic: str) -> None:
        """Publish on all that leads away from the entry of a parcel."""
        ways = self.traffic.ways
        entry, flow = int(ways.entry[parcel]), int(ways.flow[parcel])
        for account, way in self.made.publish.get(entry, {}).get(flow, ()):
            words = f"{self.made.prefix}.{way}.{flow}.{topic}".encode()
            self.senders[entry, account].publish(words, content)

    def content(self, parcel: int, number: int, publication: int) -> bytes:
        published = self.traffic.published
        topic = int(published.topic[publication])
        axes = int(self.traffic.tables.dimensions[topic])
        header = Header(
            bytes.fromhex(self.made.epoch),
            int(self.traffic.ways.flow[parcel]),
            int(published.publisher[publication]),
            number,
            sent_ns=time.time_ns(),
        )
        x = tuple(published.x[publication, :axes].tolist())
        payload = bytes(min(int(published.bytes[publication]), MOST_PAYLOAD))
        return encode(Message(header, self.traffic.tables.topics.names[topic], x, payload))

    def topic(self, publication: int) -> str:
        """The topic of a publication in a subject."""
        tables, number = self.traffic.tables, int(self.traffic.published.topic[publication])
        if number not in self.topics:
            self.topics[number] = subject(tables.topics.names[number], tables.syntax)
        return self.topics[number]

    def copies_of(self, parcel: int) -> int:
        """How many copies of a parcel subscribers get."""
        return int(self.traffic.copies[parcel])

    async def flush(self) -> None:
        await asyncio.gather(*(sender.drained() for sender in self.senders.values()))

    async def send(self, numbers: range, seconds: float | None = None) -> None:
        """Publish publications: at their times if there is a speed, and never too far ahead.

        With ``seconds`` they are spread over this long, whoever keeps up.
        """
        copies, parcels = self.traffic.copies.tolist(), self.traffic.parcel.tolist()
        due = self.due(numbers, seconds)
        began = time.monotonic()
        for done, i in enumerate(numbers):
            if due is not None and began + due[done] > time.monotonic():
                await self.flush()
                await asyncio.sleep(began + due[done] - time.monotonic())
            parcel = parcels[i]
            content = self.content(parcel, i, i)
            if self.kept is not None:
                self.kept(int(self.traffic.ways.entry[parcel]), i, content)
            self.post(parcel, content, self.topic(i))
            self.sent += copies[parcel]
            if done % BATCH == BATCH - 1:
                await self.flush()
                await asyncio.sleep(0) if seconds else await self.room()
        await self.flush()

    def due(self, numbers: range, seconds: float | None) -> list[float] | None:
        """When each is published, in seconds; None: as soon as all keep up."""
        if seconds is not None:
            return [seconds * done / len(numbers) for done in range(len(numbers))]
        if self.params.speed is None or not numbers:
            return None
        times = self.traffic.published.time[numbers.start : numbers.stop]
        return [float(t) for t in (times - times[0]) / self.params.speed]

    async def room(self) -> None:
        """Until not too many copies are under way, or none comes any more."""
        await asyncio.sleep(0)
        await self.arrived(QUIET, WINDOW)

    async def settled(self) -> None:
        """Until all copies are there, or none has come for a while."""
        await self.arrived(QUIET)
        # What is too much would come now.
        await asyncio.sleep(0.1)

    async def arrived(self, seconds: float, under_way: int = 0) -> None:
        """Until no more copies than that are under way, or for this long none came."""
        seen, since_when = -1, time.monotonic()
        while self.sent - self.tally.count > under_way and time.monotonic() - since_when < seconds:
            if self.tally.count != seen:
                seen, since_when = self.tally.count, time.monotonic()
            await asyncio.sleep(0.002)

    # ---- readiness

    async def barrier(self) -> bool:
        """Probe every parcel until all subscribers of all have one; whether they do."""
        copies = self.traffic.copies
        _, example = np.unique(self.traffic.parcel, return_index=True)
        waiting, turn, best = np.arange(len(copies)), 0, time.monotonic()
        while len(waiting) and time.monotonic() - best < PATIENCE:
            self.take_probes()
            start = PROBE + turn * len(copies)
            self.sent = int(copies[waiting].sum())
            for parcel in waiting.tolist():
                publication = int(example[parcel])
                content = self.content(parcel, start + parcel, publication)
                self.post(parcel, content, self.topic(publication))
            await self.flush()
            await self.arrived(0.2)
            number = self.take_probes() - start
            got = np.bincount(number[number >= 0], minlength=len(copies))
            left = waiting[got[waiting] != copies[waiting]]
            best = time.monotonic() if len(left) < len(waiting) else best
            waiting, turn = left, turn + 1
        await asyncio.sleep(0.1)
        self.take_probes()
        self.watched.taken()
        self.sent = 0
        if len(waiting):
            self.notes.append(f"not ready: {len(waiting)} of {len(copies)} parcels are incomplete")
        return not len(waiting)

    def take_probes(self) -> Longs:
        """Numbers of the probes that came; other copies come late, and are kept."""
        copies = self.tally.taken()
        other = copies.number < PROBE
        if other.any():
            self.late.append(copies.only(other))
        return copies.number[~other]

    # ---- the result

    async def counters(self) -> Figures:
        return await asyncio.to_thread(at_rest, self.servers, 10.0, time.sleep)

    async def measured(self, first: int = 0) -> Tried:
        """All publications from ``first`` on, all counters."""
        before, cpu, began = await self.counters(), self.used_cpu(), time.monotonic()
        with self.progress.stage("send publications") as stage:
            await self.send(range(first, self.traffic.size))
            await self.settled()
            stage.rows(self.traffic.size - first)
        seconds, spent = time.monotonic() - began, self.used_cpu() - cpu
        counted = since(await self.counters(), before)
        copies, traffic = self.taken_since(first), self.traffic.since(first)
        measured = self.received(traffic, copies) | counted | self.channel_sends()
        return Tried(
            system="nats",
            plan=str(self.plan.folder),
            rows=compared(predicted_figures(traffic, self.plan), measured),
            facts=self.facts(copies, seconds, spent.tolist()),
            delays_ms=percentiles(copies.delay_ms),
            unmeasured=unmeasured(self.plan),
            notes=tuple(self.notes),
        )

    def taken_since(self, first: int) -> Copy:
        """Copies of publications from ``first`` on; earlier ones come late, and probes do not
        count."""
        copies = self.tally.taken()
        copies = copies.only(copies.number < PROBE)
        self.late.append(copies.only(copies.number < first))
        return copies.only(copies.number >= first)

    def received(self, traffic: Traffic, copies: Copy) -> Figures:
        """What came to subscribers, and from which brokers."""
        kinds = np.array(self.paths, np.int64).reshape(-1, 2)[copies.path]
        found = received_figures(traffic, copies.who, copies.number, copies.path)
        for kind, what in ((LAST, "last hops"), (DIRECTLY, "direct")):
            counts = np.bincount(kinds[kinds[:, 0] == kind, 1], minlength=len(self.made.servers))
            for server, count in zip(self.made.servers, counts.tolist(), strict=True):
                if count:
                    found["broker", server.broker, what] = count
        return found

    def channel_sends(self) -> Figures:
        counts = np.bincount(self.watched.taken().path, minlength=len(self.channels)).tolist()
        pairs = zip(self.channels, counts, strict=True)
        return {("channel", *names): count for names, count in pairs if count}

    def used_cpu(self) -> Floats:
        """Seconds of this process, which has all clients and agents, and of all servers."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return np.array([used.ru_utime + used.ru_stime, self.servers.used_cpu()])

    def facts(self, copies: Copy, seconds: float, spent: list[float]) -> dict[str, float]:
        each = 1e6 / max(len(copies.number), 1)
        return {
            "publications": self.traffic.size,
            "wanted_by_nobody": self.traffic.unwanted_by_all,
            "deliveries": len(copies.number),
            "servers": len(self.made.servers),
            "agents": len(self.made.agents),
            "seconds": seconds,
            "deliveries_per_second": len(copies.number) / seconds,
            "client_cpu_microseconds_per_delivery": each * spent[0],
            "server_cpu_microseconds_per_delivery": each * spent[1],
        }


def predicted_figures(traffic: Traffic, plan: StoredPlan) -> Figures:
    """What the plan says, by what servers can count."""
    ways = traffic.ways
    found = ways.counted(traffic.messages, Enacting(ways, epoch_name(plan)).means())
    sizes = np.bincount(ways.members[0], minlength=len(ways.domains)).tolist()
    handed: dict[str, int] = defaultdict(int)
    for key, count in found.items():
        if key[0] == "broker":
            handed[key[1]] += count
        elif key[0] == "channel":
            handed[key[2]] += count * sizes[int(key[1])]
    return found | {("broker", name, "to subscribers"): n for name, n in handed.items() if n}


def unmeasured(plan: StoredPlan) -> tuple[str, ...]:
    marks = ("marks: NATS decides itself where interest travels",)
    return UNMEASURED + (marks if plan.has(MarkingRecord) else ())


def batches(items: list[Connection], size: int) -> Iterable[list[Connection]]:
    return (items[at : at + size] for at in range(0, len(items), size))
