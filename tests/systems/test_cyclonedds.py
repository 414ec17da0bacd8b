"""Cyclone DDS starts with the exported configuration and delivers on the planned group."""

from __future__ import annotations

import csv
import importlib.util
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ready import stages_are_there
from system_worlds import design

from fanplan.systems.addresses import channel_addresses
from fanplan.systems.cyclonedds.export import CONFIG, export, lacks, partition
from fanplan.systems.params import ExportParams
from fanplan.systems.ways import Ways

if importlib.util.find_spec("cyclonedds") is None:
    pytest.skip("cyclonedds is not installed", allow_module_level=True)

END = Path(__file__).with_name("dds_end.py")
# Nothing leaves the machine: only loopback, which must be told that it can do multicast.
LOOPBACK = (
    "<General><Interfaces><NetworkInterface name='lo' multicast='true'/></Interfaces></General>"
)
DATA_PORT = 7401
"""Of multicast data in DDS domain 0."""
COUNT = 50


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[tuple[Path, Ways]]:
    with stages_are_there():
        plan, dataset, traffic = design(tmp_path / "world", brokers=False)
        out = tmp_path / "export"
        out.mkdir()
        export(plan, dataset, traffic.ways, ExportParams(addresses="239.77.4.0/24"), out)
        page = (out / "README.md").read_text()
        assert all(each in page for each in lacks(plan))
        yield out, traffic.ways


def dds(out: Path, *arguments: str) -> subprocess.Popen[str]:
    env = os.environ | {"CYCLONEDDS_URI": f"file://{out / CONFIG},{LOOPBACK}"}
    command = [sys.executable, str(END), *arguments]
    return subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def listening(group: str) -> socket.socket:
    """A socket that hears what is sent to a group on loopback."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((group, DATA_PORT))
    own = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton("127.0.0.1"))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, own)
    made.settimeout(0.5)
    return made


def heard(own: socket.socket) -> int:
    """How many datagrams of DDS came."""
    count = 0
    try:
        while True:
            count += own.recv(65_535).startswith(b"RTPS")
    except TimeoutError:
        return count


def test_a_sample_goes_to_the_group_of_its_channel(exported: tuple[Path, Ways]) -> None:
    out, ways = exported
    rows = rows_of(out / "writers.csv")
    row = next(row for row in rows if row["partition"] == partition(0))
    assert any(r["topic"] == row["topic"] and r["partition"] == row["partition"]
               for r in rows_of(out / "readers.csv"))  # fmt: skip
    addresses = [*map(str, channel_addresses("239.77.4.0/24", len(ways.domains)))]
    with listening(addresses[0]) as own, listening(addresses[1]) as other:
        # With one reader alone Cyclone DDS prefers unicast.
        whats = ("read", "read", "write")
        ends = [dds(out, what, row["topic"], row["partition"], str(COUNT)) for what in whats]
        try:
            for reader in ends[:2]:
                got, said = reader.communicate(timeout=60)
                assert reader.returncode == 0, said
                assert got.split() == ["started", *map(str, range(COUNT))], said
            assert ends[2].wait(timeout=60) == 0
        finally:
            for end in ends:
                end.kill()
                end.communicate()
        assert heard(own) >= 1
        assert heard(other) == 0


def test_readers_are_the_members(exported: tuple[Path, Ways]) -> None:
    out, ways = exported
    used = {*ways.sends.channel.tolist()}
    members = {
        (ways.subscribers[who], partition(channel))
        for channel, who in zip(*(part.tolist() for part in ways.members), strict=True)
        if channel in used
    }
    found = {(row["subscriber"], row["partition"]) for row in rows_of(out / "readers.csv")}
    assert {pair for pair in found if pair[1].startswith("fp_ch")} == members
    tree = ET.parse(out / CONFIG)
    assert len(tree.findall(".//{*}NetworkPartition")) == len(ways.domains)


def test_an_unknown_element_stops_cyclone(exported: tuple[Path, Ways], tmp_path: Path) -> None:
    """So a start with the export shows that all of it is understood."""
    out, _ = exported
    text = (out / CONFIG).read_text().replace("NetworkPartitions>", "NetworkPartition5>")
    (out / CONFIG).write_text(text)
    end = dds(out, "write", "t", partition(0), "1")
    _, said = end.communicate(timeout=60)
    assert end.returncode != 0
    assert "NetworkPartition5" in said
