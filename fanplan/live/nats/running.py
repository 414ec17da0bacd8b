"""Servers that run: their files, their processes, and what their monitors say."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.folder import write_whole
from fanplan.live.names import name_of, token
from fanplan.live.nats.config import config_of, file_of, pid_file_of
from fanplan.live.nats.plan import LOCAL, NatsPlan, Server
from fanplan.live.nats.wire import Connection

SIGN = "fanplan"
ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.05
ALL_LEAFS = "leafz"
CLIENTS = "connz?limit=1000000"


@dataclass(frozen=True)
class Running:
    """The servers of two plans, by the folder with their files."""

    plans: tuple[NatsPlan, NatsPlan]
    folder: Path
    timeout: float

    @property
    def servers(self) -> list[Server]:
        """Those of both; the new plan's first."""
        own = {server.broker: server for plan in self.plans for server in plan.servers}
        return [*own.values()]

    @property
    def answer_seconds(self) -> float:
        """How long a single answer is waited for: no longer than for all of a step."""
        return min(ANSWER_SECONDS, self.timeout)

    def require(self) -> None:
        """All servers run here, and are where both plans say."""
        old, new = self.plans
        for server in new.servers:
            at = old.number.get(server.broker)
            if at is not None and old.servers[at] != server:
                what = "has other ports or another host in the new export"
                remedy = "Export it with --like and the old one"
                raise InputError(Problem(f"broker {server.broker!r}", what, remedy))
        for server in self.servers:
            if not self.process(server):
                where = self.folder / file_of(server)
                if not where.is_file():
                    write_whole(where, config_of([new], server))
                remedy = f"Start it: nats-server -c {where} -P {self.folder / pid_file_of(server)}"
                raise InputError(Problem(f"broker {server.broker!r}", "its server is away", remedy))

    def process(self, server: Server) -> int:
        """The number of a server's process; 0 if it does not run."""
        try:
            pid = int((self.folder / pid_file_of(server)).read_text(encoding="utf-8"))
            os.kill(pid, 0)
            if sys.platform == "linux":
                # Never a stranger that has the number now.
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                return pid if any(w.endswith(file_of(server).encode()) for w in words) else 0
        except (OSError, ValueError):
            return 0
        return pid

    # ---- reloading

    async def reload(self, plans: Sequence[NatsPlan]) -> None:
        """Let all servers have the accounts and links of these plans, and no others."""
        for server in self.servers:
            path = self.folder / file_of(server)
            before = path.read_text(encoding="utf-8") if path.is_file() else ""
            write_whole(path, config_of(plans, server, store_of(before)))
        # A server that fails meanwhile has the new file when it starts again.
        told: dict[str, int] = {}
        others = [plan for plan in self.plans if plan not in plans]

        async def loaded(server: Server) -> bool:
            pid = self.process(server)
            if pid and told.get(server.broker) != pid:
                told[server.broker] = pid
                os.kill(pid, signal.SIGHUP)
            return all([await self.takes(plan, server) for plan in plans]) and not any(
                [await self.takes(plan, server) for plan in others]
            )

        what = "did not load its configuration"
        await asyncio.gather(*(self.until(loaded, server, what) for server in self.servers))

    async def until(self, done: Callable[[Server], Any], server: Server, what: str) -> None:
        """Look again and again until it is done; an error if it is not in time."""
        deadline = time.monotonic() + self.timeout
        while not await done(server):
            if time.monotonic() > deadline:
                remedy = f"Look at its log; its file is {self.folder / file_of(server)}"
                raise MachineError(Problem(f"broker {server.broker!r}", what, remedy))
            await asyncio.sleep(LOOK_SECONDS)

    async def takes(self, plan: NatsPlan, server: Server) -> bool:
        """Whether a server lets a client of a plan in."""
        address = plan.address(0, LOCAL)
        probe = Connection(
            type(address)(server.host, server.client, address.user, address.password), "switch"
        )
        try:
            await probe.open(self.answer_seconds)
        except (OSError, TimeoutError):
            return False
        await probe.close()
        return True

    async def accepts(self, plan: NatsPlan) -> bool:
        """Whether any server still has a plan."""
        return any([await self.takes(plan, server) for server in plan.servers])

    async def linked(self, plan: NatsPlan) -> None:
        """Until all links of a plan are there."""

        async def there(server: Server) -> bool:
            told = await self.ask(server, ALL_LEAFS)
            if told is None:
                return False
            own = {(leaf["account"], leaf["name"]) for leaf in told.get("leafs") or ()}
            return all(
                (plan.user(account), token(plan.servers[head].broker)) in own
                for account, head in plan.remotes.get(plan.number[server.broker], ())
            )

        what = "its links are not there"
        await asyncio.gather(*(self.until(there, server, what) for server in plan.servers))

    # ---- monitors

    async def ask(self, server: Server, what: str) -> dict[str, Any] | None:
        """What a server's monitor says; nothing if it is away."""
        return await asyncio.to_thread(asked, server, what, self.answer_seconds)

    async def starts(self) -> dict[str, str]:
        """When each server was started."""
        told = await asyncio.gather(*(self.ask(server, "varz") for server in self.servers))
        pairs = zip(self.servers, told, strict=True)
        return {server.broker: said["start"] for server, said in pairs if said}

    async def clients(self) -> tuple[dict[str, tuple[str, str]], bool]:
        """Clients that listen to commands, by their own numbers; and whether all servers told."""
        told = await asyncio.gather(*(self.ask(server, CLIENTS) for server in self.servers))
        found = {}
        for said in told:
            for one in (said or {}).get("connections") or ():
                sign, *rest = one.get("name", "").split(" ")
                if sign == SIGN and len(rest) == 3:
                    found[rest[1]] = rest[0], name_of(rest[2])
        return found, None not in told


def asked(server: Server, what: str, seconds: float) -> dict[str, Any] | None:
    url = f"http://{server.host}:{server.monitor}/{what}"
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:
            told: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return None
    return told


def store_of(text: str) -> str:
    """The folder for streams in a server's file, if it has one."""
    found = re.search(r'^jetstream \{ store_dir: ("[^"\n]*") \}$', text, re.MULTILINE)
    return str(json.loads(found[1])) if found else ""
