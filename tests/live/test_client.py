"""Applications that follow a plan by the library alone: they get what they asked for, once."""

from __future__ import annotations

import asyncio
import csv
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from delivery_datasets import PUBLISHERS, World, world_of
from ready import stages_are_there
from system_worlds import design

from fanplan.core.errors import InputError, MachineError
from fanplan.live import Publisher, Subscriber
from fanplan.live.multicast.plan import HOSTS
from fanplan.live.nats.agent import Agent
from fanplan.live.nats.plan import load_plan
from fanplan.live.subscriber import Delivered
from fanplan.systems.multicast.export import export as export_multicast
from fanplan.systems.multicast.network import batch, inside_namespace, network
from fanplan.systems.nats.export import SERVERS
from fanplan.systems.nats.export import export as export_nats
from fanplan.systems.nats.servers import Servers, free_servers, server_program
from fanplan.systems.params import ExportParams

Sent = list[tuple[str, str, float]]
"""Publisher, topic, value."""


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def draw(world: World, count: int = 300) -> Sent:
    """Publications that were not in the workload: some (flow, entry) pairs have no way."""
    rng = np.random.default_rng(5)
    topics = sorted({want[1] for want in world.wants} & {sent[2] for sent in world.sent})
    names = [*PUBLISHERS]
    return [
        (names[rng.integers(3)], topics[rng.integers(len(topics))], round(float(v), 3))
        for v in rng.uniform(0, 100, count)
    ]


def expected(world: World, sent: Sent, who: str) -> list[tuple[str, float, bytes]]:
    return sorted(
        (topic, value, str(n).encode())
        for n, (_, topic, value) in enumerate(sent)
        if who in world.wanting(topic, value)
    )


@asynccontextmanager
async def agents(folder: Path) -> AsyncIterator[None]:
    plan = load_plan(folder)
    running = [await Agent(plan, broker).open() for broker in plan.agents]
    try:
        yield
    finally:
        for agent in running:
            await agent.close()


@pytest.mark.parametrize("columns", [False, True])
def test_subscribers_on_nats_get_what_they_asked_for(columns: bool, tmp_path: Path) -> None:
    plan, dataset, traffic = design(tmp_path / "world", 1, sent=60)
    world, out = world_of(1, sent=60), tmp_path / "export"
    out.mkdir()
    port = free_servers(traffic.ways.brokers)[0].client
    export_nats(
        plan, dataset, traffic.ways, ExportParams(port=free_port(port, traffic.ways.brokers)), out
    )
    running = Servers(load_plan(out).servers, out / SERVERS, server_program())
    try:
        for broker in range(len(running.servers)):
            running.start(broker)
        running.await_ready()
        await_leafnodes(running, len(traffic.ways.edges[0]))
        asyncio.run(followed(out, world, columns, running))
    finally:
        running.stop()


def await_leafnodes(running: Servers, links: int) -> None:
    """Until every link of the tree is up: both its ends tell of it."""
    end = time.monotonic() + 20
    while sum(len(running.ask(b, "leafz").get("leafs") or ()) for b in running.running) < 2 * links:
        assert time.monotonic() < end
        time.sleep(0.05)


def free_port(near: int, brokers: list[str]) -> int:
    """The first of enough ports in a row that nobody uses."""
    for first in range(min(near, 50_000), 60_000, 40):
        try:
            return free_servers(brokers, first)[0].client
        except MachineError:
            continue
    raise AssertionError("no free ports")


async def interest_rests(running: Servers) -> None:
    """Until no server has learned of an interest for a second: it travels along the tree."""
    before: list[int] = []
    since = time.monotonic()
    while time.monotonic() < since + 1.0:
        now = [running.ask(broker, "subsz")["num_subscriptions"] for broker in running.running]
        if now != before:
            before, since = now, time.monotonic()
        await asyncio.sleep(0.05)


async def followed(out: Path, world: World, columns: bool, running: Servers) -> None:
    sent = draw(world)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(agents(out))
        people = [
            await stack.enter_async_context(Subscriber(out, who)) for who in sorted(world.homes)
        ]
        await interest_rests(running)
        unknown = 0
        for name in PUBLISHERS:
            async with Publisher(out, name) as publisher:
                own = [(n, each) for n, each in enumerate(sent) if each[0] == name]
                if columns:
                    topics, values = [t for _, (_, t, _) in own], [v for _, (_, _, v) in own]
                    payloads = [str(n).encode() for n, _ in own]
                    await publisher.send_columns(topics, {"value": values}, payloads)
                else:
                    for n, (_, topic, value) in own:
                        await publisher.send(topic, {"value": value}, str(n).encode())
                await publisher.flush()
                assert publisher.sent + publisher.unwanted == len(own)
                unknown += publisher.unknown
        assert unknown > 0
        got = await asyncio.gather(
            *(taken(one, len(expected(world, sent, one.name))) for one in people)
        )
        for one, messages in zip(people, got, strict=True):
            found = sorted((m.topic, float(m.attributes["value"]), m.payload) for m in messages)
            assert found == expected(world, sent, one.name)
            assert one.counts.wanted == len(found)
            assert one.counts.foreign == one.counts.stale == one.counts.dropped == 0


