"""Captures of IP multicast as subscriptions and publications."""

from __future__ import annotations

import csv
import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fanplan
from fanplan.core.errors import InputError

A, B, GROUP, OTHER = "10.0.0.1", "10.0.0.2", "239.1.1.1", "239.1.1.2"


def ipv4(source: str, target: str, kind: int, body: bytes, options: bytes = b"") -> bytes:
    size = 20 + len(options) + len(body)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, size, 0, 0, 1, kind, 0)
    return head + IPv4Address(source).packed + IPv4Address(target).packed + options + body


def udp(size: int) -> bytes:
    return struct.pack(">HHHH", 5000, 5000, 8 + size, 0) + bytes(size)


def data(source: str, group: str, size: int) -> bytes:
    return ipv4(source, group, 17, udp(size))


def igmp2(who: str, group: str, joined: bool) -> bytes:
    body = struct.pack(">BBH", 0x16 if joined else 0x17, 0, 0) + IPv4Address(group).packed
    return ipv4(who, group, 2, body, b"\x94\x04\x00\x00")


def igmp3(who: str, *records: tuple[int, str, int]) -> bytes:
    body = struct.pack(">BBHHH", 0x22, 0, 0, 0, len(records))
    for kind, group, sources in records:
        body += (
            struct.pack(">BBH", kind, 0, sources) + IPv4Address(group).packed + bytes(4 * sources)
        )
    return ipv4(who, "224.0.0.22", 2, body, b"\x94\x04\x00\x00")


def ethernet(packet: bytes, *vlans: int) -> bytes:
    tags = b"".join(struct.pack(">HH", 0x8100, vlan) for vlan in vlans)
    return bytes(12) + tags + struct.pack(">H", 0x0800) + packet


def cooked(packet: bytes) -> bytes:
    return bytes(14) + struct.pack(">H", 0x0800) + packet


