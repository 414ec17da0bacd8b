"""Messages per second of publishers and subscribers, against plain nats-py and plain sockets.

One server, 400 topics with two attributes, 200 subscribers with 5,000 regions: every publication is
matched with all of them. Each way of sending gets the same topics and payloads, and ends when the
server has answered that it has all. Rates are by the clock and by the processor time of the client.

    python benchmarks/live.py [--messages 200000]
    python benchmarks/live.py --trial DIR    # 50 brokers, 200,000 publications, on real servers
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nats
import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.live import Publisher, Subscriber
from fanplan.live.entry import Entry, EntryTables, save_entry
from fanplan.live.message import Header, Message, encode
from fanplan.live.multicast.plan import MulticastPlan, SentWays
from fanplan.live.multicast.sockets import Sender
from fanplan.live.nats.plan import Listening, NatsPlan, Server
from fanplan.live.points import Topics
from fanplan.live.transport import Publication
from fanplan.systems.nats.servers import HOST, free_servers, server_program
from fanplan.workload.space import NumberAttribute, Space

TOPICS, PEOPLE, REGIONS, PAYLOAD = 400, 200, 5_000, bytes(64)
EPOCH = "00fa0001"
PAIR = ("price", "size")
RUNS = 4

Sent = tuple[list[str], Floats]
"""Topics, and their attributes as columns."""


# ---- a world without Spark


def tables_of(rng: np.random.Generator) -> EntryTables:
    """Regions drawn at random, and the flows of many publications."""
    space = Space(tuple(NumberAttribute(name, 0.0, 100.0) for name in PAIR))
    low = rng.uniform(0, 60, (REGIONS, 2))
    topic, who = rng.integers(0, TOPICS, REGIONS), rng.integers(1, PEOPLE, REGIONS)
    # The first subscriber wants all of every topic.
    whole = np.zeros((TOPICS, 2))
    nothing = np.empty(0, np.int64)
    made = EntryTables(
        topics=Topics(tuple(f"quotes.s{t:03d}" for t in range(TOPICS)), (space,), (0,) * TOPICS),
        syntax="nats",
        subscribers=tuple(f"s{s:03d}" for s in range(PEOPLE)),
        matched=True,
        box_topic=np.append(topic, np.arange(TOPICS)),
        box_subscriber=np.append(who, np.zeros(TOPICS, np.int64)),
        lo=np.concatenate((low, whole)),
        hi=np.concatenate((low + rng.uniform(10, 60, (REGIONS, 2)), whole + 101.0)),
        places=np.empty((0, 6), np.int64),
        flow_wanted=nothing,
        edge_topic=nothing,
        edge_axis=nothing,
        edge_count=nothing,
        edges=np.empty(0),
    )
    topic, x = points(rng, 300_000)
    keys, empty = Entry(
        replace(made, places=np.full((1, 6), -1), flow_wanted=np.zeros(1, np.int64))
    ).places(topic, x)
    places, first = np.unique(keys, axis=0, return_index=True)
    return replace(made, places=places, flow_wanted=1 - empty[first].astype(np.int64))


def points(rng: np.random.Generator, count: int) -> tuple[Longs, Floats]:
    return rng.integers(0, TOPICS, count), rng.uniform(0, 100, (count, 2)).round(2)


def write_export(folder: Path, tables: EntryTables, server: Server) -> None:
    """A plan with one broker: everything that somebody wants goes to whoever listens."""
    flows = np.flatnonzero(tables.flow_wanted).tolist()
    plan = NatsPlan(
        epoch=EPOCH,
        password="",
        accounts=("tree0",),
        servers=(server,),
        entries={"p": 0},
        publish={0: dict.fromkeys(flows, (("tree0", "0"),))},
        default={0: "tree0"},
        listens={"s000": (Listening(0, "tree0", f"fp.{EPOCH}.>"),)},
        agents={},
        remotes={},
    )
    plan.save(folder)
    save_entry(tables, folder)


@contextmanager
def running(server: Server) -> Iterator[None]:
    command = [server_program(), "-a", server.host, "-p", str(server.client)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex((server.host, server.client)):
            time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


# ---- publishing

Rates = tuple[float, float]
"""Messages per second by the clock, and by the processor time of this process."""
Work = Callable[[], Awaitable[None]]


async def best_of(work: Work, count: int) -> Rates:
    """The best of some runs: the first compiles, and meets cells that it does not know yet."""
    best = (0.0, 0.0)
    for _ in range(RUNS):
        clock, cpu = time.perf_counter(), time.process_time()
        await work()
        found = count / (time.perf_counter() - clock), count / (time.process_time() - cpu)
        best = (max(best[0], found[0]), max(best[1], found[1]))
    return best


async def publish_plain(server: Server, sent: Sent) -> Rates:
    """nats-py as its manual has it, to a subject per topic."""
    connection = await nats.connect(f"nats://{server.host}:{server.client}")

    async def work() -> None:
        for topic in sent[0]:
            await connection.publish(topic, PAYLOAD)
        await connection.flush()

    rates = await best_of(work, len(sent[0]))
    await connection.close()
    return rates


async def publish_each(folder: Path, sent: Sent) -> Rates:
    """`send`, one after the other."""
    given = [
        (topic, dict(zip(PAIR, row, strict=True)))
        for topic, row in zip(sent[0], sent[1].tolist(), strict=True)
    ]
    async with Publisher(folder, "p") as publisher:

        async def work() -> None:
            for topic, attributes in given:
                await publisher.send(topic, attributes, PAYLOAD)
            await publisher.flush()

        return await best_of(work, len(given))


async def publish_columns(folder: Path, sent: Sent, runs: int = 0) -> Rates:
    """`send_columns`, all at once."""
    named = {name: sent[1][:, axis] for axis, name in enumerate(PAIR)}
    payloads = [PAYLOAD] * len(sent[0])
    async with Publisher(folder, "p") as publisher:

        async def work() -> None:
            await publisher.send_columns(sent[0], named, payloads)
            await publisher.flush()

        if runs:
            await work()
            return 0.0, 0.0
        return await best_of(work, len(payloads))


# ---- receiving


def feed(folder: Path, server: Server, sent: Sent, plain: bool) -> None:
    """In a process of its own: send all once, as quickly as can be."""
    asyncio.run(raw(server, sent[0]) if plain else publish_columns(folder, sent, 1))


async def raw(server: Server, topics: list[str]) -> None:
    """Frames to the server in batches."""
    reader, writer = await asyncio.open_connection(server.host, server.client)
    writer.write(b'CONNECT {"verbose":false}\r\n')
    frames = [b"PUB %b %d\r\n%b\r\n" % (t.encode(), len(PAYLOAD), PAYLOAD) for t in topics]
    for at in range(0, len(frames), 200):
        writer.write(b"".join(frames[at : at + 200]))
        await writer.drain()
    writer.write(b"PING\r\n")
    while b"PONG" not in await reader.readline():
        pass
    writer.close()


Messages = AsyncIterator[object]


async def receive(take: Messages, folder: Path, server: Server, sent: Sent, plain: bool) -> Rates:
    """How quickly one subscriber takes what another process sends, from the first on."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=feed, args=(folder, server, sent, plain))
    first = asyncio.ensure_future(anext(take))
    await asyncio.sleep(0.2)
    process.start()
    await first
    clock, cpu, got = time.perf_counter(), time.process_time(), 1
    while got < len(sent[0]):
        await anext(take)
        got += 1
    rates = got / (time.perf_counter() - clock), got / (time.process_time() - cpu)
    process.join()
    return rates


