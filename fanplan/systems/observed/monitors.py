"""What the monitors of NATS servers tell: servers, links, clients and what they subscribe to."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.live.names import name_of

ANSWER_SECONDS = 10.0
PAGE = 1000
UNITS_MS = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
DURATION = re.compile(r"([\d.]+)(ns|µs|us|ms|s|m|h)")
START = "Start it with http_port, or name another address"

Json = dict[str, Any]


@dataclass(frozen=True)
class Monitor:
    """One server by the address of its monitor."""

    url: str
    name: str

    def links(self) -> Iterator[tuple[str, float | None]]:
        """Servers at the other end of leafnodes and routes, and the delay to them in ms."""
        for what, key in (("leafz", "leafs"), ("routez", "routes")):
            for one in ask(self.url, what).get(key) or ():
                other = one.get("name") or one.get("remote_name") or one.get("remote_id")
                if other:
                    rtt = milliseconds(one.get("rtt", ""))
                    yield broker_name(other), None if rtt is None else rtt / 2

    def clients(self) -> Iterator[Json]:
        """Connections of clients with their subscriptions, a page at a time."""
        at = 0
        while True:
            told = ask(self.url, f"connz?subs=detail&limit={PAGE}&offset={at}")
            own = told.get("connections") or []
            yield from (one for one in own if one.get("kind", "Client") == "Client")
            at += len(own)
            if not own or at >= told.get("total", 0):
                return


def monitor_at(url: str) -> Monitor:
    """The server behind an address; an error if it is none of NATS."""
    told = ask(url, "varz")
    if "server_id" not in told:
        raise InputError(Problem(url, "is no monitor of a NATS server", START))
    return Monitor(url, broker_name(told.get("server_name") or told["server_id"]))


def ask(url: str, what: str) -> Json:
    """What a monitor says."""
    parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(Problem(url, "is no address of a monitor", "Write http://HOST:PORT"))
    try:
        with urllib.request.urlopen(
            f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/{what}",
            timeout=ANSWER_SECONDS,
        ) as answer:
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        what = f"is no monitor of a NATS server (it answers {error.code})"
        raise InputError(Problem(url, what, START)) from error
    except ValueError as error:
        raise InputError(Problem(url, "is no monitor of a NATS server", START)) from error
    except OSError as error:
        said = getattr(error, "reason", error)
        raise MachineError(Problem(url, f"no monitor answers ({said})", START)) from error
    if not isinstance(told, dict):
        raise InputError(Problem(url, "is no monitor of a NATS server", START))
    return told


def broker_name(text: str) -> str:
    """A server's name; those of exports are escaped."""
    try:
        return name_of(text)
    except InputError:
        return text


def milliseconds(text: str) -> float | None:
    """A duration as Go writes it, such as 1m2.5s or 310µs."""
    parts = DURATION.findall(text)
    return sum(float(value) * UNITS_MS[unit] for value, unit in parts) if parts else None
