"""No two channels on one Ethernet address, and none where switches flood."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.systems.addresses import channel_addresses, mac_of, read_range

STARTS = st.integers(int(IPv4Address("233.0.0.0")), int(IPv4Address("239.255.255.255")))


@given(STARTS, st.integers(20, 32), st.integers(0, 300))
def test_switches_tell_all_channels_apart(start: int, prefix: int, count: int) -> None:
    network = IPv4Network((start, prefix), strict=False)
    try:
        found = channel_addresses(str(network), count)
    except InputError:
        assert network.num_addresses < count + 515
        return
    assert len({mac_of(address) for address in found}) == count
    assert all(address in network for address in found)
    for address in found:
        assert not mac_of(address).startswith(("01:00:5e:00:00:", "01:00:5e:00:01:"))
        assert mac_of(address) not in ("01:00:5e:7f:ff:fa", "01:00:5e:7f:ff:fd")


@pytest.mark.parametrize(
    ("address", "mac"),
    [
        ("239.192.0.1", "01:00:5e:40:00:01"),
        ("224.0.0.251", "01:00:5e:00:00:fb"),
        ("230.128.0.251", "01:00:5e:00:00:fb"),
    ],
)
def test_the_ethernet_address_has_the_low_23_bits(address: str, mac: str) -> None:
    assert mac_of(IPv4Address(address)) == mac


def test_ranges_that_switches_flood_are_left_out() -> None:
    assert channel_addresses("239.0.0.0/16", 2) == [*map(IPv4Address, ("239.0.2.0", "239.0.2.1"))]
    assert channel_addresses("239.127.255.0/24", 1) == [IPv4Address("239.127.255.0")]
    assert len(channel_addresses("239.255.255.0/24", 253)) == 253


def test_a_range_larger_than_ethernet_has_no_address_twice() -> None:
    with pytest.raises(InputError, match="8,388,609 channels"):
        channel_addresses("239.0.0.0/8", (1 << 23) + 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("somewhere", "is not a range"),
        ("239.1.1.1/8", "has host bits set"),
        ("10.0.0.0/8", "not inside 224.0.0.0/4"),
        ("224.0.0.0/4", "reaches into 232.0.0.0/8"),
        ("230.0.0.0/24", "230.0.0.0/24 does not have as many"),
    ],
)
def test_other_ranges_are_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        channel_addresses(text, 1)
    if "as many" not in told:
        with pytest.raises(InputError):
            read_range(text)
