"""Multicast addresses for channels: those that a switch can tell apart and does not flood.

An Ethernet address has only the low 23 bits of a group, so 32 groups share one. Switches send what
shares one with 224.0.0.0/24 to all ports, whoever joined (RFC 4541, section 2.1.2).
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from itertools import islice

from fanplan.core.errors import InputError, Problem

MULTICAST = IPv4Network("224.0.0.0/4")
SOURCE_SPECIFIC = IPv4Network("232.0.0.0/8")
MAC_BITS = (1 << 23) - 1

SHARED = (IPv4Network("224.0.0.0/24"), IPv4Network("224.0.1.0/24"))
"""Control protocols: the first is flooded by all switches, the second by some."""

KNOWN = tuple(map(IPv4Address, ("239.255.255.250", "239.255.255.253", "239.255.255.246")))
"""SSDP, SLP and Dynamic discovery: devices everywhere join them."""


def mac_of(address: IPv4Address) -> str:
    """The Ethernet address of a group."""
    low = int(address) & MAC_BITS
    return "01:00:5e:" + ":".join(f"{low >> shift & 0xFF:02x}" for shift in (16, 8, 0))


def is_shared(address: IPv4Address) -> bool:
    """Whether its Ethernet address is one that switches flood or that devices listen to."""
    low = int(address) & MAC_BITS
    blocks = {int(block.network_address) & MAC_BITS for block in SHARED}
    return low & ~0xFF in blocks or low in {int(known) & MAC_BITS for known in KNOWN}


def read_range(text: str) -> IPv4Network:
    """The range that a user gave, if channels may lie there."""
    try:
        network = IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        what, remedy = f"{text!r} is not a range ({error})", "Give one such as 239.192.0.0/14"
        raise InputError(Problem("addresses", what, remedy)) from None
    if not network.subnet_of(MULTICAST):
        what, remedy = f"{text} is not inside 224.0.0.0/4", "Give one such as 239.192.0.0/14"
        raise InputError(Problem("addresses", what, remedy))
    if network.overlaps(SOURCE_SPECIFIC):
        what = f"{text} reaches into 232.0.0.0/8, where who joins must name the senders"
        raise InputError(Problem("addresses", what, "Give a range outside of it"))
    return network


def channel_addresses(text: str, count: int) -> list[IPv4Address]:
    """Addresses for this many channels, in order: no two on one Ethernet address."""
    network = read_range(text)
    # More than 2^23 addresses in a row repeat themselves.
    size = min(network.num_addresses, MAC_BITS + 1)
    every = (network.network_address + at for at in range(size))
    found = list(islice(filter(is_fit, every), count)) if count <= size else []
    if len(found) < count:
        what = f"{count:,} channels need an address each, and {text} does not have as many to use"
        raise InputError(Problem("addresses", what, "Give a larger range, or plan fewer channels"))
    return found


def is_fit(address: IPv4Address) -> bool:
    return not is_shared(address)
