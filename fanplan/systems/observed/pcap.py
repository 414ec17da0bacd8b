"""Captures of IP multicast: who joined which group, and what was sent to it.

Read some at a time, pcap and pcapng, of Ethernet with VLANs, Linux' cooked links, loopback and bare
IP. Memberships are told by IGMP v1 to v3 and by MLD v1 and v2; those in force at the end count.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import IO, NamedTuple

from fanplan.core.errors import InputError, Problem
from fanplan.core.files import require_regular
from fanplan.systems.observed.tables import Row, Writer, no_workload

CAPTURE = "Name a capture, as tcpdump -w writes it"
MOST_PACKET = 1 << 26
"""Bytes of a packet or block; more are a damaged file."""
ETHERNET, NULL, RAW, COOKED, RAW4, RAW6, COOKED2 = 1, 0, 101, 113, 228, 229, 276
IPV4, IPV6, VLANS, UNKNOWN = 0x0800, 0x86DD, (0x8100, 0x88A8, 0x9100), -1
IGMP, UDP, ICMP6 = 2, 17, 58
OPTIONS, FRAGMENT = (0, 43, 60), 44
"""Headers of IPv6 that stand before what is carried."""
JOINS, LEAVES, RECORDS = (0x12, 0x16), (0x17,), 0x22
MLD_JOIN, MLD_LEAVE, MLD_RECORDS = 131, 132, 143
IS_INCLUDE, IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW = 1, 2, 3, 4, 5


class CapturedPacket(NamedTuple):
    """When, on what kind of link, and what of it was captured."""

    time: float
    link: int
    data: bytes


@dataclass
class SeenPackets:
    """What captures told: when each last joined or left which group, and counts of the rest.

    ``now`` is the time of the packet that is looked at: captures may be given in any order.
    """

    last: dict[tuple[str, str], tuple[float, bool]] = field(default_factory=dict)
    now: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    truncated: list[str] = field(default_factory=list)

    def membership(self, who: str, group: str, joined: bool) -> None:
        self.counts["joins" if joined else "leaves"] += 1
        if self.now >= self.last.get((who, group), (self.now, False))[0]:
            self.last[who, group] = self.now, joined

    @property
    def members(self) -> list[tuple[str, str]]:
        return sorted(key for key, (_, joined) in self.last.items() if joined)


def observe_pcap(paths: list[Path], out: Writer) -> tuple[str, ...]:
    """Write the tables; what was seen and is in none of them."""
    seen = SeenPackets()
    out.describe(paths[0].stem)
    out.publications(sent_in(paths, seen))
    out.table("subscriptions", ("subscriber", "topic"), seen.members)
    if not out.counts:
        cut = ", and it ends in the middle of one" if seen.truncated else ""
        what = f"has no multicast ({seen.counts['packets']:,} packets were read{cut})"
        raise no_workload(str(paths[0]), what, "Capture where hosts join groups and senders send")
    notes = [
        f"{path} ends in the middle of a packet; what came before was read"
        for path in seen.truncated
    ]
    return (*notes, *(f"{count:,} {what}" for what, count in seen.counts.items() if count))


def sent_in(paths: list[Path], seen: SeenPackets) -> Iterator[Row]:
    """Publications of captures, one after the other; memberships are noted on the way."""
    for path in paths:
        for packet in packets(path, seen):
            seen.counts["packets"] += 1
            row = note_packet(packet, seen)
            if row is not None:
                yield row


# ---- files


def packets(path: Path, seen: SeenPackets) -> Iterator[CapturedPacket]:
    """The packets of a file; one that ends too early gives what it has."""
    try:
        require_regular(path, CAPTURE)
        with path.open("rb") as file:
            magic = file.read(4)
            if magic in PCAP:
                yield from of_pcap(file, *PCAP[magic])
            elif magic == b"\x0a\x0d\x0d\x0a":
                yield from of_pcapng(file)
            else:
                raise no_workload(str(path), "is neither pcap nor pcapng", CAPTURE)
    except EOFError:
        seen.truncated.append(str(path))
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise InputError(Problem(str(path), what, CAPTURE)) from error
    except struct.error as error:
        raise InputError(Problem(str(path), f"is damaged ({error})", CAPTURE)) from error


PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
"""Order of bytes and unit of times, by the first bytes of a file."""


def next_bytes(file: IO[bytes], size: int) -> bytes:
    """This many bytes; the file must have them."""
    if not 0 <= size <= MOST_PACKET:
        raise struct.error(f"a packet of {size:,} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def of_pcap(file: IO[bytes], order: str, unit: float) -> Iterator[CapturedPacket]:
    *_, link = struct.unpack(f"{order}HHiIII", next_bytes(file, 20))
    head = struct.Struct(f"{order}IIII")
    while first := file.read(16):
        if len(first) < 16:
            raise EOFError
        seconds, part, size, _ = head.unpack(first)
        yield CapturedPacket(seconds + part * unit, link & 0xFFFF, next_bytes(file, size))


def of_pcapng(file: IO[bytes]) -> Iterator[CapturedPacket]:
    """Blocks of type, length, body, length; a section may have its own order of bytes."""
    order = "<"
    links, units = list[int](), list[float]()
    kind, started = 0x0A0D0D0A, True
    while True:
        if not started:
            word = file.read(4)
            if not word:
                return
            if len(word) < 4:
                raise EOFError
            (kind,) = struct.unpack(f"{order}I", word)
        started = False
        raw = next_bytes(file, 4)
        if kind == 0x0A0D0D0A:
            mark = next_bytes(file, 4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            (size,) = struct.unpack(f"{order}I", raw)
            next_bytes(file, size - 12)
            links, units = [], []
            continue
        (size,) = struct.unpack(f"{order}I", raw)
        body = next_bytes(file, size - 8)
        if kind == 1:
            links.append(struct.unpack_from(f"{order}H", body)[0])
            units.append(unit_of(body[8:-4], order))
        elif kind == 6:
            at, high, low, kept, _ = struct.unpack_from(f"{order}IIIII", body)
            if at >= len(links):
                raise struct.error(f"interface {at} is not described")
            yield CapturedPacket((high << 32 | low) * units[at], links[at], body[20 : 20 + kept])


def unit_of(options: bytes, order: str) -> float:
    """The unit of times of an interface."""
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(f"{order}HH", options, at)
        if code == 0:
            break
        if code == 9 and at + 4 < len(options):
            power = options[at + 4]
            return float(2.0 ** -(power & 0x7F)) if power & 0x80 else float(10.0**-power)
        at += 4 + (size + 3) // 4 * 4
    return 1e-6


# ---- packets


def note_packet(packet: CapturedPacket, seen: SeenPackets) -> Row | None:
    """The publication of a packet, if it is one; memberships are noted."""
    seen.now = packet.time
    try:
        kind, at = network_of(packet)
        if kind == IPV4:
            return look_at_ipv4(packet.time, packet.data[at:], seen)
        if kind == IPV6:
            return look_at_ipv6(packet.time, packet.data[at:], seen)
        seen.counts["packets on links of an unknown kind"] += kind == UNKNOWN
    except (IndexError, struct.error):
        seen.counts["packets that were cut too short to be understood"] += 1
    return None


def network_of(packet: CapturedPacket) -> tuple[int, int]:
    """What is in a packet, and where it begins."""
    data, link = packet.data, packet.link
    if link in (RAW, RAW4, RAW6):
        return (IPV6 if data[0] >> 4 == 6 else IPV4), 0
    if link == NULL:
        return (IPV4 if 2 in (data[0], data[3]) else IPV6), 4
    at = {ETHERNET: 12, COOKED: 14, COOKED2: 0}.get(link)
    if at is None:
        return UNKNOWN, 0
    (kind,) = struct.unpack_from(">H", data, at)
    end = 20 if link == COOKED2 else at + 2
    while kind in VLANS:
        (kind,) = struct.unpack_from(">H", data, end + 2)
        end += 4
    return kind, end


def look_at_ipv4(time: float, data: bytes, seen: SeenPackets) -> Row | None:
    head = 4 * (data[0] & 15)
    (size,) = struct.unpack_from(">H", data, 2)
    part, kind = struct.unpack_from(">H", data, 6)[0] & 0x1FFF, data[9]
    who, group = str(IPv4Address(data[12:16])), data[16:20]
    if kind == IGMP:
        memberships4(who, data[head:], seen)
    elif group[0] >> 4 == 14:
        return publication(time, who, str(IPv4Address(group)), (kind, size - head, part), seen)
    return None


def memberships4(who: str, data: bytes, seen: SeenPackets) -> None:
    """Joins and leaves of IGMP."""
    kind = data[0]
    if kind in JOINS or kind in LEAVES:
        note_member(who, str(IPv4Address(data[4:8])), kind in JOINS, seen)
    elif kind == RECORDS:
        report_records(who, data, 4, seen)


def look_at_ipv6(time: float, data: bytes, seen: SeenPackets) -> Row | None:
    (size,), kind, at, part = struct.unpack_from(">H", data, 4), data[6], 40, 0
    who, group = str(IPv6Address(data[8:24])), data[24:40]
    while kind in OPTIONS or kind == FRAGMENT:
        if kind == FRAGMENT:
            part, more = struct.unpack_from(">H", data, at + 2)[0] >> 3, 8
        else:
            more = 8 + 8 * data[at + 1]
        kind, at = data[at], at + more
    if kind == ICMP6 and not part:
        memberships6(who, data[at:], seen)
    elif group[0] == 0xFF:
        return publication(time, who, str(IPv6Address(group)), (kind, size + 40 - at, part), seen)
    return None


def memberships6(who: str, data: bytes, seen: SeenPackets) -> None:
    """Joins and leaves of MLD."""
    if data[0] in (MLD_JOIN, MLD_LEAVE):
        note_member(who, str(IPv6Address(data[8:24])), data[0] == MLD_JOIN, seen)
    elif data[0] == MLD_RECORDS:
        report_records(who, data, 16, seen)


def report_records(who: str, data: bytes, width: int, seen: SeenPackets) -> None:
    """The records of a report of IGMP v3 or MLD v2: each has a kind, sources and a group."""
    (count,), at = struct.unpack_from(">H", data, 6), 8
    for _ in range(count):
        kind, more, sources = data[at], data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        group = data[at + 4 : at + 4 + width]
        name = str(IPv4Address(group) if width == 4 else IPv6Address(group))
        if kind in (IS_EXCLUDE, TO_EXCLUDE) or (
            kind in (IS_INCLUDE, TO_INCLUDE, ALLOW) and sources
        ):
            note_member(who, name, True, seen)
        elif kind == TO_INCLUDE:
            note_member(who, name, False, seen)
        at += 4 + width * (1 + sources) + 4 * more


def note_member(who: str, group: str, joined: bool, seen: SeenPackets) -> None:
    if not reserved(group):
        seen.membership(who, group, joined)


def publication(
    time: float, who: str, group: str, told: tuple[int, int, int], seen: SeenPackets
) -> Row | None:
    """A datagram to a group. Later parts of one that was cut are counted alone."""
    kind, size, part = told
    if reserved(group):
        seen.counts["packets to groups of the network itself"] += 1
        return None
    if part:
        seen.counts["further parts of datagrams, whose bytes are not counted"] += 1
        return None
    return time, who, group, max(size - (8 if kind == UDP else 0), 0)


def reserved(group: str) -> bool:
    """Groups by which routers and hosts keep the network itself going."""
    return group.startswith(("224.0.0.", "ff01:", "ff02:"))
