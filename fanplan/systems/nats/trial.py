"""A plan on real NATS servers of this machine: one for each broker, fed with its publications.

Readiness: before the first message a probe goes on every parcel's way, again and again, until all
subscribers have it. Counters are read at rest, before and after. So what is counted in between is
what the publications caused.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.core.progress import Progress
from fanplan.layers.marking.record import MarkingRecord
from fanplan.live.message import Header, Message, encode
from fanplan.live.names import subject
from fanplan.live.nats.agent import Agent
from fanplan.live.nats.plan import LOCAL, Listening, NatsPlan
from fanplan.live.nats.wire import Connection, Refused
from fanplan.plan.stored import StoredPlan
from fanplan.systems.nats.config import write_configs
from fanplan.systems.nats.counters import CLIENT, at_rest, since
from fanplan.systems.nats.enact import Enacting, enacted
from fanplan.systems.nats.receive import DIRECTLY, LAST, Copy, Receiver, Tally, kind_of
from fanplan.systems.nats.servers import (
    Servers,
    free_servers,
    require_room,
    server_program,
    trial_folder,
)
from fanplan.systems.params import TrialParams
from fanplan.systems.traffic import Traffic, read_traffic, received_figures
from fanplan.systems.trial import Tried, compared
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
PERCENTILES = (50, 90, 99)

UNMEASURED = (
    "matches: servers do not count how often they match",
    "control messages: servers do not count what they tell each other of interest",
)


def trial(plan: StoredPlan, dataset: Path, params: TrialParams, progress: Progress) -> Tried:
    """Start servers, send publications of the dataset, and compare."""
    program = server_program()
    traffic = read_traffic(plan, dataset, params.publications)
    require_broker(traffic, params)
    return run_trial(plan, dataset, traffic, params, progress, program)


def run_trial(
    plan: StoredPlan,
    dataset: Path,
    traffic: Traffic,
    params: TrialParams,
    progress: Progress,
    program: str,
    enacting: Traffic | None = None,
) -> Tried:
    """The same of given traffic; servers and clients may follow another's ways, as a control."""
    ways = (enacting or traffic).ways
    servers = free_servers(ways.brokers, params.port)
    made = enacted(plan, dataset, ways, servers)
    require_room(len(servers), connections_of(made))
    with trial_folder() as folder:
        write_configs(made, ways, folder)
        running = Servers(servers, folder, program)
        try:
            with progress.stage(f"start {len(servers)} servers"):
                for broker in range(len(servers)):
                    running.start(broker)
                running.await_ready()
            run = Run(plan, made, traffic, running, params, progress)
            return asyncio.run(run.all())
        finally:
            running.stop()


def require_broker(traffic: Traffic, params: TrialParams) -> None:
    if params.kill is not None and params.kill not in traffic.ways.brokers:
        what, some = f"{params.kill!r} is no broker of the plan", traffic.ways.brokers[:10]
        raise InputError(Problem("kill", what, f"Name one of {', '.join(some)}"))


def connections_of(plan: NatsPlan) -> int:
    people = sum(
        len({(each.broker, each.account) for each in heard}) for heard in plan.listens.values()
    )
    between = sum(len(agent.forward) + 3 for agent in plan.agents.values())
    return people + between + len(plan.servers) * (len(plan.accounts) + 1)


