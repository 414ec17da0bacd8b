"""What goes wrong on real NATS servers is counted; what must not be missed is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from delivery_datasets import world_of
from nats_worlds import designed, needs_nats, total, tried
from ready import stages_are_there

import fanplan
from fanplan.core.progress import quiet
from fanplan.layers.registry import load_plan
from fanplan.live.nats.wire import Address, Connection
from fanplan.systems.nats import run
from fanplan.systems.nats.counters import read_counters
from fanplan.systems.nats.servers import Servers, free_servers, server_program
from fanplan.systems.nats.trial import run_trial
from fanplan.systems.params import TrialParams
from fanplan.systems.traffic import read_traffic
from fanplan.systems.ways import TREE

pytestmark = needs_nats


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    """A design with more publications, so that some are under way at any time."""
    with stages_are_there():
        yield designed(tmp_path_factory.mktemp("made"), world_of(1, sent=1500))


def test_what_is_lost_while_a_server_is_away_is_counted(made: tuple[Path, fanplan.Dataset]) -> None:
    result = tried(*made, kill="b3")
    assert result.facts["lost_while_away"] > 0
    assert total(result, "subscriber missed") == 0


@pytest.mark.parametrize("broker", ["b3", "b2"])
def test_durable_publications_are_not_lost(broker: str, made: tuple[Path, fanplan.Dataset]) -> None:
    result = tried(*made, kill=broker, durable=True)
    assert result.facts["sent_again"] == 1000
    assert total(result, "while away lost") == result.facts["lost_while_away"] == 0
    assert total(result, "while away neither planned nor marked") == 0


@pytest.fixture
def soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is known to miss something is not waited for longer than it takes to see that."""
    monkeypatch.setattr(run, "PATIENCE", 2.0)


@pytest.mark.usefixtures("soon_given_up")
def test_a_plan_with_one_membership_removed_is_found_out(
    made: tuple[Path, fanplan.Dataset],
) -> None:
    plan, dataset = load_plan(made[0]), made[1].path
    traffic = read_traffic(plan, dataset, 200)
    channel, who = traffic.ways.members
    fewer = replace(traffic.ways, members=(channel[1:], who[1:]))
    control = replace(traffic, ways=fewer)
    result = run_trial(
        plan, dataset, traffic, TrialParams(), quiet(), server_program(), enacting=control
    )
    assert not result.ok
    name = traffic.ways.subscribers[who[0]]
    assert {row.key for row in result.differences} >= {
        ("subscriber", name, "missed"),
        ("subscriber", name, "wanted"),
    }
    assert "not ready" in result.notes[0]


@pytest.mark.usefixtures("soon_given_up")
def test_a_missing_link_is_found_out(made: tuple[Path, fanplan.Dataset]) -> None:
    plan, dataset = load_plan(made[0]), made[1].path
    traffic = read_traffic(plan, dataset, 200)
    hops = traffic.ways.hops
    at = list(hops.kind).index(TREE)
    ends = sorted((int(hops.tail[at]), int(hops.head[at])))
    (edges,) = traffic.ways.edges
    fewer = replace(traffic.ways, edges=(edges[~(edges == ends).all(axis=1)],))
    control = replace(traffic, ways=fewer)
    result = run_trial(
        plan, dataset, traffic, TrialParams(), quiet(), server_program(), enacting=control
    )
    assert not result.ok
    assert any(row.key[0] == "link" for row in result.differences)


def test_a_link_that_was_made_anew_is_counted_whole(tmp_path: Path) -> None:
    """Messages before and after, on two connections, are one figure."""
    made = free_servers(["a"])
    (tmp_path / "a.conf").write_text(
        f"listen: 127.0.0.1:{made[0].client}\nhttp: 127.0.0.1:{made[0].monitor}\n"
    )
    running = Servers(made, tmp_path, server_program())
    try:
        running.start(0)
        running.await_ready()
        for _ in range(2):
            asyncio.run(sent_once(made[0].client))
        assert read_counters(running) == {("link", "b", "a", "agent"): 2}
    finally:
        running.stop()


async def sent_once(port: int) -> None:
    connection = await Connection(Address("127.0.0.1", port), "b>a").open()
    connection.publish(b"subject", b"content")
    await connection.flush()
    await connection.close()