def pcap(
    path: Path, frames: list[bytes], link: int = 1, order: str = "<", nano: bool = False
) -> Path:
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    told = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for i, frame in enumerate(frames):
        part = i * (500_000_000 if nano else 500_000) % (10**9 if nano else 10**6)
        told += struct.pack(f"{order}IIII", 100 + i // 2, part, len(frame), len(frame)) + frame
    path.write_bytes(told)
    return path


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(path: Path, frames: list[bytes], order: str = "<") -> Path:
    told = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    told += block(1, struct.pack(f"{order}HHIHHBxxxHH", 1, 0, 0, 9, 1, 9, 0, 0), order)
    told += block(4, b"names", order)
    for i, frame in enumerate(frames):
        time = (100 * 2 + i) * 500_000_000
        head = struct.pack(
            f"{order}IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame)
        )
        told += block(6, head + frame, order)
    path.write_bytes(told)
    return path


FRAMES = [
    igmp2(A, GROUP, True),
    igmp3(B, (4, GROUP, 0), (4, OTHER, 0), (2, "224.0.0.251", 0)),
    data(B, GROUP, 100),
    data("10.0.0.9", OTHER, 7),
    data(A, "224.0.0.251", 5),
    data(A, "10.0.0.3", 5),
    igmp2(A, GROUP, False),
    igmp3(A, (1, OTHER, 2)),
    igmp3(B, (3, GROUP, 0), (6, OTHER, 1)),
]
MEMBERS = [(A, OTHER), (B, OTHER)]
SENT = [(101.0, B, GROUP, 100), (101.5, "10.0.0.9", OTHER, 7)]


def members(folder: Path) -> list[tuple[str, str]]:
    with (folder / "subscriptions.csv").open(newline="") as file:
        return [(row["subscriber"], row["topic"]) for row in csv.DictReader(file)]


def publications(folder: Path) -> list[tuple[object, ...]]:
    table = pq.read_table(folder / "publications.parquet")
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("kind", ["ethernet", "vlans", "cooked", "raw", "big", "nano", "ng", "ng>"])
def test_joins_leaves_and_data_of_every_kind_of_capture(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    plain = [ethernet(frame) for frame in FRAMES]
    {
        "ethernet": lambda: pcap(path, plain),
        "vlans": lambda: pcap(path, [ethernet(frame, 5, 7) for frame in FRAMES]),
        "cooked": lambda: pcap(path, [cooked(frame) for frame in FRAMES], 113),
        "raw": lambda: pcap(path, FRAMES, 101),
        "big": lambda: pcap(path, plain, order=">"),
        "nano": lambda: pcap(path, plain, nano=True),
        "ng": lambda: pcapng(path, plain),
        "ng>": lambda: pcapng(path, plain, ">"),
    }[kind]()
    found = fanplan.observe_pcap([path], tmp_path / "out")
    assert members(tmp_path / "out") == MEMBERS
    assert publications(tmp_path / "out") == SENT
    assert found.counts == {"publications": 2, "subscriptions": 2}
    assert "1 packets to groups of the network itself" in found.notes
    assert {"9 packets", "4 joins", "2 leaves"} <= {*found.notes}


def ipv6(source: str, target: str, kind: int, body: bytes) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(body), kind, 1)
    return head + IPv6Address(source).packed + IPv6Address(target).packed + body


def test_ipv6_with_mld(tmp_path: Path) -> None:
    record = struct.pack(">BBH", 4, 0, 0) + IPv6Address("ff15::1").packed
    report = bytes([58, 0, 5, 2, 0, 0, 1, 0]) + struct.pack(">BBHHH", 143, 0, 0, 0, 1) + record
    first, rest = (struct.pack(">BBHI", 17, 0, part, 7) for part in (1, 8))
    frames = [
        ipv6("fe80::1", "ff02::16", 0, report),
        ipv6("fd00::2", "ff15::1", 17, udp(33)),
        ipv6("fd00::2", "ff15::1", 44, first + udp(16)),
        ipv6("fd00::2", "ff15::1", 60, bytes([44, 0]) + bytes(6) + rest + bytes(9)),
    ]
    found = fanplan.observe_pcap([pcap(tmp_path / "c", frames, 101)], tmp_path / "out")
    assert members(tmp_path / "out") == [("fe80::1", "ff15::1")]
    assert publications(tmp_path / "out") == [
        (100.5, "fd00::2", "ff15::1", 33), (101.0, "fd00::2", "ff15::1", 16)
    ]  # fmt: skip
    assert "1 further parts of datagrams, whose bytes are not counted" in found.notes


def test_captures_may_be_named_in_any_order(tmp_path: Path) -> None:
    early = pcap(tmp_path / "early", [FRAMES[0]], 101)
    late = pcap(tmp_path / "late", [FRAMES[2], FRAMES[6]], 101)
    for paths in ([early, late], [late, early]):
        found = fanplan.observe_pcap(paths, tmp_path / paths[0].name[:1])
        assert "subscriptions" not in found.counts
    odd = pcap(tmp_path / "odd", [FRAMES[2]], 147)
    both = fanplan.observe_pcap([early, odd], tmp_path / "both")
    assert "1 packets on links of an unknown kind" in both.notes


def test_a_truncated_capture_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    path = pcap(tmp_path / "c", [ethernet(frame) for frame in FRAMES[:4]])
    path.write_bytes(path.read_bytes()[:-3])
    found = fanplan.observe_pcap([path], tmp_path / "out")
    assert f"{path} ends in the middle of a packet; what came before was read" in found.notes
    assert publications(tmp_path / "out") == SENT[:1]


def test_packets_that_were_cut_keep_their_size(tmp_path: Path) -> None:
    path = pcap(tmp_path / "c", [ethernet(data(A, GROUP, 500))[:60], ethernet(FRAMES[2])[:20]])
    found = fanplan.observe_pcap([path], tmp_path / "out")
    assert publications(tmp_path / "out") == [(100.0, A, GROUP, 500)]
    assert "1 packets that were cut too short to be understood" in found.notes


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    other, empty = tmp_path / "other", pcap(tmp_path / "empty", [ethernet(FRAMES[5])])
    other.write_text("no capture at all")
    for path, said in ((other, "neither pcap nor pcapng"), (empty, "has no multicast"),
                       (tmp_path / "nowhere", "cannot be read")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            fanplan.observe_pcap([path], tmp_path / "out")
    damaged = pcap(tmp_path / "damaged", [])
    damaged.write_bytes(damaged.read_bytes() + struct.pack("<IIII", 0, 0, 1 << 31, 1 << 31))
    with pytest.raises(InputError, match="is damaged"):
        fanplan.observe_pcap([damaged], tmp_path / "out")
    with pytest.raises(InputError, match="Name at least one"):
        fanplan.observe_pcap([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
