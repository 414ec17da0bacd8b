"""A running NATS network as a workload: who subscribes to what where, links, and traffic.

Traffic is taken from a tap, which subscribes for a while, or told by counters of subscriptions. A
network that runs an export is read back with it: names, filters and attributes are then exact.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.live.message import Message, decode
from fanplan.live.nats.plan import DEFAULT, NO_FLOW, NatsPlan, load_plan
from fanplan.live.nats.wire import Address, Connection, Taken
from fanplan.systems.observed.interest import OwnExport, load_exported
from fanplan.systems.observed.monitors import Json, Monitor, broker_name, monitor_at, understood
from fanplan.systems.observed.tables import Row, Writer, no_workload

CLIENT_PORT = 4222
INTERNAL = ("_INBOX.", "$", "fp-switch.", "fp-again.", "_R_.", "_GR_.")
OURS = re.compile(r"fp\.[0-9a-f]{8}\.")
"""Subjects of plans."""
SOMEBODY = "observed"
"""The publisher of what counters tell: they do not say who sent it."""


@dataclass
class Monitored:
    """What monitors told. Subscriptions are (subscriber, topic, broker); ``counted`` has how many
    messages each subscription to one subject alone got, by server, connection and number."""

    brokers: dict[str, None] = field(default_factory=dict)
    links: dict[tuple[str, str], float | None] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str, str], None] = field(default_factory=dict)
    counted: dict[tuple[str, int, str], tuple[str, int]] = field(default_factory=dict)
    patterns: int = 0
    strangers: int = 0
    queues: int = 0
    others: int = 0
    consumers: int = 0
    namesakes: int = 0

    def link(self, a: str, b: str, delay: float | None) -> None:
        key = (min(a, b), max(a, b))
        known = self.links.get(key)
        self.links[key] = delay if known is None or (delay or known) < known else known


def observe_nats(
    urls: list[str], out: Writer, seconds: float, tap: str | None, export: Path | None
) -> tuple[str, ...]:
    """Write the tables; what could not be told."""
    monitors = [monitor_at(url) for url in urls]
    own = load_exported(export) if export is not None else None
    network = read_monitors(monitors, own)
    if own is not None:
        taken = asyncio.run(tapped_plan(load_plan(own.folder), seconds))
        write_exported(out, network, own, taken)
        return monitor_notes(network)
    if not network.subscriptions:
        raise no_workload(
            urls[0], "nobody subscribes to anything there", "Name monitors with clients"
        )
    out.describe("nats", topic_syntax="nats", **({"seconds": seconds} if tap else {}))
    write_network(out, network)
    if tap is not None:
        out.publications(asyncio.run(tapped(address_of(tap), seconds)))
    elif seconds:
        time.sleep(seconds)
        later = read_monitors(monitors, own)
        rates = subject_rates(network, later, seconds)
        rows = [(SOMEBODY, topic, rate) for topic, rate in sorted(rates.items()) if rate]
        out.table("advertisements", ("publisher", "topic", "rate"), rows)
    return monitor_notes(network)


def monitor_notes(network: Monitored) -> tuple[str, ...]:
    patterns = "subscriptions with wildcards: counters do not tell which subjects they got"
    queues = "subscriptions of queue groups: a group counts as one subscriber at each server"
    namesakes = "connections with a name that others have too: their numbers were added to it"
    told = {
        patterns: network.patterns,
        queues: network.queues,
        namesakes: network.namesakes,
        "consumers of streams: each is a subscriber at the server that leads it": network.consumers,
        "subscriptions that are not of the export's plan": network.others,
        "servers that are linked, and whose monitors were not named": network.strangers,
    }
    return tuple(f"{count:,} {what}" for what, count in told.items() if count)


# ---- monitors


def read_monitors(monitors: list[Monitor], own: OwnExport | None) -> Monitored:
    """All that monitors tell."""
    found = Monitored({monitor.name: None for monitor in monitors})
    clients = list[tuple[Monitor, Json]]()
    for monitor in monitors:
        with understood(monitor.url):
            for other, delay in monitor.links():
                found.link(monitor.name, other, delay)
            clients += [(monitor, client) for client in monitor.clients()]
            for consumer, subjects in monitor.consumers() if own is None else ():
                found.consumers += 1
                found.subscriptions |= {(consumer, each, monitor.name): None for each in subjects}
    names = Counter(str(client.get("name", "")) for _, client in clients)
    for monitor, client in clients:
        with understood(monitor.url):
            add_client(found, monitor.name, client, own, names)
    ends = {end for pair in found.links for end in pair}
    found.strangers = len(ends - {*found.brokers})
    found.brokers.update(dict.fromkeys(sorted(ends)))
    return found


def add_client(
    found: Monitored, broker: str, client: Json, own: OwnExport | None, names: Counter[str]
) -> None:
    """The subscriptions of a connection."""
    name, number = client.get("name", ""), f"{client['cid']}@{broker}"
    doubled = False
    for each in client.get("subscriptions_list_detail") or ():
        subject, queue = each["subject"], each.get("qgroup", "")
        if subject.startswith(INTERNAL):
            continue
        if OURS.match(subject):
            told = planned_subject(name, subject, own)
            if told is not None:
                found.subscriptions[(*told, broker)] = None
            continue
        if own is not None:
            found.others += 1
            continue
        doubled = names[name] > 1 and bool(name) and not queue
        alone = f"{name} {number}".strip() if names[name] > 1 or not name else name
        found.queues += bool(queue)
        found.subscriptions[f"{queue}@{broker}" if queue else alone, subject, broker] = None
        if "*" in subject.split(".") or subject.endswith(">"):
            found.patterns += 1
        else:
            key = (broker, client["cid"], str(each.get("sid", subject)))
            found.counted[key] = subject, int(each.get("msgs", 0))
    found.namesakes += doubled


def planned_subject(name: str, subject: str, own: OwnExport | None) -> tuple[str, str] | None:
    """The subscriber and the topic that a subject of a plan stands for.

    Everybody listens to the default way of each topic that it asked for, and so tells which.
    """
    kind, _, who = name.partition(" ")
    _, epoch, *way, topic = subject.split(".", 4)
    if kind != "subscriber" or way != [DEFAULT, NO_FLOW]:
        return None
    if own is None:
        return who, ".".join(map(broker_name, topic.split(".")))
    return (who, own.topic(topic)) if epoch == own.epoch else None


def subject_rates(before: Monitored, after: Monitored, seconds: float) -> dict[str, float]:
    """Messages per second on each subject that somebody subscribes to alone."""
    rates: dict[str, float] = {}
    for key, (subject, count) in after.counted.items():
        if key in before.counted:
            rate = (count - before.counted[key][1]) / seconds
            rates[subject] = max(rates.get(subject, 0.0), rate)
    return rates


# ---- traffic


def address_of(url: str) -> Address:
    """Where a tap connects, from nats://USER:PASSWORD@HOST:PORT."""
    parts = urlsplit(url if "//" in url else f"nats://{url}")
    if parts.scheme not in ("nats", "tcp") or not parts.hostname:
        raise InputError(Problem("tap", f"{url!r} is not an address", "Write nats://HOST:PORT"))
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(parts.hostname, parts.port or CLIENT_PORT, user, password)


