"""Simulation and churn of a design: what its delivery leaves to brokers, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commands import answer, run
from delivery_datasets import EDGES, SITES, cell_of, planned, world_of
from delivery_walk import Walk
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    with stages_are_there():
        yield planned(tmp_path_factory.mktemp("made"), world_of(1))


def test_a_run_has_the_messages_and_delays_of_the_ledger(
    made: tuple[Path, fanplan.Dataset],
) -> None:
    plan, dataset = made
    idle = fanplan.simulate(plan, dataset, congestion="none", match_ms=7, latency_ms=7)
    walk = Walk(world_of(1), plan)
    assert idle.agrees
    assert idle.agreement.compared == ("publications", "link_messages", "matches_total", "delay")
    assert idle.result.link_messages == walk.run()["forwarded"]
    assert idle.naive is not None
    assert idle.naive.link_messages == flooded(walk)
    assert idle.result.delay_mean_ms < idle.naive.delay_mean_ms
    drawn = fanplan.simulate(plan, dataset, times="drawn", seed=3)
    assert (drawn.agrees, drawn.times) == (True, "drawn")


def flooded(walk: Walk) -> int:
    """Messages on links if each goes to the brokers of all whose filters meet its cell."""
    count, world = 0, walk.world
    for _, publisher, topic, _, value in world.sent:
        low, high = EDGES[cell_of(value)], EDGES[cell_of(value) + 1]
        homes = {walk.home[who] for who in world.audience(topic, low, high)}
        count += len({b for end in homes for b in walk.way(walk.entry[publisher], end)})
    return count


def test_the_command_says_what_is_simulated(
    made: tuple[Path, fanplan.Dataset], capsys: pytest.CaptureFixture[str]
) -> None:
    plan, dataset = made
    assert run("simulate", plan, dataset.path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a message on a channel and a direct one take the shortest way over links" in said
    assert "No latency is known: a link takes 100 ms" in said
    assert "Beside content-based routing of everything" in said
    assert "It agrees with the plan's ledger: messages." in said


def test_protocols_of_both_layers_run(
    made: tuple[Path, fanplan.Dataset], capsys: pytest.CaptureFixture[str]
) -> None:
    plan, dataset = made
    assert run("churn", plan, dataset.path) == 2
    assert "the plan has groups and marking. Say which of them" in capsys.readouterr().err
    for layer in ("groups", "marking"):
        words = ("churn", plan, dataset.path, "--layer", layer, "--events", 40)
        code, told = answer(capsys, *words)
        assert (code, told["layer"], told["ok"]) == (0, layer, True)
    assert told["trees"] == f"shared:{min(SITES)}"


def test_without_brokers_there_is_nothing_to_simulate(tmp_path: Path) -> None:
    with stages_are_there():
        plan, dataset = planned(tmp_path, replace(world_of(3), brokers=False))
        with pytest.raises(InputError, match=r"has no brokers.*Replay it instead"):
            fanplan.simulate(plan, dataset)
        with pytest.raises(InputError, match="has no layer groups and no layer marking"):
            fanplan.churn(plan, dataset)
