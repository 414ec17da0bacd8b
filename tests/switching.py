"""Plans that follow each other on one network of servers while publications go on."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import delivery_datasets
import pytest
from delivery_datasets import World, write_world
from system_worlds import SPACE

import fanplan
from fanplan.core.errors import FanplanError
from fanplan.layers.registry import load_plan
from fanplan.live import Publisher, Subscriber
from fanplan.live.message import Message
from fanplan.live.nats.follow import AgentFollower
from fanplan.live.nats.plan import load_plan as load_nats
from fanplan.systems.nats.export import SERVERS, export
from fanplan.systems.nats.servers import Servers, free_servers, server_program
from fanplan.systems.params import ExportParams
from fanplan.systems.traffic import planned_ways

ENDS = (0.0, 25.0, 50.0, 100.0)
"""Where filters begin and end."""
Sent = list[tuple[str, float]]
"""Topic and value of each publication of a publisher."""


@contextmanager
def brokers(count: int, publishers: int) -> Iterator[list[str]]:
    """Worlds have so many brokers and publishers; the names of the publishers."""
    names = [f"p{n}" for n in range(publishers)]
    with pytest.MonkeyPatch.context() as patch:
        sites = {f"b{n}": ("east", "west", None)[n % 3] for n in range(count)}
        patch.setattr(delivery_datasets, "SITES", sites)
        patch.setattr(
            delivery_datasets, "PUBLISHERS", {p: f"b{5 * n % count}" for n, p in enumerate(names)}
        )
        yield names


def world_of(draw: Random, count: int, people: int, publishers: list[str]) -> World:
    """Interest of people in ten topics, at brokers drawn at random."""
    homes = {f"s{i:02d}": f"b{draw.randrange(count)}" for i in range(people)}
    wants = []
    for who in homes:
        for topic in draw.sample(range(10), draw.randint(2, 5)):
            low, high = sorted(draw.sample(ENDS, 2))
            wants.append((who, f"t{topic}", low, high))
    sent = [
        (float(i), draw.choice(publishers), f"t{int(9.99 * draw.random() ** 2)}", 8,
         draw.uniform(0, 100))
        for i in range(300)
    ]  # fmt: skip
    return World(homes, tuple(wants), tuple(sent))


def moved(draw: Random, world: World, count: int) -> World:
    """Some people are at other brokers, and what was sent last is other traffic."""
    homes = dict(world.homes)
    for who in draw.sample(sorted(homes), max(len(homes) // 4, 1)):
        homes[who] = f"b{draw.randrange(count)}"
    sent = [(t, p, draw.choice(world.sent)[2], size, v) for t, p, _, size, v in world.sent]
    return replace(world, homes=homes, sent=tuple(sent))


def exported(folder: Path, world: World, port: int, seed: int = 0, **options: Any) -> Path:
    """The export of a design for a world; with a seed its trees are drawn."""
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world, **SPACE))
    if seed:
        # Trees that have nothing in common, so that links move.
        trees = fanplan.overlay(dataset, metric="random", seed=seed).save(folder / "trees")
        options |= {"fixed": {"overlay": trees}}
    plan = load_plan(fanplan.design(dataset, **options).save(folder / "plan"))
    out = folder / "export"
    out.mkdir()
    export(plan, dataset.path, planned_ways(plan, dataset.path), ExportParams(port=port), out)
    return out


def free_port(count: int) -> int:
    """The first of enough ports in a row that nobody uses."""
    # Runs beside this one begin elsewhere.
    for first in range(21_000 + 200 * (os.getpid() % 100), 60_000, 200):
        with suppress(FanplanError):
            return free_servers([str(n) for n in range(count)], first)[0].client
    raise AssertionError("no free ports")


@contextmanager
def served(folder: Path) -> Iterator[Servers]:
    """The servers of an export, until the end."""
    running = Servers(load_nats(folder).servers, folder / SERVERS, server_program())
    try:
        for broker in range(len(running.servers)):
            running.start(broker)
        running.await_ready()
        yield running
    finally:
        running.stop()


@dataclass
class Applications:
    """Publishers, subscribers and agents of an export, and what they sent and got."""

    world: World
    publishers: dict[str, Publisher]
    subscribers: dict[str, Subscriber]
    agents: dict[str, AgentFollower]
    sent: dict[str, Sent] = field(default_factory=lambda: defaultdict(list))
    got: dict[str, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    epoch: dict[tuple[str, str, int], str] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    async def publish(self, name: str, draw: Random, pause: float = 0.002) -> None:
        """Until it is cancelled: a few publications, and a pause."""
        topics = sorted({want[1] for want in self.world.wants} & {s[2] for s in self.world.sent})
        own, publisher = self.sent[name], self.publishers[name]
        while True:
            for _ in range(draw.randint(1, 4)):
                topic, value = draw.choice(topics), round(draw.uniform(0, 100), 3)
                own.append((topic, value))
                await publisher.send(
                    topic, {"value": value}, f"{name} {self.before[name] + len(own) - 1}".encode()
                )
            await asyncio.sleep(pause)

    def wanted(self, who: str, name: str) -> list[int]:
        """Numbers of a publisher's publications that a subscriber must have got."""
        boxes = [(t, lo, hi) for own, t, lo, hi in self.world.wants if own == who]
        return [
            n
            for n, (topic, value) in enumerate(self.sent[name])
            if any(t == topic and lo <= value < hi for t, lo, hi in boxes)
        ]

    def missed(self) -> int:
        return sum(
            len({*self.wanted(who, name)} - {*self.got[who][name]})
            for who in self.subscribers
            for name in self.publishers
        )

    def twice(self) -> int:
        lists = [own for of in self.got.values() for own in of.values()]
        return sum(len(own) - len({*own}) for own in lists)

    def out_of_order(self) -> list[str]:
        """Of a source and a flow, whatever plan it went by: topics are cut where filters end."""
        found = []
        for who, of in self.got.items():
            for name, numbers in of.items():
                last: dict[tuple[str, int], int] = {}
                for n in numbers:
                    topic, value = self.sent[name][n]
                    flow = topic, sum(value >= end for end in ENDS)
                    if n < (before := last.get(flow, n)):
                        epochs = self.epoch[who, name, n], self.epoch[who, name, before]
                        found.append(f"{who} {name} {n} {epochs[0]} after {before} {epochs[1]}")
                    last[flow] = n
        return found

    @property
    def delivered(self) -> int:
        return sum(len(own) for of in self.got.values() for own in of.values())

    def forget(self) -> None:
        """What was sent until now was for practice."""
        for name, own in self.sent.items():
            self.before[name] += len(own)
            own.clear()
        self.got.clear()
        self.epoch.clear()

    async def arrived(self, seconds: float = 20.0) -> None:
        """Until nothing is missed, or nothing has come for a while."""
        for publisher in self.publishers.values():
            await publisher.flush()
        last, rests = -1, 0.0
        while self.missed() and rests < seconds:
            rests = 0.0 if self.delivered != last else rests + 0.2
            last = self.delivered
            await asyncio.sleep(0.2)