async def tapped(address: Address, seconds: float) -> list[Row]:
    """All messages of an account for a while: time, nobody, subject and size."""
    found: list[Row] = []

    def take(_: int, subject: bytes, content: bytes) -> None:
        topic = subject.decode(errors="replace")
        if not topic.startswith(INTERNAL):
            found.append((time.time(), None, topic, len(content)))

    await listened([(address, ">")], take, seconds)
    return found


async def tapped_plan(plan: NatsPlan, seconds: float) -> list[Message]:
    """All publications that follow a plan for a while, each once, where they enter."""
    found: dict[tuple[int, int], Message] = {}

    def take(_: int, __: bytes, content: bytes) -> None:
        message = decode(content)
        if message is not None and message.header.flow >= -1:
            found.setdefault((message.header.source, message.header.number), message)

    entries = sorted({*plan.entries.values()})
    places = [
        (plan.address(entry, account), f"{plan.prefix}.>")
        for entry in entries
        for account in plan.accounts
    ]
    await listened(places, take, seconds)
    return [*found.values()]


async def listened(places: Iterable[tuple[Address, str]], take: Taken, seconds: float) -> None:
    """Listen to subjects for a while."""
    taps = []
    try:
        for address, subject in places:
            tap = Connection(address, "fanplan observe", take)
            tap.subscribe(subject)
            taps.append(tap)
            try:
                await tap.open()
            except (OSError, TimeoutError) as error:
                where, what = f"{address.host}:{address.port}", f"no tap ({error or 'no answer'})"
                remedy = "Name a server and a user that may subscribe to everything"
                raise MachineError(Problem(where, what, remedy)) from error
        await asyncio.sleep(seconds)
    finally:
        for tap in taps:
            await tap.close()


# ---- tables


def write_brokers(out: Writer, network: Monitored) -> None:
    out.table("brokers", ("broker",), [(name,) for name in network.brokers])
    links = [(a, b, delay) for (a, b), delay in sorted(network.links.items())]
    out.table("links", ("a", "b", "latency_ms"), links)


def write_network(out: Writer, network: Monitored) -> None:
    write_brokers(out, network)
    rows = sorted(network.subscriptions)
    out.table("subscriptions", ("subscriber", "topic", "broker"), rows)


def write_exported(out: Writer, network: Monitored, own: OwnExport, sent: list[Message]) -> None:
    """The tables of a network that runs an export, with filters and attributes."""
    plan = load_plan(own.folder)
    (out.folder / "workload.toml").write_text(own.toml(), encoding="utf-8")
    pairs = sorted({(who, topic): broker for who, topic, broker in network.subscriptions}.items())
    if not pairs:
        what = f"no subscriber of plan {plan.epoch} is connected"
        raise no_workload(
            str(own.folder), what, "Name all monitors, and the export that is in force"
        )
    write_brokers(out, network)
    rows = [(who, topic, own.selector(who, topic), broker) for (who, topic), broker in pairs]
    out.table("subscriptions", ("subscriber", "topic", "filter", "broker"), rows)
    adverts = [
        (name, topic, plan.servers[broker].broker)
        for name, broker in sorted(plan.entries.items())
        for topic in sorted({m.topic for m in sent if plan.sources[m.header.source] == name})
    ]
    out.table("advertisements", ("publisher", "topic", "broker"), adverts)
    # Those that were sent in one go have one time, and come in any order from several taps.
    sent.sort(key=lambda m: (m.header.sent_ns, m.header.source, m.header.number))
    out.publications(
        (
            (m.header.sent_ns * 1e-9, plan.sources[m.header.source], m.topic, len(m.payload),
             *own.values(m.topic, m.x))
            for m in sent
        ),
        own.columns,
    )  # fmt: skip
