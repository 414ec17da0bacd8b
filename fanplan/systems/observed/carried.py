"""What servers carry, by their counters: on channels of a plan, directly, and on links.

A subscription counts what was handed to it. What is sent on a channel all its members get, so the
one with the most tells its rate; what goes to one subscriber each adds up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from fanplan.live.nats.follow import SUBSCRIBER
from fanplan.live.nats.plan import DEFAULT, END
from fanplan.systems.observed.monitors import Monitor, ask_monitor, broker_name, understood

SUBJECT = re.compile(r"fp\.([0-9a-f]{8})\.([^.]+)\.([^.]+)")
"""The epoch, the way and the flow that a subscriber listens to."""
LINK, UNICAST, BY_DEFAULT = "link", "unicast", "default way"


class Carrier(NamedTuple):
    """What carries messages: a name, and the epoch of the plan that it is of; links have none."""

    epoch: str
    name: str


Counts = dict[tuple[str, ...], tuple[Carrier, int]]
"""Messages by server, connection and subscription, each with what carried them."""


def carried_by(monitor: Monitor) -> Counts:
    """What the counters of a server say now."""
    found: Counts = {}
    with understood(monitor.url):
        for leaf in ask_monitor(monitor.url, "leafz").get("leafs") or ():
            name = f"{LINK} {broker_name(leaf.get('name', ''))} → {monitor.name}"
            key = (monitor.name, LINK, str(leaf.get("id", leaf.get("port"))))
            found[key] = Carrier("", name), int(leaf["in_msgs"])
        for client in monitor.clients():
            own = client.get("name", "").partition(" ")[0] == SUBSCRIBER
            for each in (client.get("subscriptions_list_detail") or ()) if own else ():
                if carrier := carrier_of(each["subject"]):
                    key = (monitor.name, str(client["cid"]), str(each["sid"]))
                    found[key] = carrier, int(each.get("msgs", 0))
    return found


def carrier_of(subject: str) -> Carrier | None:
    """What a subject of a plan stands for; None for markers, and for what is of no plan."""
    parts = SUBJECT.match(subject)
    if parts is None or parts[3] == END:
        return None
    if parts[2].startswith("c"):
        return Carrier(parts[1], f"channel {parts[2][1:]}")
    return Carrier(parts[1], BY_DEFAULT if parts[2] == DEFAULT else UNICAST)


def rates(readings: Iterable[tuple[float, Counts]]) -> dict[Carrier, float]:
    """Messages/s between the first and the last reading that has a counter; oldest first."""
    first: dict[tuple[str, ...], tuple[float, int]] = {}
    found: dict[Carrier, float] = {}
    when, last = 0.0, Counts()
    for when, last in readings:
        for key, (_, count) in last.items():
            first.setdefault(key, (when, count))
    for key, (carrier, count) in last.items():
        began, before = first[key]
        # A server that was started anew counts from zero.
        rate = max(0, count - before) / (when - began) if when > began else 0.0
        old = found.get(carrier, 0.0)
        found[carrier] = max(old, rate) if carrier.name.startswith("channel") else old + rate
    return found
