"""Real servers on this machine: started, watched, ended."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.owned import started, undisturbed
from fanplan.core.processes import process_state
from fanplan.live.nats.config import file_of, pid_file_of
from fanplan.live.nats.plan import Server

HOST = "127.0.0.1"
START_SECONDS = 20.0
SERVER_BYTES = 40 << 20
"""What a server may need of memory."""


def find_server() -> str | None:
    """The server that the extra brings, or that is on the path."""
    own = Path(sys.executable).with_name("nats-server")
    return str(own) if own.is_file() else shutil.which("nats-server")


def server_program() -> str:
    """The server; an error if there is none."""
    found = find_server()
    if found is None:
        what = "no nats-server is here"
        raise InputError(Problem("nats", what, 'Install it: pip install "fanplan[trial]"'))
    return found


def free_servers(brokers: list[str], port: int | None = None) -> tuple[Server, ...]:
    """Servers on ports that are free now: those from ``port`` on, or any."""
    count = 3 * len(brokers)
    held = [listening(0 if port is None else port + i) for i in range(count)]
    ports = [int(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return tuple(
        Server(broker, HOST, *ports[3 * i : 3 * i + 3]) for i, broker in enumerate(brokers)
    )


def listening(port: int) -> socket.socket:
    server = socket.socket()
    try:
        server.bind((HOST, port))
    except OSError as error:
        server.close()
        what = f"port {port} is taken ({error.strerror})"
        raise MachineError(Problem("port", what, "Give another one, or none")) from error
    return server


def require_resources(servers: int, connections: int) -> None:
    """The machine has memory and open files for this many servers and connections."""
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    if servers * SERVER_BYTES > pages * size:
        what = f"{servers} servers need about {servers * SERVER_BYTES >> 20} MB of memory"
        remedy = f"Free some ({pages * size >> 20} MB are), or try a plan with fewer brokers"
        raise MachineError(Problem("brokers", what, remedy))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + 10 * servers + 100
    if needed > hard:
        what = f"{connections:,} connections need {needed:,} open files, and {hard:,} are allowed"
        raise MachineError(Problem("connections", what, "Raise the limit (ulimit -n)"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


# ---- servers


@dataclass
class Servers:
    """The servers of a trial, by the numbers of their brokers.

    ``peers`` are names of servers at the other end of leafnodes, by broker and connection.
    """

    servers: tuple[Server, ...]
    folder: Path
    program: str
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    peers: dict[tuple[int, int], str] = field(default_factory=dict)

    def start(self, broker: int) -> None:
        """Start a server."""
        server = self.servers[broker]
        log = (self.folder / f"{file_of(server)}.log").open("ab")
        with log, undisturbed():
            self.running[broker] = started(
                [
                    self.program,
                    "-c",
                    str(self.folder / file_of(server)),
                    "-P",
                    str(self.folder.absolute() / pid_file_of(server)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def await_ready(self) -> None:
        """Until all servers answer; the words of one that ended."""
        deadline = time.monotonic() + START_SECONDS
        for broker, server in enumerate(self.servers):
            while not answers(server):
                if self.running[broker].poll() is not None or time.monotonic() > deadline:
                    raise MachineError(self.failed(server))
                time.sleep(0.01)

    def failed(self, server: Server) -> Problem:
        text = (self.folder / f"{file_of(server)}.log").read_text(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        bad = [line for line in lines if "[FTL]" in line or "[ERR]" in line] or lines
        # Lines of a log begin with the process and the time.
        said = re.sub(r"^\[\d+\] \S+ \S+ ", "", bad[-1]) if bad else "it said nothing"
        what = f"its server did not start: {said}"
        return Problem(f"broker {server.broker!r}", what, "Put that right, and try again")

    def kill(self, broker: int) -> None:
        """End a server as a power cut would."""
        self.running[broker].kill()
        self.running[broker].wait()

    def used_cpu(self) -> float:
        """Seconds of all servers together."""
        ticks = sum(int(t) for p in self.running.values() for t in process_state(p.pid)[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()

    def ask(self, broker: int, what: str) -> dict[str, Any]:
        """What a server's monitor says."""
        server = self.servers[broker]
        url = f"http://{server.host}:{server.monitor}/{what}"
        with urllib.request.urlopen(url, timeout=START_SECONDS) as answer:
            told: dict[str, Any] = json.load(answer)
        return told


def answers(server: Server) -> bool:
    with socket.socket() as client:
        return client.connect_ex((server.host, server.client)) == 0
