"""The export for IP multicast says what hosts and switches must hold, and is read back."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from ready import stages_are_there
from system_worlds import crowd, design

from fanplan.core.errors import InputError
from fanplan.live.entry import load_entry
from fanplan.live.message import epoch_of
from fanplan.live.multicast.plan import FILE, load_plan
from fanplan.systems.multicast.export import export, lacks
from fanplan.systems.params import ExportParams
from fanplan.systems.ways import Ways


@pytest.fixture(autouse=True)
def ready() -> Iterator[None]:
    with stages_are_there():
        yield


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def memberships(ways: Ways) -> set[tuple[str, str]]:
    pairs = zip(*(part.tolist() for part in ways.members), strict=True)
    return {(ways.subscribers[who], str(channel)) for channel, who in pairs}


@pytest.mark.parametrize("brokers", [True, False])
def test_an_export_is_read_back(brokers: bool, tmp_path: Path) -> None:
    plan, dataset, traffic = design(tmp_path / "world", 2, brokers)
    ways, out = traffic.ways, tmp_path / "export"
    out.mkdir()
    export(plan, dataset, ways, ExportParams(addresses="239.77.0.0/16", port=9000), out)
    made = load_plan(out)
    assert (made.epoch, made.port) == (epoch_of(plan.record.seal), 9000)
    assert len({*made.addresses}) == len(ways.domains)
    joins = {(row["subscriber"], row["channel"]) for row in rows_of(out / "joins.csv")}
    assert joins == memberships(ways)
    assert {(who, str(c)) for who, channels in made.members.items() for c in channels} == joins
    channels = rows_of(out / "channels.csv")
    assert [row["group"] for row in channels] == [*made.addresses]
    assert [row["domain"] for row in channels] == ways.domains
    sent = sum(len(targets.channels) for targets in made.ways.targets.values())
    alone = sum(len(targets.people) for targets in made.ways.targets.values())
    assert (sent, alone) == (len(ways.sends.parcel), len(ways.last.parcel))
    assert load_entry(out).subscribers == tuple(ways.subscribers)
    page = (out / "README.md").read_text()
    assert all(each in page for each in lacks(plan))
    assert ("nothing of this plan" in page) == (not brokers)


def test_limits_of_hosts_follow_the_plan(tmp_path: Path) -> None:
    plan, dataset, traffic = crowd(tmp_path / "world")
    out = tmp_path / "export"
    out.mkdir()
    export(plan, dataset, traffic.ways, ExportParams(), out)
    made = load_plan(out)
    most = max(map(len, made.members.values()))
    text = (out / "99-fanplan.conf").read_text()
    assert f"joins up to {most} groups" in text
    assert "net.ipv4.igmp_max_memberships = 20\n" in text
    assert "force_igmp_version = 3" in text


def test_too_small_a_range_and_a_broken_export_are_refused(tmp_path: Path) -> None:
    plan, dataset, traffic = crowd(tmp_path / "world")
    out = tmp_path / "export"
    out.mkdir()
    with pytest.raises(InputError, match="does not have as many to use"):
        export(plan, dataset, traffic.ways, ExportParams(addresses="239.77.4.0/32"), out)
    export(plan, dataset, traffic.ways, ExportParams(), out)
    (out / FILE).write_text("{}")
    with pytest.raises(InputError, match="is not an export for multicast"):
        load_plan(out)
