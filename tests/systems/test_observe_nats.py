"""Running NATS networks as workloads: one that nobody planned, and one that runs an export."""

from __future__ import annotations

import asyncio
import csv
import http.server
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import delivery_datasets
import pyarrow.parquet as pq
import pytest
from delivery_datasets import World
from nats_worlds import needs_nats
from ready import stages_are_there
from switching import (
    Sent,
    applications,
    brokers,
    exported,
    first_ones,
    free_port,
    links_there,
    served,
    traffic,
    world_of,
)

import fanplan
from fanplan.core.errors import InputError, MachineError
from fanplan.live.nats.plan import Server
from fanplan.live.nats.plan import load_plan as load_nats
from fanplan.live.nats.wire import Address, Connection
from fanplan.systems.nats.servers import HOST, Servers, free_servers, server_program
from fanplan.systems.observed.monitors import milliseconds

pytestmark = needs_nats


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def monitor(server: Server) -> str:
    return f"http://{server.host}:{server.monitor}"


# ---- a network that Fanplan did not make


@contextmanager
def plain(folder: Path) -> Iterator[Servers]:
    """Two servers with a leafnode between them, and no accounts."""
    hub, spoke = servers = free_servers(["hub", "spoke"])
    for server in servers:
        to = f'remotes: [ {{ url: "nats-leaf://{HOST}:{hub.leafnodes}" }} ]' * (server is spoke)
        (folder / f"{server.broker}.conf").write_text(
            f'server_name: {server.broker}\nlisten: "{HOST}:{server.client}"\n'
            f'http: "{HOST}:{server.monitor}"\n'
            + f'jetstream {{ store_dir: "{folder}/{server.broker}" }}\n' * (server is hub)
            + f'leafnodes {{ listen: "{HOST}:{server.leafnodes}"\n reconnect: "1s"\n {to} }}\n'
        )
    running = Servers(servers, folder, server_program())
    try:
        for number in range(2):
            running.start(number)
        running.await_ready()
        yield running
    finally:
        running.stop()


def test_a_network_that_nobody_planned(tmp_path: Path) -> None:
    with plain(tmp_path) as running:
        asyncio.run(observed(running, tmp_path))


async def observed(running: Servers, folder: Path) -> None:
    hub, spoke = running.servers
    wishes = {"desk": ["quotes.*", "news"], "back office": ["trades.>", "_INBOX.x.>"]}
    clients = []
    for server, (name, subjects) in zip((hub, spoke), wishes.items(), strict=True):
        client = Connection(Address(HOST, server.client), name)
        for subject in subjects:
            client.subscribe(subject)
        clients.append(await client.open())
    for name, subject in (
        ("", "news"),
        ("twin", "fp.own"),
        ("twin", "fp.own"),
        ("twin", "größe.a b"),
    ):
        other = Connection(Address(HOST, spoke.client), name)
        other.subscribe(subject.replace(" ", "%20"))
        clients.append(await other.open())
    for name in ("worker 1", "worker 2"):
        worker = Connection(Address(HOST, hub.client), name)
        worker.subscribe("jobs workers")  # With the queue group as the protocol has it.
        clients.append(await worker.open())
    sender = await Connection(Address(HOST, hub.client), "sender").open()
    await consumed(running, sender)
    while len(running.ask(0, "leafz").get("leafs") or ()) < 1:
        await asyncio.sleep(0.05)

    async def speak() -> None:
        while True:
            sender.publish(b"news", b"four")
            sender.publish(b"quotes.ibm", b"seventy")
            await asyncio.sleep(0.01)

    speaking = asyncio.create_task(speak())
    urls = [monitor(server) for server in running.servers]
    counted = await asyncio.to_thread(fanplan.observe_nats, urls, folder / "counted", seconds=1.0)
    tap = f"nats://{HOST}:{hub.client}"
    await asyncio.to_thread(fanplan.observe_nats, urls, folder / "tapped", seconds=1.0, tap=tap)
    speaking.cancel()
    for client in (*clients, sender):
        await client.close()
    found = {
        (r["subscriber"], r["topic"], r["broker"])
        for r in rows(folder / "counted" / "subscriptions.csv")
    }
    named = {row for row in found if "@" not in row[0]}
    assert named == {("desk", "quotes.*", "hub"), ("desk", "news", "hub"),
                     ("back office", "trades.>", "spoke"), ("all of orders", "orders.>", "hub"),
                     ("new of orders", "orders.new", "hub")}  # fmt: skip
    assert ("workers@hub", "jobs", "hub") in found
    others = sorted((row[0].rpartition(" ")[0], *row[1:]) for row in found - named)
    assert others == [
        ("", "jobs", "hub"), ("", "news", "spoke"), ("twin", "fp.own", "spoke"),
        ("twin", "fp.own", "spoke"), ("twin", "größe.a%20b", "spoke"),
    ]  # fmt: skip
    assert {
        note.split(" ", 1)[1].split(":")[0]: int(note.split()[0]) for note in counted.notes
    } == {
        "subscriptions with wildcards": 2,
        "subscriptions of queue groups": 2,
        "connections with a name that others have too": 3,
        "consumers of streams": 2,
    }
    assert not [row for row in found if row[1].startswith("_INBOX")]
    (link,) = rows(folder / "counted" / "links.csv")
    assert (link["a"], link["b"]) == ("hub", "spoke")
    assert float(link["latency_ms"]) > 0
    (advert,) = rows(folder / "counted" / "advertisements.csv")
    assert advert["topic"] == "news"
    assert float(advert["rate"]) > 1
    sent = Counter(
        (row["topic"], row["bytes"])
        for row in pq.read_table(folder / "tapped" / "publications.parquet").to_pylist()
    )
    assert {*sent} == {("news", 4), ("quotes.ibm", 7)}
    assert abs(sent["news", 4] - sent["quotes.ibm", 7]) <= 1


