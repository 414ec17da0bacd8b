"""A switch and hosts on this machine: network namespaces, a bridge with IGMP snooping, links.

Namespaces are named after the process that made them and its start, so that the next run removes
those of runs that were killed. All traffic stays inside.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.core.processes import started_at

PREFIX = "fanplan"
NAMESPACES = Path("/run/netns")
FIRST = IPv4Address("10.77.0.1")
MOST_HOSTS = 1000
"""A bridge has up to 1,024 ports."""
CLONE_NEWNET = 0x40000000
HOUR = 360_000
"""In hundredths of a second. A bridge floods what hosts answer to its querier, which on a machine
that is a whole network takes the queues of its processors: it asks at first, then seldom."""
NO_IPV6 = {f"ipv6/conf/{which}/disable_ipv6": 1 for which in ("all", "default")}
"""Its own groups would be in the switch's table."""


@dataclass(frozen=True)
class Snooping:
    """How a switch learns who joined what; times in hundredths of a second.

    Hosts answer its querier within ``response``, and so long it floods when it is new. At first it
    asks every ``startup``; a bridge left alone does so after 31 s.
    """

    version: int = 3
    response: int = 100
    startup: int = 100


EXACT = Snooping()


@dataclass(frozen=True)
class Host:
    """A host on the switch: its namespace, its port there and its addresses."""

    namespace: str
    port: str
    address: str
    mac: str


@dataclass(frozen=True)
class Network:
    """Hosts by name, on one switch."""

    switch: str
    hosts: Mapping[str, Host]

    def memberships(self) -> set[tuple[str, str]]:
        """(port, group) of all that the switch believes to be joined."""
        told = ran("bridge", "-n", self.switch, "-j", "mdb", "show")
        rows = [row for part in json.loads(told or "[]") for row in part.get("mdb", ())]
        return {(row["port"], row["grp"]) for row in rows}


def require_root() -> None:
    """Namespaces are for root alone, and need the tools of iproute2."""
    if os.geteuid() != 0:
        what = "needs root, to make network namespaces"
        raise InputError(Problem("a trial on multicast", what, "Run it as root, or try --on nats"))
    missing = [name for name in ("ip", "bridge") if shutil.which(name) is None]
    if missing:
        what = f"needs {' and '.join(missing)}, which are not here"
        raise InputError(Problem("a trial on multicast", what, "Install iproute2"))


@contextmanager
def network(
    names: Iterable[str], memberships: int, snooping: Snooping = EXACT
) -> Iterator[Network]:
    """Hosts of these names on a switch; removed at the end. A socket may join this many groups."""
    require_root()
    sweep_namespaces()
    wanted = list(names)
    if len(wanted) > MOST_HOSTS:
        what = f"{len(wanted):,} hosts are more than the {MOST_HOSTS:,} that one bridge takes"
        raise InputError(Problem("a trial on multicast", what, "Try a plan with fewer subscribers"))
    own = f"{PREFIX}-{os.getpid()}-{started_at(os.getpid())}"
    made = Network(
        f"{own}-switch",
        {
            name: Host(f"{own}-{number}", f"p{number}", str(FIRST + number), host_mac(number))
            for number, name in enumerate(wanted)
        },
    )
    try:
        make(made, memberships, snooping)
        yield made
    finally:
        for each in (made.switch, *(host.namespace for host in made.hosts.values())):
            delete(each)


def make(made: Network, memberships: int, snooping: Snooping) -> None:
    """The switch first, then each host with its link."""
    hosts = made.hosts.values()
    batch("", [f"netns add {name}" for name in (made.switch, *(h.namespace for h in hosts))])
    with inside_namespace(made.switch):
        write_sysctls(NO_IPV6)
    batch(made.switch, switch_commands(snooping))
    for host in hosts:
        with inside_namespace(host.namespace):
            write_sysctls(host_sysctls(memberships, snooping.version))
    links = [
        line
        for host in hosts
        for line in (
            f"link add {host.port} type veth peer name eth0 address {host.mac} "
            f"netns {host.namespace}",
            f"link set {host.port} master br0 up",
        )
    ]
    batch(made.switch, links)
    # A switch floods what is for a host that it has not heard of, and some never send anything.
    learned = [f"fdb add {host.mac} dev {host.port} master static" for host in hosts]
    ran("bridge", "-n", made.switch, "-batch", "-", given="\n".join(learned) + "\n")
    for host in hosts:
        address = f"addr add {host.address}/16 dev eth0"
        batch(host.namespace, [address, "link set lo up", "link set eth0 up"])