@dataclass
class Run:
    """One run. ``paths`` has (kind, broker) of each subscription of subscribers."""

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
    sent: int = 0
    """Copies that what was sent must cause."""

    async def all(self) -> Tried:
        """From the first connection to the result."""
        stop_on_term()
        async with self.connected():
            with self.progress.stage("wait until everybody is ready"):
                await self.barrier()
            return await self.measured()

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
        except Refused as error:
            raise InputError(Problem("nats", str(error), "See to that, and try again")) from error
        finally:
            for agent in agents:
                await agent.close()
            for one in (*receivers, *self.senders.values()):
                await one.close()

    def receivers(self) -> list[Receiver]:
        found = []
        for who, name in enumerate(self.traffic.ways.subscribers):
            by_place: dict[tuple[int, str], list[Listening]] = defaultdict(list)
            for each in self.made.listens.get(name, ()):
                by_place[each.broker, each.account].append(each)
            for heard in by_place.values():
                # Subscriptions are numbered from 1.
                first = len(self.paths) - 1
                self.paths += [(kind_of(each.subject), each.broker) for each in heard]
                found.append(Receiver(self.made, who, heard, self.tally, first, CLIENT))
        return found

    def observers(self) -> list[Receiver]:
        """Who counts what each broker sends to each channel."""
        sends = self.traffic.ways.sends
        pairs = sorted({*zip(sends.broker.tolist(), sends.channel.tolist(), strict=True)})
        found = []
        for broker in sorted({broker for broker, _ in pairs}):
            own = [channel for at, channel in pairs if at == broker]
            heard = [Listening(broker, LOCAL, f"{self.made.prefix}.c{c}.>") for c in own]
            first = len(self.channels) - 1
            self.channels += [(str(c), self.made.servers[broker].broker) for c in own]
            found.append(Receiver(self.made, 0, heard, self.watched, first, "observer"))
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
        number = int(self.traffic.published.topic[publication])
        return subject(self.traffic.tables.topics.names[number], self.traffic.tables.syntax)

    async def flush(self) -> None:
        await asyncio.gather(*(sender.drained() for sender in self.senders.values()))

    async def send(self, numbers: Iterable[int]) -> None:
        """Publish publications: at their times if there is a speed, and never too far ahead."""
        copies, parcels = self.traffic.copies.tolist(), self.traffic.parcel.tolist()
        began, times = time.monotonic(), self.traffic.published.time
        topics: dict[int, str] = {}
        for done, i in enumerate(numbers):
            if self.params.speed is not None:
                due = began + (times[i] - times[0]) / self.params.speed
                if due > time.monotonic():
                    await self.flush()
                    await asyncio.sleep(due - time.monotonic())
            parcel, topic = parcels[i], int(self.traffic.published.topic[i])
            if topic not in topics:
                topics[topic] = self.topic(i)
            self.post(parcel, self.content(parcel, i, i), topics[topic])
            self.sent += copies[parcel]
            if done % BATCH == BATCH - 1:
                await self.flush()
                await self.room()
        await self.flush()

    async def room(self) -> None:
        """Until not too many copies are under way, or none comes any more."""
        await asyncio.sleep(0)
        seen, since_when = self.tally.count, time.monotonic()
        while self.sent - self.tally.count > WINDOW:
            await asyncio.sleep(0.001)
            if self.tally.count != seen:
                seen, since_when = self.tally.count, time.monotonic()
            elif time.monotonic() - since_when > QUIET:
                return

    async def settled(self) -> None:
        """Until all copies are there, or none has come for a while."""
        seen, since_when = -1, time.monotonic()
        while self.tally.count < self.sent and time.monotonic() - since_when < QUIET:
            if self.tally.count != seen:
                seen, since_when = self.tally.count, time.monotonic()
            await asyncio.sleep(0.005)
        # What is too much would come now.
        await asyncio.sleep(0.1)

    # ---- readiness

    async def barrier(self) -> bool:
        """Probe every parcel until all subscribers of all have one; whether they do."""
        copies = self.traffic.copies
        _, example = np.unique(self.traffic.parcel, return_index=True)
        waiting, turn, best = np.arange(len(copies)), 0, time.monotonic()
        while len(waiting) and time.monotonic() - best < PATIENCE:
            self.tally.taken()
            start = PROBE + turn * len(copies)
            self.sent = int(copies[waiting].sum())
            for parcel in waiting.tolist():
                publication = int(example[parcel])
                content = self.content(parcel, start + parcel, publication)
                self.post(parcel, content, self.topic(publication))
            await self.flush()
            await self.arrived(0.2)
            number = self.tally.taken().number - start
            got = np.bincount(number[number >= 0], minlength=len(copies))
            left = waiting[got[waiting] != copies[waiting]]
            best = time.monotonic() if len(left) < len(waiting) else best
            waiting, turn = left, turn + 1
        await asyncio.sleep(0.1)
        for tally in (self.tally, self.watched):
            tally.taken()
        self.sent = 0
        if len(waiting):
            self.notes.append(f"not ready: {len(waiting)} of {len(copies)} parcels are incomplete")
        return not len(waiting)

    async def arrived(self, seconds: float) -> None:
        """Until all copies are there, or for so long none came."""
        seen, since_when = -1, time.monotonic()
        while self.tally.count < self.sent and time.monotonic() - since_when < seconds:
            if self.tally.count != seen:
                seen, since_when = self.tally.count, time.monotonic()
            await asyncio.sleep(0.002)

    # ---- the result

    async def counters(self) -> Figures:
        return await asyncio.to_thread(at_rest, self.servers, 10.0, time.sleep)

    async def measured(self) -> Tried:
        """All publications, all counters."""
        before, cpu, began = await self.counters(), used_cpu(), time.monotonic()
        with self.progress.stage("send publications") as stage:
            await self.send(range(self.traffic.size))
            await self.settled()
            stage.rows(self.traffic.size)
        seconds, spent = time.monotonic() - began, used_cpu() - cpu
        counted = since(await self.counters(), before)
        copies = self.tally.taken()
        measured = self.received(copies) | counted | self.channel_sends()
        predicted = predicted_figures(self.traffic, self.plan)
        return Tried(
            system="nats",
            plan=str(self.plan.folder),
            rows=compared(predicted, measured),
            facts=self.facts(copies, seconds, spent),
            delays_ms=delays_of(copies),
            unmeasured=unmeasured(self.plan),
            notes=tuple(self.notes),
        )

    def received(self, copies: Copy) -> Figures:
        """What came to subscribers, and from which brokers."""
        kinds = np.array(self.paths, np.int64).reshape(-1, 2)[copies.path]
        found = received_figures(self.traffic, copies.who, copies.number, copies.path)
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

    def facts(self, copies: Copy, seconds: float, spent: float) -> dict[str, float]:
        total = max(len(copies.number), 1)
        return {
            "publications": self.traffic.size,
            "wanted_by_nobody": self.traffic.unwanted_by_all,
            "deliveries": len(copies.number),
            "servers": len(self.made.servers),
            "agents": len(self.made.agents),
            "seconds": seconds,
            "deliveries_per_second": len(copies.number) / seconds,
            "cpu_microseconds_per_delivery": 1e6 * spent / total,
        }


def predicted_figures(traffic: Traffic, plan: StoredPlan) -> Figures:
    """What the plan says, by what servers can count."""
    ways = traffic.ways
    found = ways.counted(traffic.messages, Enacting(ways, plan.record.seal[:8]).means())
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


def delays_of(copies: Copy) -> dict[str, float]:
    if not len(copies.delay_ms):
        return {}
    values = np.percentile(copies.delay_ms, PERCENTILES)
    return {f"p{p}": float(value) for p, value in zip(PERCENTILES, values, strict=True)}


def used_cpu() -> float:
    """Seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def batches(items: list[Connection], size: int) -> Iterable[list[Connection]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def stop_on_term() -> None:
    """A request to end ends the trial as Ctrl-C does, servers included."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
