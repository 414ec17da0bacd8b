"""`fanplan groups` as a user runs it, on a dataset with its stages; check, replay, simulate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import answer, run
from forging import forge
from group_datasets import write_group_dataset
from overlays import problem_of, routes_of, write_plan
from ready import stages_are_there
from sealing import amend

from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import Routes
from fanplan.network.trees import trees_of

# b0 over b1 and b2, which have b3, b4 and b5, b6.
LINKS = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
NAMES = [f"b{i}" for i in range(7)]
SENT = {(0, (3, 5)): 20.0, (0, (3, 4, 5, 6)): 20.0, (0, (6,)): 100.0, (6, (3, 6)): 30.0}
OTHER = {(0, (3, 5)): 7.0, (0, (3,)): 5.0, (6, (3, 6)): 1.0}


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def routes() -> Routes:
    return routes_of(SENT)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_group_dataset(tmp_path / "dataset", NAMES, routes(), LINKS)


KEYS = {"groups", "selected", "delay", "messages", "matches", "overhead", "saving", "entries"}
KEYS |= {
    "bound",
    "value",
    "unwanted",
    "covered",
    "ledger",
    "default",
    "compared",
    "best",
    "seconds",
}


def test_groups_writes_a_plan_that_holds(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    code, told = answer(capsys, "groups", dataset, "--select", "budget:4", "--out", out)
    assert code == 0
    assert told.keys() >= KEYS
    assert (told["groups"], told["roots"]) == (4, 2)
    assert told["entries"] <= 4
    assert told["value"] == told["bound"]
    assert told["delay"] < told["default"]["delay"]
    assert run("check", out, dataset) == 0
    assert "The plan holds." in capsys.readouterr().out
    assert run("groups", dataset, "--out", out) == 2
    assert "is a plan already" in capsys.readouterr().err
    assert run("groups", dataset, "--out", out, "--replace") == 0


def test_groups_shows_them_beside_default_routing(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--select", "budget:3", "--rank", "fc", "--price", "matched=2,entry=0.5", "--trees")
    assert run("groups", dataset, "--out", tmp_path / "plan", *words, "per-publisher") == 0
    shown = capsys.readouterr().out
    for said in ("Groups, checked", "default routing", "Best groups", "no choice exceeds"):
        assert said in shown
    for said in ("per-publisher", "exact destinations", "budget:3, ranked by fc", "matched 2"):
        assert said in shown


def test_the_trees_of_an_overlay(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two trees, one for what enters at b6."""
    problem = problem_of(routes(), [1e9] * 7, 2.0)
    other = [(6, 3), (6, 2), (2, 0), (0, 1), (1, 4), (2, 5)]
    of = np.array([0, 0, 0, 0, 0, 0, 1], np.int32)
    trees = trees_of((pairs(LINKS), pairs(other)), of)
    overlay = write_plan(tmp_path / "overlay", dataset, problem, trees)
    bare = write_group_dataset(tmp_path / "bare", NAMES, routes())
    out = tmp_path / "plan"
    words = ("--overlay", overlay, "--select", "top:100%")
    code, told = answer(capsys, "groups", bare, *words, "--out", out)
    assert (code, told["params"]["trees"], told["roots"]) == (0, "overlay", 2)
    assert run("check", out, bare) == 0
    # b6 is next to b3 on its tree.
    best = {row["root"]: row["entries"] for row in told["best"]}
    assert best["b6"] == 1
    assert run("simulate", out, bare, "--times", "drawn") == 0
    write_other_key(bare)
    capsys.readouterr()
    assert run("groups", bare, *words, "--out", out, "--replace") == 2
    assert "planned for other input" in capsys.readouterr().err


def pairs(links: list[tuple[int, int]]) -> np.ndarray:
    return np.array(links, np.int32)


def write_other_key(dataset: Path) -> None:
    amend(dataset, key="key-2")


