"""Datagrams on a host's link, counted by the kernel: those of the data port, and nothing else.

An interface's own counters have ARP and IGMP in them. A packet socket with a filter sees every
frame on the link, whoever joined, and counts those that pass even if nobody reads them.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from ipaddress import IPv4Address
from pathlib import Path

ETH_P_ALL = 0x0003
SO_ATTACH_FILTER = 26
SOL_PACKET = 263
PACKET_STATISTICS = 6
OUTGOING = 4
"""The type of a frame that the host itself sends."""
PACKET_TYPE = 0xFFFFF000 + 4

LOAD_WORD, LOAD_HALF, LOAD_BYTE = 0x20, 0x28, 0x30
LOAD_HALF_AFTER_HEADER, HEADER_SIZE = 0x48, 0xB1
IF_EQUAL, IF_ANY_BIT, RETURN = 0x15, 0x45, 0x06
ACCEPT, REFUSE = 64, 0

Test = tuple[int, int, int, int]
"""How to load, from where, how to compare, with what."""


def filter_of(port: int, outgoing: bool, group: str | None) -> bytes:
    """A program for the kernel: UDP to a port, first fragments only, in one direction."""
    needs: list[Test] = [
        (LOAD_HALF, 12, IF_EQUAL, 0x0800),
        (LOAD_BYTE, 23, IF_EQUAL, socket.IPPROTO_UDP),
    ]
    if outgoing:
        needs.insert(0, (LOAD_WORD, PACKET_TYPE, IF_EQUAL, OUTGOING))
    if group is not None:
        needs.append((LOAD_WORD, 30, IF_EQUAL, int(IPv4Address(group))))
    refused: list[Test] = [(LOAD_HALF, 20, IF_ANY_BIT, 0x1FFF)]
    if not outgoing:
        refused.append((LOAD_WORD, PACKET_TYPE, IF_EQUAL, OUTGOING))
    size = 2 * (len(needs) + len(refused)) + 3
    lines: list[bytes] = []
    for wanted, tests in ((True, needs), (False, refused)):
        for load, where, compare, value in tests:
            lines.append(bpf_instruction(load, 0, 0, where))
            away = size - len(lines)
            jumps = (0, away) if wanted else (away, 0)
            lines.append(bpf_instruction(compare, *jumps, value))
    lines.append(bpf_instruction(HEADER_SIZE, 0, 0, 14))
    lines.append(bpf_instruction(LOAD_HALF_AFTER_HEADER, 0, 0, 16))
    lines.append(bpf_instruction(IF_EQUAL, 0, 1, port))
    lines += [bpf_instruction(RETURN, 0, 0, ACCEPT), bpf_instruction(RETURN, 0, 0, REFUSE)]
    return b"".join(lines)


def bpf_instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


class LinkCounter:
    """Counts datagrams to a port on the link of the namespace that it is made in."""

    def __init__(self, port: int, outgoing: bool, group: str | None = None) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        program = ctypes.create_string_buffer(filter_of(port, outgoing, group))
        size = (len(program) - 1) // 8
        told = struct.pack("HL", size, ctypes.addressof(program))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, told)
        # What is not read waits: a page is enough, as the kernel counts all the same.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.bind(("eth0", ETH_P_ALL))
        self._total = 0

    def read(self) -> int:
        """How many there were since `reset`; reading sets the kernel's own counter to zero."""
        told = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        self._total += struct.unpack("II", told)[0]
        return self._total

    def reset(self) -> None:
        self.read()
        self._total = 0

    def close(self) -> None:
        self._socket.close()


def machine_drops() -> int:
    """Packets that this machine dropped because too many waited for a processor, of whomever."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)