async def taken(subscriber: Subscriber, count: int) -> list[Delivered]:
    """So many messages, and whatever else comes shortly after."""
    found: list[Delivered] = []

    async def read() -> None:
        async for message in subscriber:
            found.append(message)
            if len(found) == count:
                await asyncio.sleep(0.3)
                await subscriber.close()

    if not count:
        await subscriber.close()
    await asyncio.wait_for(read(), 20)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_subscribers_on_multicast_get_what_they_asked_for(tmp_path: Path) -> None:
    plan, dataset, traffic = design(tmp_path / "world", 1, brokers=False)
    world, out = replace(world_of(1), brokers=False), tmp_path / "export"
    out.mkdir()
    export_multicast(plan, dataset, traffic.ways, ExportParams(), out)
    names = ["sender", *sorted(world.homes)]
    with network(names, 20) as net:
        hosts = [(who, net.hosts[who].address) for who in names[1:]]
        with (out / HOSTS).open("w", newline="") as file:
            csv.writer(file).writerows([("subscriber", "host"), *hosts])
        batch(net.hosts["sender"].namespace, ["route add default dev eth0"])
        asyncio.run(multicast(out, world, {who: net.hosts[who].namespace for who in names}))


async def multicast(out: Path, world: World, namespaces: dict[str, str]) -> None:
    sent = draw(world)
    async with AsyncExitStack() as stack:
        people = []
        for who in sorted(world.homes):
            with inside_namespace(namespaces[who]):
                people.append(await stack.enter_async_context(Subscriber(out, who)))
        await asyncio.sleep(1.5)  # A new switch floods.
        with inside_namespace(namespaces["sender"]):
            publisher = await stack.enter_async_context(Publisher(out, "p0"))
        for n, (_, topic, value) in enumerate(sent):
            await publisher.send(topic, {"value": value}, str(n).encode())
            if n % 8 == 0:
                await asyncio.sleep(0.01)
        await publisher.flush()
        got = await asyncio.gather(
            *(taken(one, len(expected(world, sent, one.name))) for one in people)
        )
        for one, messages in zip(people, got, strict=True):
            found = sorted((m.topic, float(m.attributes["value"]), m.payload) for m in messages)
            assert found == expected(world, sent, one.name)
            assert one.counts.gaps == 0
        assert sum(one.counts.channels[channel] for one in people for channel in (0, 1)) > 0


def test_other_folders_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an export"):
        Publisher(tmp_path, "p0")
    plan, dataset, traffic = design(tmp_path / "world", 1)
    export_multicast(plan, dataset, traffic.ways, ExportParams(), tmp_path)
    with pytest.raises(InputError, match="'nobody': is not in the plan"):
        Publisher(tmp_path, "nobody")
    with pytest.raises(InputError, match="'nobody': is not in the plan"):
        Subscriber(tmp_path, "nobody")
    with pytest.raises(InputError, match=r"hosts.csv: has no host for 's"):
        asyncio.run(without_hosts(tmp_path))


def test_a_damaged_export_is_named(tmp_path: Path) -> None:
    """Files that were cut, emptied or changed: an export is read, or it is an error of ours."""
    whole = tmp_path / "whole"
    whole.mkdir()
    plan, dataset, traffic = design(tmp_path / "world", 1)
    export_multicast(plan, dataset, traffic.ways, ExportParams(), whole)
    draw, refused = Random(1), 0
    for name in ("entry.json", "entry.npz", "multicast.json", "ways.npz"):
        content = (whole / name).read_bytes()
        at = [draw.randrange(len(content)) for _ in range(12)]
        wrong = [b"", b"[]", b"null", content[: len(content) // 2]]
        wrong += [content[:i] + bytes([content[i] ^ 1 << i % 8]) + content[i + 1 :] for i in at]
        for other in wrong:
            (whole / name).write_bytes(other)
            try:
                Publisher(whole, "p0")
            except InputError:
                refused += 1
        (whole / name).write_bytes(content)
    assert refused >= 24


async def without_hosts(folder: Path) -> None:
    async with Publisher(folder, "p0") as publisher:
        for topic in range(10):
            await publisher.send(f"t{topic}", {"value": 1.0})
