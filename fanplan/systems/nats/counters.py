"""What servers count: messages on leafnodes, and of each client."""

from __future__ import annotations

import time
from collections.abc import Callable

from fanplan.live.names import name_of
from fanplan.systems.nats.enact import AGENT, LEAFNODE
from fanplan.systems.nats.servers import Servers
from fanplan.systems.ways import Figures, add

ALL = "connz?state=all&limit=1000000"
"""Connections that are open, and those that were closed."""

CLIENT = "subscriber"
"""Connections of subscribers have this name, those of agents between servers `from>to`."""

REST_SECONDS = 0.15


def read_counters(servers: Servers) -> Figures:
    """Messages on each directed link, and those that each broker handed to subscribers.

    A link counts where it ends. A connection that was made anew has a counter of its own, and all
    connections of a link, closed ones too, are added up.
    """
    found: Figures = {}
    for broker, server in enumerate(servers.servers):
        # The end that connects is told of the other by `leafz` alone, while it is open.
        for leaf in servers.ask(broker, "leafz")["leafs"]:
            servers.peers[broker, leaf["id"]] = leaf["name"]
        for one in servers.ask(broker, ALL)["connections"]:
            name, leaf = one.get("name", ""), one["kind"] == "Leafnode"
            name = servers.peers.get((broker, one["cid"]), name) if leaf else name
            # A leafnode without a name was refused before it could carry anything.
            if (leaf and name) or ">" in name:
                tail, how = name_of(name.partition(">")[0]), LEAFNODE if leaf else AGENT
                add(found, ("link", tail, server.broker, how), one["in_msgs"])
            elif name == CLIENT:
                add(found, ("broker", server.broker, "to subscribers"), one["out_msgs"])
    return found


def at_rest(servers: Servers, seconds: float, pause: Callable[[float], None]) -> Figures:
    """The counters, once two readings in a row are the same."""
    deadline = time.monotonic() + seconds
    before = read_counters(servers)
    while time.monotonic() < deadline:
        pause(REST_SECONDS)
        now = read_counters(servers)
        if now == before:
            break
        before = now
    return before


def since(now: Figures, before: Figures) -> Figures:
    """What was counted between two readings."""
    return {
        key: count - before.get(key, 0) for key, count in now.items() if count != before.get(key, 0)
    }
