"""Senders and receivers on UDP sockets."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from fanplan.core.errors import InputError, Problem
from fanplan.live.entry import DEFAULT
from fanplan.live.message import NO_CHANNEL, Header, Message, encode
from fanplan.live.multicast.plan import MulticastPlan, Targets
from fanplan.live.transport import Publication, Range, Take

MOST_BYTES = 65_507
"""That a UDP datagram can have."""
BUFFER = 64 << 20
"""Bytes of datagrams that may wait at a socket, if the machine allows."""
READ_AT_ONCE = 256

# Names that Python's socket module does not have; numbers are those of Linux.
IP_MULTICAST_ALL = 49
SO_RCVBUFFORCE = 33

NOTHING = Targets()


def sending_socket(interface: str = "") -> socket.socket:
    """A socket to send from; ``interface`` is the address of the one that multicast leaves by."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 16)
    if interface:
        out = socket.inet_aton(interface)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, out)
    return made


def receiving_socket(plan: MulticastPlan, subscriber: str, interface: str = "") -> socket.socket:
    """One socket for all that a subscriber gets, so that what is sent in order stays in order."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Only groups that this socket joined, not those of others on the machine.
        made.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        enlarge_buffer(made)
        made.bind(("", plan.port))
        for channel in plan.members.get(subscriber, ()):
            join_group(made, plan.addresses[channel], interface)
    except OSError as error:
        made.close()
        raise InputError(refusal(plan, subscriber, error)) from error
    return made


def refusal(plan: MulticastPlan, subscriber: str, error: OSError) -> Problem:
    """Why a subscriber cannot listen, and what to do."""
    if error.errno == errno.ENOBUFS:
        joins = len(plan.members[subscriber])
        what = f"cannot join {joins} groups with one socket"
        remedy = f"Set net.ipv4.igmp_max_memberships to {joins} or more, as the export says"
        return Problem(f"subscriber {subscriber!r}", what, remedy)
    what = f"cannot listen on port {plan.port} ({error.strerror})"
    return Problem(f"subscriber {subscriber!r}", what, "Free the port, or repair the network")


def enlarge_buffer(made: socket.socket) -> None:
    """As large as asked for where one may; else as the machine's own limit has it."""
    try:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    except PermissionError:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)


def join_group(made: socket.socket, group: str, interface: str = "") -> None:
    request = socket.inet_aton(group) + socket.inet_aton(interface or "0.0.0.0")
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)


class Sender:
    """Sends what a publisher has, as the plan has it for the brokers ``at``.

    By default that is the broker where its messages enter, and without brokers all of it. ``sent``
    counts datagrams by channel and broker, ``unicast`` those to one subscriber by broker. What has
    no flow goes to each who wants it, from where it enters.
    """

    def __init__(
        self,
        plan: MulticastPlan,
        publisher: str,
        at: Sequence[int] = (),
        make: Callable[[int], socket.socket] = lambda _: sending_socket(),
    ) -> None:
        self.plan, self._make = plan, make
        self.entry, self.source = plan.entry_of(publisher), plan.source_of(publisher)
        self.at = tuple(at) or (self.entry,)
        self.sent: Counter[tuple[int, int]] = Counter()
        self.unicast: Counter[int] = Counter()
        self._targets = plan.ways.targets
        self._sequence: Counter[tuple[int, int]] = Counter()
        self._sockets: dict[int, socket.socket] = {}

    async def open(self) -> None:
        self._sockets = {broker: self._make(broker) for broker in self.at}

    async def drained(self) -> None:
        """A datagram is gone when it is sent; others get their turn."""
        await asyncio.sleep(0)

    async def flushed(self) -> None:
        """Nobody acknowledges a datagram."""
        await self.drained()

    async def close(self) -> None:
        for own in self._sockets.values():
            own.close()

    def known(self) -> set[int]:
        return {flow for flow, entry in self.plan.ways.planned if entry == self.entry}

    def send(self, publications: Iterable[Publication]) -> None:
        for each in publications:
            if each.flow == DEFAULT:
                self._to_people(each, self.entry, each.audience)
                continue
            for broker in self.at:
                targets = self._targets.get((each.flow, self.entry, broker), NOTHING)
                self._to_channels(each, broker, targets.channels)
                self._to_people(each, broker, targets.people)

    def _to_channels(self, each: Publication, broker: int, channels: Sequence[int]) -> None:
        for channel in channels:
            self._send(each, broker, channel, NO_CHANNEL, self.plan.addresses[channel])
            self.sent[channel, broker] += 1

    def _to_people(self, each: Publication, broker: int, people: Sequence[int]) -> None:
        for person in people:
            self._send(each, broker, NO_CHANNEL, person, self.plan.host_of(person))
            self.unicast[broker] += 1

    def _send(self, each: Publication, broker: int, channel: int, person: int, host: str) -> None:
        sequence = self._sequence[channel, person]
        self._sequence[channel, person] += 1
        header = Header(
            self.plan.epoch, each.flow, self.source, each.number, channel, sequence, each.sent_ns
        )
        data = encode(Message(header, each.topic, each.x, each.payload))
        if len(data) > MOST_BYTES:
            what = f"has {len(data):,} bytes, more than a datagram's {MOST_BYTES:,}"
            raise InputError(Problem(f"a message on {each.topic}", what, "Send less at once"))
        self._sockets[broker].sendto(data, (host, self.plan.port))


class Receiver:
    """Receives what a subscriber's groups and its own address get."""

    sources: tuple[str, ...] = ()

    def __init__(
        self,
        plan: MulticastPlan,
        subscriber: str,
        make: Callable[[MulticastPlan, str], socket.socket] = receiving_socket,
    ) -> None:
        self._make = partial(make, plan, subscriber)
        self._socket: socket.socket | None = None

    async def open(self, take: Take) -> None:
        self._socket = self._make()
        asyncio.get_running_loop().add_reader(self._socket, self._read, self._socket, take)

    @staticmethod
    def _read(own: socket.socket, take: Take) -> None:
        """Some datagrams; the loop asks again if there are more, after others had their turn."""
        try:
            for _ in range(READ_AT_ONCE):
                take(own.recv(MOST_BYTES))
        except BlockingIOError:
            return

    async def ask(self, _: int, __: Sequence[Range]) -> None:
        """Nobody keeps datagrams."""

    async def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
