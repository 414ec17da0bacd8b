"""Applications go from plan to plan while messages flow: none is missed, none comes twice."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nats_worlds import needs_nats
from ready import stages_are_there
from switching import (
    Applications,
    applications,
    brokers,
    exported,
    first_ones,
    free_port,
    links_there,
    moved,
    served,
    traffic,
    world_of,
)

from fanplan.core.errors import InputError, MachineError
from fanplan.live import Publisher, Subscriber
from fanplan.live.message import ENDED, PROBE, Header, Message
from fanplan.live.nats.follow import AgentFollower
from fanplan.live.nats.operator import Operator
from fanplan.live.nats.plan import FILE, load_plan
from fanplan.live.nats.record import RECORD, servers_of
from fanplan.live.subscriber import Handover, Subscribed
from fanplan.live.switch import SwitchReport, switch
from fanplan.systems.nats.servers import Servers

pytestmark = needs_nats

BROKERS, PEOPLE = 6, 14


class Versions:
    """Exports of one interest, with other homes, links and channels each."""

    def __init__(self, folder: Path) -> None:
        with stages_are_there(), brokers(BROKERS, 3) as self.publishers:
            draw, port = Random(3), free_port(BROKERS)
            world = world_of(draw, BROKERS, PEOPLE, self.publishers)
            self.exports = []
            for version in range(3):
                self.exports.append(
                    exported(
                        folder / f"v{version}", world, port, version + 1, channels=2 + version % 2
                    )
                )
                world = moved(draw, world, BROKERS)
            self.world = world


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    return Versions(tmp_path_factory.mktemp("versions"))


@pytest.fixture
def running(versions: Versions) -> Iterator[Servers]:
    for export in versions.exports:
        (export / RECORD).unlink(missing_ok=True)
    write_first(versions)
    with served(versions.exports[0]) as found:
        yield found


def write_first(versions: Versions) -> None:
    """The files of servers as the first export had them."""
    from fanplan.live.nats.config import write_configs

    write_configs(load_plan(versions.exports[0]), versions.exports[0] / "servers")


async def switched(old: Path, new: Path, **options: Any) -> SwitchReport:
    return await asyncio.to_thread(switch, old, new, **options)


def nothing_is_wrong(found: Applications) -> None:
    assert found.delivered > 0
    assert found.missed() == found.twice() == 0
    assert found.out_of_order() == []
    for subscriber in found.subscribers.values():
        assert subscriber.counts.stale == subscriber.counts.foreign == 0


def test_links_homes_and_channels_move_while_messages_flow(
    versions: Versions, running: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave, ended = Subscribed.leave, []

    async def watched(self: Subscribed) -> None:
        if self.handover is not None:
            ended.append(self.handover)
        await leave(self)

    monkeypatch.setattr(Subscribed, "leave", watched)
    reports = asyncio.run(moving(versions, running))
    assert len(ended) == 2 * PEOPLE
    for handover in ended:
        # Of a turn just as many end markers come as the plan tells, and never more.
        for source, needed in handover.needed.items():
            turns = [count for (own, _), count in handover.came.items() if own == source]
            assert max(turns, default=0) == needed
    assert all(report.applied and not report.passed for report in reports)
    assert sum(report.links_added for report in reports) > 0
    assert sum(report.homes_moved for report in reports) > 0
    assert servers_of(versions.exports[2]) == versions.exports[0] / "servers"
    text = (versions.exports[0] / "servers" / "b1.conf").read_text()
    assert load_plan(versions.exports[0]).epoch not in text


async def moving(versions: Versions, running: Servers) -> list[SwitchReport]:
    await links_there(running, versions.exports[0])
    one, two, three = versions.exports
    async with applications(one, versions.world, versions.publishers) as found:
        await first_ones(found)
        async with traffic(found):
            reports = [await switched(one, two), await switched(two, three)]
            again = await switched(two, three)
            assert not again.applied
        await found.arrived()
        nothing_is_wrong(found)
        with pytest.raises(InputError, match="is not in force, and neither is the new plan"):
            await switched(one, two)
    return reports


def begun(old: Path, new: Path, phase: str) -> subprocess.Popen[bytes]:
    """An operator of its own, once it has come so far."""
    code = f"from fanplan.live.switch import switch; switch({str(old)!r}, {str(new)!r})"
    process = subprocess.Popen([sys.executable, "-c", code])
    while process.poll() is None:
        if (new / RECORD).is_file() and json.loads((new / RECORD).read_text())["phase"] == phase:
            return process
        time.sleep(0.001)
    raise AssertionError("it ended before")


def killed(old: Path, new: Path, phase: str) -> None:
    process = begun(old, new, phase)
    process.kill()
    process.wait()
    assert json.loads((new / RECORD).read_text())["phase"] != "done"


def test_an_operator_that_was_killed_goes_on_where_it_was(
    versions: Versions, running: Servers
) -> None:
    async def interrupted() -> None:
        await links_there(running, versions.exports[0])
        one, two, three = versions.exports
        async with applications(one, versions.world, versions.publishers) as found:
            await first_ones(found)
            async with traffic(found):
                for phase in ("joining", "cutting"):
                    await asyncio.to_thread(killed, one, two, phase)
                assert (await switched(one, two)).applied
                await asyncio.to_thread(killed, two, three, "leaving")
                await switched(two, three)
                assert not (await switched(two, three)).applied
            await found.arrived()
            nothing_is_wrong(found)

    asyncio.run(interrupted())


def test_two_operators_do_not_work_at_once(versions: Versions, running: Servers) -> None:
    one, two, three = versions.exports
    process = begun(one, two, "joining")
    try:
        with pytest.raises(InputError, match=r"another run|is being written"):
            switch(one, three)
    finally:
        process.kill()
        process.wait()


def test_clients_come_and_go_in_the_middle(
    versions: Versions, running: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = Operator.tell

    async def meanwhile() -> None:
        await links_there(running, versions.exports[0])
        one, two, _ = versions.exports
        async with applications(one, versions.world, versions.publishers, durable=True) as found:
            await first_ones(found)
            gone, loop = found.subscribers.pop("s00"), asyncio.get_running_loop()
            came = Subscriber(one, "s01")

            async def told(self: Operator, do: str, *more: Any, **options: Any) -> None:
                if do == "cut" and not came._following._ears:
                    for each in (gone.close(), came.__aenter__()):
                        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(each, loop))
                await tell(self, do, *more, **options)

            monkeypatch.setattr(Operator, "tell", told)
            async with traffic(found):
                report = await switched(one, two)
            await found.arrived()
            nothing_is_wrong(found)
            assert {*report.passed} <= {"subscriber s00"}
            before = came.counts.wanted
            async with traffic(found):
                await asyncio.sleep(0.3)
            await found.arrived()
            assert came.counts.wanted > before
            assert came.counts.given_up == 0
            await came.close()
            for late in (Subscriber(one, "s02"), Publisher(one, "p1")):
                with pytest.raises(InputError, match="its plan is not in force"):
                    await late.__aenter__()

    asyncio.run(meanwhile())


def test_what_a_killed_server_lost_is_fetched_in_order(
    versions: Versions, running: Servers
) -> None:
    async def failing() -> SwitchReport:
        await links_there(running, versions.exports[0])
        one, two, three = versions.exports
        async with applications(one, versions.world, versions.publishers, durable=True) as found:
            await first_ones(found)
            # Who followed a switch knows what is sent from the start of the plan.
            await switched(one, two)
            async with traffic(found):
                await asyncio.to_thread(running.kill, 0)
                await asyncio.sleep(0.3)
                running.start(0)
                await asyncio.to_thread(running.await_ready)
                await links_there(running, two)
            # What was lost last is noticed when publishers end the plan.
            report = await switched(two, three)
            await found.arrived()
            nothing_is_wrong(found)
            assert sum(each.counts.again for each in found.subscribers.values()) > 0
            assert not any(each.counts.given_up for each in found.subscribers.values())
            return report

    assert asyncio.run(failing()).sent_again > 0


def test_who_ended_is_passed_over_and_told(versions: Versions, running: Servers) -> None:
    async def passing() -> SwitchReport:
        await links_there(running, versions.exports[0])
        one, two, _ = versions.exports
        async with applications(one, versions.world, versions.publishers) as found:
            await first_ones(found)
            # It hears commands, and no longer answers.
            silent = found.publishers["p1"]._following
            silent._do = asyncio.Event().wait
            found.publishers.pop("p1")
            async with traffic(found):
                report = await switched(one, two, timeout=4.0)
            await found.arrived()
            nothing_is_wrong(found)
            # Started again it is heard, though it counts its publications anew.
            async with Publisher(two, "p1") as found.publishers["p1"], traffic(found):
                await asyncio.sleep(0.5)
            await found.arrived()
            nothing_is_wrong(found)
            return report

    assert asyncio.run(passing()).passed == ("publisher p1",)


def test_a_plan_that_cannot_be_reached_leaves_the_old_one_in_force(
    versions: Versions, running: Servers
) -> None:
    async def refused() -> None:
        one, two, three = versions.exports
        await links_there(running, one)
        async with applications(one, versions.world, versions.publishers) as found:
            plan = load_plan(two)
            broker = plan.servers[next(iter(plan.agents))].broker
            await found.agents[broker].close()
            with pytest.raises(MachineError, match="needs an agent in the new plan"):
                await switched(one, two, timeout=2.0)
            with pytest.raises(InputError, match="is not an export for NATS"):
                await switched(one, three.parent)
            await AgentFollower(load_plan(one), broker).open()
            with pytest.raises(MachineError, match="for another workload"):
                await switched(one, of_others(two))
            # A server that does not load its file, nor answer.
            stopped = running.running[1].pid
            os.kill(stopped, signal.SIGSTOP)
            with pytest.raises(MachineError, match="did not load its configuration"):
                await switched(one, two, timeout=1.0)
            os.kill(stopped, signal.SIGCONT)
            await first_ones(found)
        for server in plan.servers:
            text = (one / "servers" / f"{server.broker}.conf").read_text()
            assert plan.epoch not in text
            assert load_plan(one).epoch in text

    asyncio.run(refused())


def of_others(export: Path) -> Path:
    """The same plan, for other people."""
    out = export.with_name("others")
    shutil.copytree(export, out)
    told = json.loads((out / FILE).read_text())
    told["listens"] = {f"other {who}": heard for who, heard in told["listens"].items()}
    (out / FILE).write_text(json.dumps(told))
    return out


# ---- what waits in between


def message(number: int, flow: int = 0) -> Message:
    return Message(Header(b"next", flow, 0, number), "t", (), b"")


def test_messages_wait_until_all_markers_of_one_turn_have_come() -> None:
    handover = Handover(b"old.", {"p": 2, "q": 0})
    assert not handover.holds("q", message(0))
    assert not handover.holds("new one", message(0))
    assert handover.holds("p", message(1))
    handover.marker("p", 1)
    handover.marker("p", 2)
    assert "p" not in handover.marked
    handover.marker("p", 2)
    assert "p" in handover.marked
    assert handover.end("p") == [message(1)]
    assert not handover.holds("p", message(2))
    assert ENDED != PROBE
