"""A running Mosquitto for each broker, with the bridges of the export: all that is wanted comes."""

from __future__ import annotations

import csv
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ready import stages_are_there
from system_worlds import design, overlay, wanted

from fanplan.plan.stored import StoredPlan
from fanplan.systems.mosquitto.export import broker_file, export, lacks
from fanplan.systems.params import ExportParams
from fanplan.systems.traffic import Traffic

mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed")
if not shutil.which("mosquitto"):
    pytest.skip("mosquitto is not installed", allow_module_level=True)

PUBLICATIONS = 120
Client = Any
Made = tuple[StoredPlan, Path, Traffic]


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody uses."""
    for first in range(21_000, 30_000, 50):
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


@contextmanager
def running(folder: Path, files: list[str]) -> Iterator[list[Path]]:
    """Mosquitto with each of the files; their logs."""
    processes, logs = [], [folder / f"{name}.log" for name in files]
    try:
        # A bridge leads to a later broker: if that runs already, it need not try again.
        for name, log in [*zip(files, logs, strict=True)][::-1]:
            command = ["mosquitto", "-v", "-c", str(folder / name)]
            with log.open("wb") as out:
                processes.append(subprocess.Popen(command, stdout=out, stderr=out))
            await_that(partial(is_running, log))
        yield logs
    finally:
        for process in processes:
            process.kill()
            process.wait()


def is_running(log: Path) -> bool:
    return " running" in log.read_text()


def await_that(what: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)


def connected(port: int, name: str, got: Callable[[str, str], None] | None = None) -> Client:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name)
    if got is not None:
        client.on_message = lambda _, __, message: got(name, message.payload.decode())
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def leave(client: Client) -> None:
    client.disconnect()
    client.loop_stop()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def root_of(out: Path) -> str:
    return "/".join(rows_of(out / "publish.csv")[0]["topic"].split("/")[:2])


def await_bridges(senders: dict[str, Client], at: dict[str, int], root: str) -> None:
    """What takes the default way comes from every broker to every broker.

    Bridges subscribe in the order of their lines, and the default way is the last of them.
    """
    heard: set[tuple[str, str]] = set()
    listeners = [connected(port, name, lambda *pair: heard.add(pair)) for name, port in at.items()]
    for client in listeners:
        client.subscribe(f"{root}/x/#")

    def all_heard() -> bool:
        for name, client in senders.items():
            client.publish(f"{root}/x/probe", name)
        time.sleep(0.2)
        return len(heard) == len(at) ** 2

    await_that(all_heard, 40)
    for client in listeners:
        leave(client)


@pytest.mark.parametrize("make", [overlay, design])
def test_bridges_bring_what_is_wanted_once(make: Callable[[Path], Made], tmp_path: Path) -> None:
    plan, dataset, traffic = make(tmp_path / "world")
    ways, out = traffic.ways, tmp_path / "export"
    out.mkdir()
    port = free_ports(len(ways.brokers))
    export(plan, dataset, ways, ExportParams(port=port), out)
    files = [broker_file(ways, broker) for broker in range(len(ways.brokers))]
    at = {name: port + number for number, name in enumerate(ways.brokers)}
    bridges = sum((out / name).read_text().count("connection fp-") for name in files)
    assert bridges >= len(ways.brokers) - 1
    got: Counter[tuple[int, str]] = Counter()
    taken: list[int] = []
    """One for each subscription that a broker has."""

    def take(who: str, number: str) -> None:
        got[int(number), who.partition("@")[0]] += 1

    with running(out, files) as logs, ExitStack() as stack:
        await_that(lambda: all(map(is_up, at.values())))
        await_that(
            lambda: sum(log.read_text().count("Received CONNACK") for log in logs) >= bridges
        )
        senders = {name: connected(p, f"sender {name}") for name, p in at.items()}
        for client in senders.values():
            stack.callback(leave, client)
        await_bridges(senders, at, root_of(out))
        clients: dict[tuple[str, str], Client] = {}
        for row in rows_of(out / "subscribe.csv"):
            key = (row["subscriber"], row["broker"])
            if key not in clients:
                clients[key] = connected(at[key[1]], "@".join(key), take)
                clients[key].on_subscribe = lambda *_: taken.append(1)
                stack.callback(leave, clients[key])
            clients[key].subscribe(row["filter"])
        await_that(lambda: len(taken) == len(rows_of(out / "subscribe.csv")))
        to = {(row["flow"], row["broker"]): row["topic"] for row in rows_of(out / "publish.csv")}
        for number in range(PUBLICATIONS):
            parcel = traffic.parcel[number]
            flow, entry = ways.flows[ways.flow[parcel]], ways.brokers[ways.entry[parcel]]
            topic = f"{to[flow, entry]}/{ways.topics[ways.flow[parcel]]}"
            senders[entry].publish(topic, str(number)).wait_for_publish(5)
        must = {pair for pair in wanted(traffic) if pair[0] < PUBLICATIONS}
        await_that(lambda: len(got) >= len(must))
        time.sleep(0.5)
    assert set(got) == must
    assert set(got.values()) == {1}


def test_what_cannot_be_said_is_named(tmp_path: Path) -> None:
    plan, dataset, traffic = design(tmp_path / "world")
    assert any(each.startswith("channels: MQTT has no multicast") for each in lacks(plan))
    out = tmp_path / "export"
    out.mkdir()
    export(plan, dataset, traffic.ways, ExportParams(), out)
    page = (out / "README.md").read_text()
    assert all(each in page for each in lacks(plan))
    assert all(name in page for name in traffic.ways.brokers)