async def receive_plain(folder: Path, server: Server, sent: Sent) -> Rates:
    connection = await nats.connect(f"nats://{server.host}:{server.client}")
    many = 1 << 40
    subscription = await connection.subscribe(
        "quotes.>", pending_msgs_limit=many, pending_bytes_limit=many
    )
    rates = await receive(aiter(subscription.messages), folder, server, sent, True)
    await connection.close()
    return rates


async def receive_planned(folder: Path, server: Server, sent: Sent) -> Rates:
    """By the library, for somebody who wants all of it; each is matched and looked up."""
    async with Subscriber(folder, "s000") as subscriber:
        return await receive(aiter(subscriber), folder, server, sent, False)


# ---- sockets


async def datagrams(sent: Sent) -> tuple[Rates, Rates]:
    """A plain socket, and the sender of the library, to an address whose buffer runs over."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind((HOST, 0))
        port = sink.getsockname()[1]
        ways = SentWays(np.empty((0, 4), np.int64), np.zeros((1, 4), np.int64))
        plan = MulticastPlan(bytes(4), port, (), ("",), {"p": 0}, ("s",), {}, ways, {"s": HOST})
        many = [Publication(0, n, 0, topic, (1.0, 2.0), PAYLOAD) for n, topic in enumerate(sent[0])]
        sender = Sender(plan, "p")
        await sender.open()
        header = Header(bytes(4), 0, 0, 0)
        contents = [encode(Message(header, topic, (1.0, 2.0), PAYLOAD)) for topic in sent[0]]

        async def plain() -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                for content in contents:
                    own.sendto(content, (HOST, port))

        async def ours() -> None:
            sender.send(many)

        rates = await best_of(plain, len(many)), await best_of(ours, len(many))
        await sender.close()
        return rates


# ---- a plan on many servers


def trial(folder: Path) -> None:
    """Fifty brokers and 200,000 publications through real servers."""
    import fanplan

    workload = folder / "firm"
    if not (folder / "dataset" / "manifest.json").is_file():
        fanplan.generate("enterprise", workload, publications=200_000, sites=25, replace=True)
    dataset = fanplan.ingest(workload, folder / "dataset")
    brokers = len(dataset.table("brokers"))
    plan = fanplan.design(dataset, channels=16).save(folder / "plan", replace=True)
    found = fanplan.trial(plan, dataset)
    print(f"{brokers} brokers, {'as predicted' if found.ok else 'NOT as predicted'}")
    for name, value in {**found.facts, **found.delays_ms}.items():
        print(f"{name:32} {value:,.3f}")


# ---- all of it


def show(name: str, rates: Rates, peer: Rates | None = None) -> None:
    ratios = (
        "" if peer is None else "".join(f"{a / b:10.2f}" for a, b in zip(rates, peer, strict=True))
    )
    print(f"{name:44}{rates[0]:14,.0f}{rates[1]:14,.0f}{ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--trial", type=Path)
    given = parser.parse_args()
    if given.trial:
        trial(given.trial)
        return
    rng = np.random.default_rng(0)
    tables = tables_of(rng)
    numbers, columns = points(rng, given.messages)
    sent = ([tables.topics.names[number] for number in numbers], columns)
    server = free_servers(["b"])[0]
    print(f"{tables.flows:,} flows; messages per second by the clock and by processor time, ratios")
    with tempfile.TemporaryDirectory() as name, running(server):
        folder = Path(name)
        write_export(folder, tables, server)
        plain = asyncio.run(publish_plain(server, sent))
        show("publish: plain nats-py, no matching", plain)
        show("publish: one by one, matched", asyncio.run(publish_each(folder, sent)), plain)
        show("publish: columns, matched", asyncio.run(publish_columns(folder, sent)), plain)
        plain = asyncio.run(receive_plain(folder, server, sent))
        show("receive: plain nats-py", plain)
        ours = asyncio.run(receive_planned(folder, server, sent))
        show("receive: library, selectors evaluated", ours, plain)
        plain, ours = asyncio.run(datagrams(sent))
        show("datagrams: plain socket", plain)
        show("datagrams: library", ours, plain)


if __name__ == "__main__":
    main()
