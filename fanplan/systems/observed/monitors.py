"""What the monitors of NATS servers tell: servers, links, clients and what they subscribe to."""

from __future__ import annotations

import base64
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.live.names import name_of

ANSWER_SECONDS = 10.0
PAGE = 1000
MOST_BYTES = 256 << 20
"""An answer of a page of clients is far smaller."""
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
            for one in ask_monitor(self.url, what).get(key) or ():
                other = one.get("name") or one.get("remote_name") or one.get("remote_id")
                if other:
                    rtt = milliseconds(one.get("rtt", ""))
                    yield broker_name(other), None if rtt is None else rtt / 2

    def clients(self) -> Iterator[Json]:
        """Connections of clients with their subscriptions, a page at a time."""
        at = 0
        while True:
            told = ask_monitor(self.url, f"connz?subs=detail&limit={PAGE}&offset={at}")
            own = told.get("connections") or []
            yield from (one for one in own if one.get("kind", "Client") == "Client")
            at += len(own)
            if not own or at >= told.get("total", 0):
                return

    def consumers(self) -> Iterator[tuple[str, list[str]]]:
        """Consumers of streams that this server leads, and the subjects that they ask for."""
        told = ask_monitor(self.url, "jsz?accounts=true&streams=true&consumers=true&config=true")
        for account in told.get("account_details") or ():
            for stream in account.get("stream_detail") or ():
                every = (stream.get("config") or {}).get("subjects") or []
                for one in stream.get("consumer_detail") or ():
                    leader = (one.get("cluster") or {}).get("leader")
                    own = one.get("config") or {}
                    asked = own.get("filter_subjects") or [own.get("filter_subject")]
                    if leader is None or broker_name(leader) == self.name:
                        name = f"{one['name']} of {stream['name']}"
                        yield name, [each for each in asked if each] or every


def monitor_at(url: str) -> Monitor:
    """The server behind an address; an error if it is none of NATS."""
    told = ask_monitor(url, "varz")
    if "server_id" not in told:
        raise InputError(Problem(url, "is not a monitor of a NATS server", START))
    return Monitor(url, broker_name(str(told.get("server_name") or told["server_id"])))


def ask_monitor(url: str, what: str) -> Json:
    """What a monitor says."""
    request, shown = request_of(url, what)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            told = json.loads(answer.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            what, remedy = f"lets nobody in ({error.code})", "Write http://USER:PASSWORD@HOST:PORT"
            raise InputError(Problem(shown, what, remedy)) from error
        what = f"is not a monitor of a NATS server (it answers {error.code})"
        raise InputError(Problem(shown, what, START)) from error
    except (ValueError, RecursionError, http.client.HTTPException) as error:
        # Such as the port for clients, which does not speak HTTP.
        raise InputError(Problem(shown, "is not a monitor of a NATS server", START)) from error
    except OSError as error:
        said = getattr(error, "reason", error)
        raise MachineError(Problem(shown, f"no monitor answers ({said})", START)) from error
    if not isinstance(told, dict):
        raise InputError(Problem(shown, "is not a monitor of a NATS server", START))
    return told


def request_of(url: str, what: str) -> tuple[urllib.request.Request, str]:
    """What to ask for, and the address without its password, for messages."""
    user, shown = without_user(url)
    request = urllib.request.Request(f"{shown}/{what}")
    if user:
        word = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        request.add_header("Authorization", f"Basic {word}")
    return request, shown


def without_user(url: str) -> tuple[str, str]:
    """The user and password in an address, if any, and the address without them."""
    try:
        parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        user, _, place = parts.netloc.rpartition("@")
        known = parts.scheme in ("http", "https") and place and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        what = "is not an address of a monitor"
        raise InputError(Problem(url.rpartition("@")[2], what, "Write http://HOST:PORT"))
    return user, f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


@contextmanager
def understood(url: str) -> Iterator[None]:
    """Answers that are JSON, but not of the shape that a server's have, are no failure of ours."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"does not answer as a NATS server does ({error})"
        raise InputError(Problem(without_user(url)[1], what, START)) from error


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