def host_mac(number: int) -> str:
    """An Ethernet address that nobody was given by a maker."""
    return f"02:46:50:00:{number >> 8:02x}:{number & 0xFF:02x}"


def introduce(host: Host, others: Iterable[Host]) -> None:
    """Tell a host the Ethernet addresses of others.

    Linux keeps about a thousand that were asked for, over all namespaces, and silently drops what
    is sent to more. Those that it was told do not count.
    """
    known = (f"neigh replace {o.address} lladdr {o.mac} dev eth0 nud permanent" for o in others)
    batch(host.namespace, [*known])


def switch_commands(snooping: Snooping) -> list[str]:
    """The querier comes last: how long a bridge floods is fixed when it starts."""
    return [
        f"link add br0 type bridge mcast_snooping 1 mcast_igmp_version {snooping.version} "
        f"mcast_query_response_interval {snooping.response} "
        f"mcast_startup_query_interval {snooping.startup} mcast_hash_max 65536 "
        f"mcast_query_interval {HOUR} mcast_membership_interval {2 * HOUR}",
        "link set br0 type bridge mcast_querier 1",
        "link set br0 up",
    ]


def host_sysctls(memberships: int, igmp: int) -> dict[str, int]:
    return NO_IPV6 | {
        "ipv4/igmp_max_memberships": max(memberships, 20),
        "ipv4/conf/all/force_igmp_version": igmp,
    }


def write_sysctls(values: Mapping[str, int]) -> None:
    """Of the namespace that this thread is in; what a kernel does not have needs no setting."""
    for name, value in values.items():
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text(f"{value}\n")


@contextmanager
def inside_namespace(namespace: str) -> Iterator[None]:
    """This thread is in a namespace: what it opens belongs there and stays there."""
    with Path("/proc/thread-self/ns/net").open() as home:
        enter_namespace(NAMESPACES / namespace)
        try:
            yield
        finally:
            set_namespace(home.fileno())


def enter_namespace(path: Path) -> None:
    with path.open() as there:
        set_namespace(there.fileno())


def set_namespace(number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(number, CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def batch(namespace: str, lines: list[str]) -> None:
    """Commands of ``ip`` in one process."""
    where = ("-n", namespace) if namespace else ()
    ran("ip", *where, "-batch", "-", given="\n".join(lines) + "\n")


def ran(*command: str, given: str = "") -> str:
    """What a command says; its own words if it fails."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["it says nothing"]
        what = f"{command[0]} failed: {words[0]}"
        remedy = "Check whether this machine lets you make network namespaces"
        raise InputError(Problem("a trial on multicast", what, remedy))
    return done.stdout


def delete(namespace: str) -> None:
    """Links of a namespace go with it."""
    if (NAMESPACES / namespace).exists():
        ran("ip", "netns", "delete", namespace)


# ---- runs that were killed


def sweep_namespaces() -> list[str]:
    """Remove the namespaces of runs that are no longer there; their names."""
    found = NAMESPACES.glob(f"{PREFIX}-*-*-*") if NAMESPACES.is_dir() else iter(())
    dead = sorted(path.name for path in found if is_dead(path.name))
    for name in dead:
        delete(name)
    return dead


def is_dead(namespace: str) -> bool:
    """Whether the process that a namespace is named after has ended."""
    _, pid, start, _ = namespace.split("-", 3)
    return not pid.isdigit() or started_at(int(pid)) != start
