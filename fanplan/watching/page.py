"""A page about a watch: on this machine alone, and only for who knows its address.

It reads the files of the watch, so it shows what counts and nothing else.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import CHANGES, write_whole
from fanplan.layers.registry import load_plan
from fanplan.systems.nats.enact import epoch_name
from fanplan.watching.measured import Meter
from fanplan.watching.planning import carried_rates
from fanplan.watching.state import State

HERE = "127.0.0.1"
SHOWN = 500
"""Windows that are drawn."""
VERSIONS = 100
"""The newest versions, which are told."""
PAGE = Path(__file__).with_name("page.html")
ADDRESS = "page.json"


def page_json(state: State, meter: Meter | None = None) -> dict[str, Any]:
    """All that the page shows."""
    last = state.record(state.numbers()[-1])
    plan = load_plan(state.version(last["version"]) / "plan")
    measured = meter and meter.told(epoch_name(plan))
    applied = [json.loads(p.read_text()) for p in (state.folder / "applied").glob("*.json")]
    done = {each["version"]: each["done"] for each in applied}
    return {
        "batch": last["number"],
        "counts": last["counts"],
        "windows": state.latest_decisions(SHOWN),
        "links": carried_rates(plan, last["links"], measured["rates"] if measured else {}),
        "measured": measured,
        "versions": [
            about | {"applied": done.get(number), "in_steps": in_steps(state.version(number))}
            for number, about in [*enumerate(state.versions())][: -VERSIONS - 1 : -1]
        ],
    }


@lru_cache(maxsize=VERSIONS)
def in_steps(version: Path) -> list[dict[str, Any]]:
    """What each step to a version does, and what stands after it; a version is never changed."""
    path = version / "changes" / CHANGES.sign
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))["steps"]
    return [
        {"step": s["step"], "actions": s["actions"], "cost": s["after"].get("cost")} for s in found
    ]


class Handler(BaseHTTPRequestHandler):
    """Answers for the page and what it shows; everything else is not there."""

    state: State
    meter: Meter | None
    token: str

    def do_GET(self) -> None:
        if self.path == f"/{self.token}/":
            self.answer(PAGE.read_bytes(), "text/html; charset=utf-8")
        elif self.path == f"/{self.token}/told.json":
            self.answer(json.dumps(page_json(self.state, self.meter)).encode(), "application/json")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def answer(self, content: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; "
            "style-src 'unsafe-inline'; connect-src 'self'",
            "Referrer-Policy": "no-referrer",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """The address has the token in it: it is not for logs."""


class PageServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who reads may go away in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(state: State, port: int, meter: Meter | None = None) -> Iterator[str]:
    """The page as long as the block lasts; its address is in ``page.json``."""
    token = secrets.token_urlsafe(24)
    handler = type("Page", (Handler,), {"state": state, "meter": meter, "token": token})
    try:
        server = PageServer((HERE, port), handler)
    except OSError as error:
        what = f"{port} cannot be listened on ({error.strerror})"
        raise InputError(Problem("page", what, "Name another port, or 0")) from error
    address = f"http://{HERE}:{server.server_port}/{token}/"
    thread = Thread(target=server.serve_forever, daemon=True)
    path = state.folder / ADDRESS
    write_whole(path, json.dumps({"address": address}) + "\n")
    path.chmod(0o600)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)