async def consumed(running: Servers, sender: Connection) -> None:
    """A stream with two consumers."""
    stream = b'{"name": "orders", "subjects": ["orders.>"], "storage": "memory"}'
    sender.publish(b"$JS.API.STREAM.CREATE.orders", stream, b"answer")
    # Requests are worked on side by side, and a consumer of no stream is refused.
    while running.ask(0, "jsz").get("streams") != 1:
        await asyncio.sleep(0.05)
    for name, more in ((b"all", b""), (b"new", b', "filter_subject": "orders.new"')):
        config = b'{"durable_name": "%b", "ack_policy": "explicit"%b}' % (name, more)
        asked = b'{"stream_name": "orders", "config": %b}' % config
        sender.publish(b"$JS.API.CONSUMER.DURABLE.CREATE.orders.%b" % name, asked, b"answer")
    while running.ask(0, "jsz").get("consumers") != 2:
        await asyncio.sleep(0.05)


# ---- the circle


def odd(name: str) -> str:
    """A name with all that subjects and files cannot have."""
    return f"{name} *.>ü/%"


def odd_world(publishers: list[str]) -> World:
    """Brokers, people, publishers and topics with odd names."""
    world = world_of(Random(3), 6, 14, publishers)
    for which in ("SITES", "PUBLISHERS"):
        own = getattr(delivery_datasets, which)
        places = {odd(name): odd(to) if which == "PUBLISHERS" else to for name, to in own.items()}
        setattr(delivery_datasets, which, places)
    publishers[:] = map(odd, publishers)
    return World(
        {odd(who): odd(broker) for who, broker in world.homes.items()},
        tuple((odd(who), odd(topic), low, high) for who, topic, low, high in world.wants),
        tuple((at, odd(p), odd(topic), size, v) for at, p, topic, size, v in world.sent),
    )