@asynccontextmanager
async def applications(
    folder: Path, world: World, publishers: list[str], durable: bool = False
) -> AsyncIterator[Applications]:
    """All clients of an export, once everything reaches everybody."""
    plan = load_nats(folder)
    async with AsyncExitStack() as stack:
        found = Applications(world, {}, {}, {})
        for broker in plan.number:
            agent = found.agents[broker] = AgentFollower(plan, broker)
            stack.push_async_callback(agent.close)
            await agent.open()
        for who in sorted(world.homes):
            own = Subscriber(folder, who)
            own._deliver = taker(found, who)
            found.subscribers[who] = await stack.enter_async_context(own)
        for name in publishers:
            one = Publisher(folder, name, durable=durable)
            found.publishers[name] = await stack.enter_async_context(one)
        yield found


def taker(found: Applications, who: str) -> Callable[[Message], None]:
    def take(message: Message) -> None:
        name, number = message.payload.decode().rsplit(maxsplit=1)
        if (n := int(number) - found.before[name]) >= 0:
            found.got[who][name].append(n)
            found.epoch[who, name, n] = message.header.epoch.hex()

    return take


@asynccontextmanager
async def traffic(found: Applications, seed: int = 0, pause: float = 0.002) -> AsyncIterator[None]:
    """Publications go on meanwhile."""
    tasks = [
        asyncio.create_task(found.publish(name, Random(f"{seed} {name}"), pause))
        for name in found.publishers
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for each in ended:
            if not isinstance(each, asyncio.CancelledError):
                raise AssertionError("a publisher ended") from each


async def links_there(running: Servers, export: Path) -> None:
    """Until the links of a plan are there."""
    links = sum(map(len, load_nats(export).remotes.values()))
    while sum(len(running.ask(b, "leafz").get("leafs") or ()) for b in running.running) < 2 * links:
        await asyncio.sleep(0.05)


async def first_ones(found: Applications) -> None:
    """Until what is published reaches everybody; only what is published later counts."""
    for _ in range(20):
        async with traffic(found):
            await asyncio.sleep(0.3)
        await found.arrived(0.5)
        reached = not found.missed()
        found.forget()
        if reached:
            return
    raise AssertionError("not everybody is reached")
