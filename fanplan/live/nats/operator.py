"""The operator of a switch: it tells clients what to do, step by step, and sees that they did.

Servers get the links and accounts of both plans, clients connect as the new one says, and probes go
from every entry on every way of the new plan until all have come. From here on the new plan is in
force: publishers are cut over and end the old plan by markers; when all markers have come, clients
leave it, and servers lose its links. Commands are repeated until they are answered. Whoever is gone
or does not answer in time is passed over, and told.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fanplan.core.errors import FanplanError, InputError, MachineError, Problem
from fanplan.core.progress import Progress
from fanplan.live.entry import load_entry
from fanplan.live.message import PROBE, Header, Message, encode
from fanplan.live.names import subject
from fanplan.live.nats.follow import AGENT, DO, PUBLISHER, SAID, SUBSCRIBER
from fanplan.live.nats.plan import DEFAULT, LOCAL, NO_FLOW, Listening, NatsPlan, Target
from fanplan.live.nats.reach import PlanReach
from fanplan.live.nats.record import CUTTING, DONE, JOINING, LEAVING, Record, SwitchReport
from fanplan.live.nats.running import Running
from fanplan.live.nats.wire import OPEN_SECONDS, Connection

REPEAT_SECONDS = 0.3
"""After this long a command is repeated, and who is there is asked again."""
GONE_SECONDS = 3.0
"""A client without a connection for this long is gone."""
MOST_PROBES = 20_000
"""Probes of one turn."""
KINDS = (PUBLISHER, SUBSCRIBER, AGENT)


@dataclass
class Client:
    """A client that was seen. ``seen`` is when it was last connected."""

    kind: str
    name: str
    seen: float
    passed: bool = False


@dataclass(frozen=True)
class EntryProbe:
    """A publication at an entry, and how many copies each subscriber must get."""

    entry: int
    targets: tuple[Target, ...]
    rest: str
    copies: Counter[str]


@dataclass
class Operator:
    """One switch."""

    old: NatsPlan
    new: NatsPlan
    record: Record
    timeout: float
    progress: Progress
    clients: dict[str, Client] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    turn: int = 0
    probes: int = 0
    sent_again: int = 0

    def __post_init__(self) -> None:
        self.running = Running((self.old, self.new), self.record.servers, self.timeout)
        self._mouths: dict[str, Connection] = {}
        self._heard = asyncio.Event()

    async def run(self) -> SwitchReport:
        """All steps that are left."""
        self.running.require()
        if await self.in_force():
            return self.report(applied=False)
        try:
            return await self.steps(self.record.starts or await self.running.starts())
        finally:
            await self.silence()

    async def in_force(self) -> bool:
        """Whether the new plan is the only one already."""
        if await self.running.accepts(self.old):
            return False
        if not await self.running.accepts(self.new):
            what = "is not in force, and neither is the new plan"
            raise InputError(Problem(f"plan {self.old.epoch}", what, "Name the export that is"))
        await self.running.reload([self.new])
        self.record = self.record.at(DONE)
        return True

    async def steps(self, starts: dict[str, str]) -> SwitchReport:
        if self.record.phase == JOINING:
            self.record = self.record.at(JOINING)
            try:
                await self.join()
            except BaseException:
                await self.undo()
                raise
            self.record = self.record.at(CUTTING)
        else:
            await self.stage("links", self.links())
            await self.stage("prepare", self.tell("prepare", folder=str(self.record.folder)))
        if self.record.phase == CUTTING:
            await self.stage("cut", self.cut())
        now = await self.running.starts()
        disturbed = tuple(sorted(name for name in now if now[name] != starts.get(name, now[name])))
        if disturbed:
            await self.stage("whole", self.whole())
        self.record = replace(self.record, starts=now).at(LEAVING)
        await self.stage("leave", self.tell("leave"))
        self.sent_again = sum(said.get("sent", 0) for said in self.answers.values())
        await self.stage("unlink", self.running.reload([self.new]))
        self.record = self.record.at(DONE)
        return self.report(disturbed=disturbed)

    async def stage(self, name: str, work: Any) -> Any:
        began = time.monotonic()
        with self.progress.stage(f"switch: {name}"):
            result = await work
        self.seconds[name] = round(time.monotonic() - began, 4)
        return result

    # ---- joining

    async def join(self) -> None:
        """All are connected as the new plan says, and everything reaches everybody there."""
        await self.stage("links", self.links())
        await self.stage("prepare", self.prepare())
        await self.stage("barrier", self.barrier())

    async def links(self) -> None:
        await self.open_mouths(self.old)
        await self.running.reload([self.old, self.new])
        await self.running.linked(self.new)
        await self.open_mouths(self.new)
        await self.see_clients()

    async def prepare(self) -> None:
        self.require_clients()
        deadline = time.monotonic() + self.timeout
        while True:
            await self.tell("prepare", folder=str(self.record.folder))
            if time.monotonic() > deadline:
                self.raise_errors()
            if not any("error" in said for said in self.answers.values()):
                return
            await asyncio.sleep(REPEAT_SECONDS)

    def require_clients(self) -> None:
        """Nobody who speaks would fall silent, and every broker that needs an agent has one."""
        lost = sorted(self.names(PUBLISHER) - {*self.new.entries})
        people = self.names(SUBSCRIBER)
        if people and not people & {*self.new.listens}:
            what = (
                f"has none of the {len(people):,} subscribers that run: it is for another workload"
            )
            raise MachineError(Problem(str(self.record.folder), what, "Name an export for these"))
        without = sorted({self.new.servers[n].broker for n in self.new.agents} - self.names(AGENT))
        if lost:
            what = f"is running, but the new plan does not have it ({len(lost)} of these)"
            raise MachineError(Problem(f"publisher {lost[0]!r}", what, "End it, or plan with it"))
        if without:
            what = f"needs an agent in the new plan, and none is there ({len(without)} of these)"
            remedy = f"Start it: python -m fanplan.live.nats OLD-EXPORT {without[0]}"
            raise MachineError(Problem(f"broker {without[0]!r}", what, remedy))

    def raise_errors(self) -> None:
        for key, said in self.answers.items():
            if "error" in said and said["did"] == "prepare" and not self.clients[key].passed:
                who = f"{said['kind']} {said['name']!r}"
                what = f"cannot follow the new plan ({said['error']})"
                raise MachineError(Problem(who, what, "Put that right, and try again"))

    async def undo(self) -> None:
        """The old plan goes on alone."""
        try:
            if self._mouths:
                await self.tell("abandon", seconds=min(self.timeout, GONE_SECONDS))
            await self.running.reload([self.old])
        except (FanplanError, OSError):
            pass  # What went wrong first is what is told.

    # ---- the barrier

    async def barrier(self) -> None:
        """Probe every way from every entry until all that must come has come."""
        planned = await asyncio.to_thread(self.planned)
        self.probes = len(planned)
        async with self.entries() as senders:
            for at in range(0, len(planned), MOST_PROBES):
                await self.passed_by(planned[at : at + MOST_PROBES], senders)

    def planned(self) -> list[EntryProbe]:
        """A probe for each flow at each entry, and for each topic without a flow."""
        tables, reach = load_entry(self.record.folder), PlanReach(self.new)
        words = [subject(topic, tables.syntax) for topic in tables.topics.names]
        topic = tables.places[:, 0].tolist()
        found = []
        for entry, flows in self.new.publish.items():
            for flow, targets in flows.items():
                own = words[topic[flow]]
                copies = reach.copies(entry, targets, str(flow), own)
                found.append(EntryProbe(entry, targets, f"{flow}.{own}", copies))
        for entry in sorted({*self.new.entries.values()}):
            default = ((self.new.accounts_at(entry)[0], DEFAULT),)
            for own in words:
                copies = reach.copies(entry, default, NO_FLOW, own)
                found.append(EntryProbe(entry, default, f"{NO_FLOW}.{own}", copies))
        return found

    @asynccontextmanager
    async def entries(self) -> AsyncIterator[dict[tuple[int, str], Connection]]:
        """Connections at all entries in all accounts of the new plan."""
        places = [
            (entry, account)
            for entry in sorted({*self.new.entries.values(), *self.new.publish})
            for account in self.new.accounts
        ]
        made: dict[tuple[int, str], Connection] = {}
        try:
            for place in places:
                made[place] = await self.opened(self.new, *place)
            yield made
        finally:
            for one in made.values():
                await one.close()

    async def passed_by(
        self, probes: list[EntryProbe], senders: dict[tuple[int, str], Connection]
    ) -> None:
        """Until all copies of these probes have come."""
        epoch, deadline = bytes.fromhex(self.new.epoch), time.monotonic() + self.timeout
        waiting = [*range(len(probes))]
        while waiting:
            self.turn += 1
            first = self.turn * MOST_PROBES
            for i in waiting:
                header = Header(epoch, PROBE, 0, first + i)
                content = encode(Message(header, "", (), b""))
                for account, way in probes[i].targets:
                    words = f"{self.new.prefix}.{way}.{probes[i].rest}"
                    senders[probes[i].entry, account].publish(words.encode(), content)
            await asyncio.gather(*(one.drained() for one in senders.values()))
            waiting = await self.missing(probes, waiting, first)
            if waiting and time.monotonic() > deadline:
                what = f"{len(waiting)} of {len(probes)} ways do not reach all subscribers"
                remedy = "Look at the servers' logs, and try again"
                raise MachineError(Problem(f"plan {self.new.epoch}", what, remedy))

    async def missing(self, probes: list[EntryProbe], waiting: list[int], first: int) -> list[int]:
        """Probes of a turn that did not come as they must, once no more come."""
        needed: dict[str, dict[int, int]] = defaultdict(dict)
        for i in waiting:
            for name, copies in probes[i].copies.items():
                needed[name][i] = copies
        last: set[int] = set()
        while True:
            await self.tell("probed", (SUBSCRIBER,), first=first, turn=self.turn)
            left: set[int] = set()
            for key in self.alive(SUBSCRIBER):
                came = Counter(n - first for n in self.answers.get(key, {}).get("probes", ()))
                own = needed.get(self.clients[key].name, {})
                left.update(i for i in {*own, *came} if came[i] != own.get(i, 0))
            if not left or left == last:
                return sorted(left)
            last = left
            await asyncio.sleep(0.05)

    # ---- cutting over

    async def cut(self) -> None:
        """Publishers send by the new plan; subscribers have all that they sent by the old one."""
        deadline = time.monotonic() + self.timeout
        while True:
            self.turn += 1
            await self.see_clients()
            await self.tell("prepare", folder=str(self.record.folder))  # Whoever came meanwhile.
            starts = await self.running.starts()
            await self.tell("cut", (PUBLISHER,), turn=self.turn)
            sources = sorted(self.names(PUBLISHER))
            late = await self.unsettled(sources)
            # A server that failed in a turn may have lost what its markers follow.
            if not late and starts == await self.running.starts():
                return
            if time.monotonic() > deadline:
                for key in late:
                    self.clients[key].passed = True
                return

    async def unsettled(self, sources: list[str]) -> set[str]:
        """Subscribers that end markers are missing to; they are then sent once more."""
        left: set[str] = set()
        for _ in range(4):
            await self.tell("settle", (SUBSCRIBER,), turn=self.turn, sources=sources)
            left = {
                key
                for key in self.alive(SUBSCRIBER)
                if self.answers.get(key, {}).get("left") or "error" in self.answers.get(key, {})
            }
            if not left:
                break
            await asyncio.sleep(0.05)
        return left

    async def whole(self) -> None:
        """After a failure: wait until the new plan leads everywhere again."""
        await self.running.linked(self.new)
        await self.barrier()

    # ---- commands

    async def tell(
        self, do: str, kinds: Iterable[str] = KINDS, seconds: float | None = None, **more: Any
    ) -> None:
        """Repeat a command until all of these kinds have answered; the rest is passed over."""
        kinds, turn = {*kinds}, more.get("turn", 0)
        content = json.dumps({"do": do, "old": self.old.epoch, "new": self.new.epoch, **more})
        self.answers = {}
        deadline = time.monotonic() + (self.timeout if seconds is None else seconds)

        def silent() -> set[str]:
            done = {
                k for k, said in self.answers.items() if (said["did"], said["turn"]) == (do, turn)
            }
            return self.alive(*kinds) - done

        while silent():
            for mouth in self._mouths.values():
                if mouth.up:
                    mouth.publish(DO.encode(), content.encode())
            await self.heard(lambda: not silent(), REPEAT_SECONDS)
            if not silent():
                return
            await self.see_clients()
            if time.monotonic() > deadline:
                for key in silent():
                    self.clients[key].passed = True

    async def heard(self, done: Callable[[], bool], seconds: float) -> None:
        """Until it is done, at most this long."""
        deadline = time.monotonic() + seconds
        while not done() and (left := deadline - time.monotonic()) > 0:
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), left)
            except TimeoutError:
                return

    def listen(self, _: int, __: bytes, content: bytes) -> None:
        said = json.loads(content)
        if said["step"] == self.new.epoch:
            self.answers[said["id"]] = said
            self.clients.setdefault(
                said["id"], Client(said["kind"], said["name"], time.monotonic())
            ).seen = time.monotonic()
            self._heard.set()

    async def open_mouths(self, plan: NatsPlan) -> None:
        """A connection to every server; those of the new plan stay to the end."""
        for number, server in enumerate(plan.servers):
            try:
                mouth = await self.opened(plan, number, LOCAL, patient=plan is self.new)
            except MachineError:
                if plan is self.new:
                    raise
                continue  # It has left the old plan already.
            mouth.on_message = self.listen
            mouth.subscribe(SAID)
            await mouth.flush()
            if (before := self._mouths.get(server.broker)) is not None:
                await before.close()
            self._mouths[server.broker] = mouth

    async def opened(
        self, plan: NatsPlan, broker: int, account: str, patient: bool = True
    ) -> Connection:
        """A connection to a server; one that is away is waited for."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                connection = Connection(plan.address(broker, account), "switch")
                return await connection.open(min(OPEN_SECONDS, self.timeout))
            except (OSError, TimeoutError) as error:
                if not patient or time.monotonic() > deadline:
                    where = f"broker {plan.servers[broker].broker!r}"
                    what = f"its server does not answer ({error or 'no answer'})"
                    raise MachineError(Problem(where, what, "Start it, and try again")) from error
            await asyncio.sleep(REPEAT_SECONDS)

    async def silence(self) -> None:
        for mouth in self._mouths.values():
            await mouth.close()

    # ---- who is there

    async def see_clients(self) -> None:
        """Who is connected; who has not been for a while is gone."""
        found, whole = await self.running.clients()
        now = time.monotonic()
        for key, (kind, name) in found.items():
            client = self.clients.setdefault(key, Client(kind, name, now))
            client.seen = now
        for key, client in self.clients.items():
            if whole and key not in found and now - client.seen > GONE_SECONDS:
                client.passed = True

    def alive(self, *kinds: str) -> set[str]:
        return {
            k for k, client in self.clients.items() if client.kind in kinds and not client.passed
        }

    def names(self, kind: str) -> set[str]:
        return {self.clients[key].name for key in self.alive(kind)}

    # ---- the result

    def report(self, applied: bool = True, disturbed: tuple[str, ...] = ()) -> SwitchReport:
        links = [{*links_of(plan)} for plan in (self.old, self.new)]
        both = {*self.old.listens} & {*self.new.listens}
        return SwitchReport(
            self.old.epoch,
            self.new.epoch,
            applied,
            publishers=len(self.alive(PUBLISHER)),
            subscribers=len(self.alive(SUBSCRIBER)),
            agents=len(self.alive(AGENT)),
            links_added=len(links[1] - links[0]),
            links_removed=len(links[0] - links[1]),
            homes_moved=sum(home_of(self.old, who) != home_of(self.new, who) for who in both),
            probes=self.probes,
            turns=self.turn,
            passed=tuple(sorted(f"{c.kind} {c.name}" for c in self.clients.values() if c.passed)),
            disturbed=disturbed,
            sent_again=self.sent_again,
            seconds=self.seconds,
        )


def links_of(plan: NatsPlan) -> Iterable[tuple[str, frozenset[str]]]:
    """Links by the names of their ends, in each tree."""
    for tail, remotes in plan.remotes.items():
        for account, head in remotes:
            yield account, frozenset((plan.servers[tail].broker, plan.servers[head].broker))


def home_of(plan: NatsPlan, who: str) -> str:
    """Where a subscriber listens to the default way, at its own broker."""
    own: list[Listening] = [e for e in plan.listens[who] if e.subject.split(".")[2] == DEFAULT]
    return plan.servers[own[0].broker].broker if own else ""