def test_an_export_that_runs_gives_back_its_workload(tmp_path: Path) -> None:
    with stages_are_there(), brokers(6, 3) as publishers:
        world = odd_world(publishers)
        # On a tree that was drawn some messages take shortcuts.
        export = exported(tmp_path / "made", world, free_port(6), 5, channels=2)
    assert load_nats(export).agents
    with served(export) as running:
        sent = asyncio.run(circle(export, world, publishers, running, tmp_path / "back"))
    back = tmp_path / "back"
    wanted = {(who, topic, world.homes[who], low, high) for who, topic, low, high in world.wants}
    assert {
        (r["subscriber"], r["topic"], r["broker"], *ends(r["filter"]))
        for r in rows(back / "subscriptions.csv")
    } == wanted
    plan = load_nats(export)
    assert {r["broker"] for r in rows(back / "brokers.csv")} == {*plan.number}
    assert len(rows(back / "links.csv")) == sum(map(len, plan.remotes.values()))
    assert {r["publisher"]: r["broker"] for r in rows(back / "advertisements.csv")} == {
        name: plan.servers[broker].broker for name, broker in plan.entries.items()
    }
    table = pq.read_table(back / "publications.parquet").to_pylist()
    for name in publishers:
        found = [(r["topic"], r["value"]) for r in table if r["publisher"] == name]
        own = [each for each in sent[name] if world.wanting(*each)]
        # Taps open and close one after the other; while they all are, nothing is left out.
        late = found[len(found) // 2 : len(found) * 3 // 4]
        first = own.index(late[0])
        assert len(late) > 10
        assert own[first : first + len(late)] == late
    assert 'value = { type = "number", min = 0.0, max = 100.0 }' in (
        (back / "workload.toml").read_text().replace('"value" =', "value =")
    )


async def circle(
    export: Path, world: World, publishers: list[str], running: Servers, out: Path
) -> dict[str, Sent]:
    """Observe it while messages flow; what was sent in all."""
    await links_there(running, export)
    async with applications(export, world, publishers) as found:
        await first_ones(found)
        async with traffic(found):
            urls = [monitor(server) for server in running.servers]
            await asyncio.to_thread(fanplan.observe_nats, urls, out, export=export, seconds=1.5)
        return found.sent


def ends(text: str) -> tuple[float, float]:
    """The range that a filter asks for."""
    low, high = 0.0, 100.0
    for part in text.split(" AND ") if text else ():
        _, sign, number = part.split()
        low, high = (float(number), high) if sign == ">=" else (low, float(number))
    return low, high


# ---- what goes wrong


def test_the_port_of_clients_is_no_monitor(tmp_path: Path) -> None:
    with plain(tmp_path) as running:
        for port in (running.servers[0].client, running.servers[0].leafnodes):
            with pytest.raises(InputError, match="is not a monitor of a NATS server"):
                fanplan.observe_nats([f"http://{HOST}:{port}"], tmp_path / "out")


class Other(http.server.BaseHTTPRequestHandler):
    """A page that is no monitor; in one place it wants a password."""

    def do_GET(self) -> None:
        asked = self.headers.get("Authorization") != "Basic bWU6YSBi"
        self.send_response(401 if self.path.startswith("/closed") and asked else 200)
        self.end_headers()
        self.wfile.write(b"<html>welcome</html>")

    def log_message(self, *_: object) -> None: ...


def test_monitors_that_do_not_answer_or_are_none(tmp_path: Path) -> None:
    out, (nobody,) = tmp_path / "out", free_servers(["nobody"])
    with pytest.raises(MachineError, match="no monitor answers"):
        fanplan.observe_nats([monitor(nobody)], out)
    with pytest.raises(InputError, match="is not an address of a monitor"):
        fanplan.observe_nats(["ftp://here"], out)
    with pytest.raises(InputError, match="takes nothing without time"):
        fanplan.observe_nats([monitor(nobody)], out, tap="nats://localhost:1")
    page = http.server.HTTPServer((HOST, 0), Other)
    thread = threading.Thread(target=page.serve_forever)
    thread.start()
    try:
        with pytest.raises(InputError, match="is not a monitor of a NATS server"):
            fanplan.observe_nats([f"http://{HOST}:{page.server_port}"], out)
        closed = f"{HOST}:{page.server_port}/closed"
        with pytest.raises(InputError, match="lets nobody in") as told:
            fanplan.observe_nats([f"http://me:wrong@{closed}"], out)
        assert "wrong" not in str(told.value)
        with pytest.raises(InputError, match="is not a monitor of a NATS server"):
            fanplan.observe_nats([f"http://me:a%20b@{closed}"], out)
        with pytest.raises(MachineError, match="no monitor answers"):
            fanplan.observe_nats([f"https://{HOST}:{page.server_port}"], out)
    finally:
        page.shutdown()
        page.server_close()
        thread.join()
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "value"), [("310µs", 0.31), ("1.5ms", 1.5), ("1m2s", 62_000.0), ("", None)]
)
def test_durations(text: str, value: float | None) -> None:
    assert milliseconds(text) == (None if value is None else pytest.approx(value))
