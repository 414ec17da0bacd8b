"""What servers of NATS count is what the page of a watch shows as measured."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from delivery_datasets import World, write_world
from nats_worlds import needs_nats
from switching import applications, brokers, first_ones, free_port, served, traffic, world_of
from system_worlds import SPACE

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.registry import load_plan
from fanplan.live.entry import Entry, load_entry
from fanplan.live.nats.plan import load_plan as load_nats
from fanplan.systems.nats.export import export
from fanplan.systems.observed.carried import Carrier, Counts, rates
from fanplan.systems.params import ExportParams
from fanplan.systems.traffic import planned_ways
from fanplan.watching.measured import Meter, meter_of
from fanplan.watching.planning import carried_rates


def exported(folder: Path, world: World) -> Path:
    """The export of a plan of channels."""
    dataset = fanplan.open_dataset(write_world(folder / "dataset", world, **SPACE))
    plan = load_plan(fanplan.channels(dataset, 3).save(folder / "plan"))
    out, params = folder / "export", ExportParams(port=free_port(1))
    out.mkdir()
    export(plan, dataset.path, planned_ways(plan, dataset.path), params, out)
    return out


@needs_nats
def test_what_was_sent_on_each_channel_is_what_its_servers_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with brokers(3, 2) as publishers:
        world = world_of(Random(3), 3, 8, publishers)
        out = exported(tmp_path, world)
        with served(out):
            asyncio.run(counted(out, world, publishers))
    caplog.clear()
    found = meter_of((), str(out), 10.0)
    assert found is not None
    for _ in range(2):
        found.look()
    assert len(caplog.messages) == 1
    assert "no monitor answers" in caplog.text
    assert "the watch goes on" in caplog.text
    assert found.told("")["servers"] == 0


async def counted(out: Path, world: World, publishers: list[str]) -> None:
    plan, nobody = load_nats(out), "http://127.0.0.1:9"
    meter = Meter([f"http://127.0.0.1:{plan.servers[0].monitor}", nobody], 10.0)
    async with applications(out, world, publishers) as found:
        await first_ones(found)
        await asyncio.to_thread(meter.look)
        async with traffic(found):
            await asyncio.sleep(0.5)
        await found.arrived()
        await asyncio.to_thread(meter.look)
    sent = [each for own in found.sent.values() for each in own]
    expected = carried_copies(out, sent)
    assert expected["unicast"]
    assert len(expected) == 4
    told = meter.told(plan.epoch)
    amounts = {name: rate * told["seconds"] for name, rate in told["rates"].items()}
    assert {n: round(a, 6) for n, a in amounts.items() if a} == expected
    assert told["runs"]
    assert not meter.told("00000000")["runs"]
    assert told["servers"] == 1
    assert nobody in told["silent"][0]
    shown = carried_rates(load_plan(out.parent / "plan"), {}, told["rates"])
    assert {row["name"]: row["measured"] for row in shown} == told["rates"]


def carried_copies(out: Path, sent: list[tuple[str, float]]) -> Counter[str]:
    """Messages on each channel, and copies by unicast, of publications that were sent."""
    plan, entry = load_nats(out), Entry(load_entry(out))
    found: Counter[str] = Counter()
    for topic, value in sent:
        flow = entry.flow(topic, (value,))
        for _, way in plan.publish[0].get(flow, ()):
            if way.startswith("c"):
                found[f"channel {way[1:]}"] += 1
            else:
                own = f"{plan.prefix}.*.{flow}.>"
                heard = [each.subject for of in plan.listens.values() for each in of]
                found["unicast"] += heard.count(own)
    return found


def test_counters_begin_when_they_are_first_seen() -> None:
    first, second, link = Carrier("e", "channel 1"), Carrier("e", "unicast"), Carrier("", "link a")
    one, two, three, leaf = ("s", "1", "1"), ("s", "2", "1"), ("s", "1", "2"), ("s", "link", "1")
    early: Counts = {one: (first, 100), three: (second, 7)}
    later: Counts = {one: (first, 120), two: (first, 1000), leaf: (link, 5)}
    last: Counts = {one: (first, 130), two: (first, 1050), three: (second, 17), leaf: (link, 0)}
    found = rates([(0.0, early), (5.0, later), (10.0, last)])
    assert found == {first: 10.0, second: 1.0, link: 0.0}


def test_monitors_are_those_named_or_none(tmp_path: Path) -> None:
    assert meter_of((), None, 10.0) is None
    with pytest.raises(InputError, match="is not an address of a monitor"):
        meter_of(["ftp://somewhere"], None, 10.0)
    with pytest.raises(InputError, match="is shown on the page alone"):
        fanplan.watch(tmp_path, tmp_path, tmp_path / "state", monitor=["http://127.0.0.1:1"])