@pytest.mark.parametrize("more", [(), ("--no-shortcuts",)])
def test_the_simulator_agrees_with_the_plan(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    out = tmp_path / "plan"
    assert run("groups", dataset, "--select", "top:75%", "--out", out, *more) == 0
    words = ("--times", "drawn", "--congestion", "none", "--latency-ms", 1, "--match-ms", 1)
    code, told = answer(capsys, "simulate", out, dataset, *words)
    assert (code, told["agrees"]) == (0, True)
    # A shortcut is one hop of the plan, but takes as long as the links it passes by.
    delay = ["delay"] if more else []
    assert told["compared"] == ["publications", "link_messages", "matches_total", *delay]
    stated = load_plan(out).section(GroupsRecord).ledger["matches_total"]
    forge(out, "groups", "ledger", "matches_total", to=stated + 1)
    code, told = answer(capsys, "simulate", out, dataset, *words)
    assert (code, told["agrees"]) == (1, False)
    assert "matches_total" in told["differences"][0]


def test_replay_judges_a_plan_on_other_traffic(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    _, planned = answer(capsys, "groups", dataset, "--select", "top:100%", "--out", out)
    code, told = answer(capsys, "replay", out, dataset)
    assert (code, told["same_traffic"], told["differences"]) == (0, True, {})
    assert told["ledger"] == pytest.approx(planned["ledger"])
    other = write_group_dataset(tmp_path / "other", NAMES, routes_of(OTHER), LINKS)
    write_other_key(other)
    code, told = answer(capsys, "replay", out, other)
    assert (code, told["same_traffic"]) == (0, False)
    # Only what goes to b3 alone has no group.
    assert (told["publications"], told["covered"]) == (13, 8 / 13)
    assert told["delivered"] == 2 * 7 + 5 + 2
    assert told["ledger"]["matches_total"] == 13 + 5
    assert run("replay", out, other) == 0
    assert "other traffic than was planned for" in capsys.readouterr().out


def test_replay_names_a_broker_without_a_tree(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", dataset, "--out", tmp_path / "plan") == 0
    sent = routes_of({(4, (0,)): 1.0})
    other = write_group_dataset(tmp_path / "other", NAMES, sent, LINKS)
    assert run("replay", tmp_path / "plan", other) == 2
    assert "broker 'b4' sends, but is not a root" in capsys.readouterr().err


WRONG = {
    "select": (("--select", "top:0%"), "--select: 'top:0%' is not a share"),
    "rank": (("--rank", "best"), "--rank: 'best' is unknown. Use one of: saving, nc, fc"),
    "trees": (("--trees", "best"), "--trees: 'best' is unknown. Use one of: links"),
    "both": (("--trees", "links", "--overlay", "x"), "--overlay: trees come from there"),
    "no plan": (("--overlay", "nowhere"), "no plan.json here"),
    "prices": (("--price", "match"), "--price: 'match' is not understood"),
    "old prices": (("--prices", "matched=1"), "--prices: is now --price NAME=VALUE"),
    "old price": (("--price", "match=1"), "--price: 'match' is now 'matched'"),
    "price": (("--price", "matched=-1"), "--price: matched: -1.0 is out of range"),
    "unknown price": (("--price", "hop=1"), "--price: 'hop' has none. Use some of: matched"),
    "mark": (("--mark", "some"), "--mark: 'some' is unknown"),
    "cells": (("--cells", "0"), "--cells: 0 is out of range"),
    "least": (("--least", "-1"), "--least: -1.0 is out of range"),
    "given": (("--trees", "given"), "there is no table trees"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_answered_and_nothing_is_written(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: Any
) -> None:
    words, said = wrong
    assert run("groups", dataset, "--out", tmp_path / "plan", *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()


def test_wishes_are_understood_before_a_workload_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", tmp_path / "nowhere", "--select", "all", "--out", tmp_path / "plan") == 2
    assert "--select: 'all' is not understood" in capsys.readouterr().err


def test_a_plan_without_overlay_has_no_trees(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan"
    assert run("groups", dataset, "--out", plan) == 0
    assert run("groups", dataset, "--overlay", plan, "--out", tmp_path / "next") == 2
    assert "has no layer overlay, only groups" in capsys.readouterr().err


def test_clients_must_be_where_the_workload_has_them(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clients = {"client": ["c"], "role": ["publisher"], "broker": ["b0"]}
    problem = problem_of(routes(), [1e9] * 7, 2.0)
    trees = trees_of((pairs(LINKS),), np.zeros(7, np.int32))
    overlay = write_plan(tmp_path / "overlay", dataset, problem, trees, clients)
    assert run("groups", dataset, "--overlay", overlay, "--out", tmp_path / "plan") == 2
    assert "its clients are elsewhere than in the workload" in capsys.readouterr().err
