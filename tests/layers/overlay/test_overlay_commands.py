"""`fanplan overlay` and `fanplan allocate` as a user runs them, on a dataset with its stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from datasets import Flow, World, write_dataset
from overlay_worlds import random_world, write_overlay_dataset
from ready import stages_are_there


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_overlay_dataset(tmp_path / "dataset", random_world(7, brokers=8, capacity=40.0))


def test_overlay_links_brokers_within_limits(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    limits = ("--degree", 3, "--broker-degree", "b1=2", "--diameter", 6, "--within", "p0:b1,s2=4")
    code, told = answer(capsys, "overlay", dataset, "--out", out, *limits)
    assert (code, told["links"], told["method"]) == (0, 7, "improved")
    assert told["degree_max"] <= 3
    assert told["diameter"] <= 6
    assert [row["method"] for row in told["compared"]] == ["overlap", "random"]
    assert run("check", out, dataset) == 0
    assert "The plan holds." in capsys.readouterr().out


def test_a_plan_of_other_input_is_told_before_what_that_input_lacks(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = tmp_path / "plan", tmp_path / "other"
    assert run("overlay", dataset, "--out", out) == 0
    write_dataset(other, World((Flow(frozenset({0})),), 1, key="key-2"))
    capsys.readouterr()
    assert run("check", out, other) == 2
    assert "was planned for other input" in capsys.readouterr().err


def test_overlay_shows_what_it_made_beside_others(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--metric", "hybrid", "--alpha", 0.3, "--compare", "cover,interest")
    assert run("overlay", dataset, "--out", tmp_path / "plan", *words) == 0
    shown = capsys.readouterr().out
    for said in ("Overlay, checked", "no overlay is below", "hybrid", "cover", "interest"):
        assert said in shown


def test_allocate_answers_how_many_brokers(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    code, told = answer(capsys, "allocate", dataset, "--out", out)
    assert code == 0
    assert told["brokers"] == pq.read_table(out / "brokers.parquet").num_rows
    assert told["clients"] == pq.read_table(out / "clients.parquet").num_rows
    assert {row["ranking"] for row in told["compared"]} == {"gli", "gi", "gig", "baseline"}
    assert all(row["brokers"] >= told["brokers"] for row in told["compared"])
    enough = ("--brokers", told["brokers"], "--compare", "none")
    assert run("allocate", dataset, "--out", tmp_path / "enough", *enough) == 0
    few = ("--brokers", told["brokers"] - 1)
    assert run("allocate", dataset, "--out", tmp_path / "few", *few) == 1
    assert "brokers: " in capsys.readouterr().err
    assert not (tmp_path / "few").exists()


def test_cram_and_publishers_where_messages_are_cut(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    words = ("--ranking", "cram", "--closeness", "iou", "--lcf", 0.5)
    code, told = answer(capsys, "allocate", dataset, "--out", out, *words, "--compare", "cram,gli")
    assert (code, told["ranking"]) == (0, "cram")
    assert [row["ranking"] for row in told["compared"]] == ["cram", "gli"]
    assert run("check", out, dataset) == 0
    capsys.readouterr()
    _, cut = answer(
        capsys, "allocate", dataset, "--out", tmp_path / "cut", *words, "--publishers", "cut"
    )
    assert cut["link_messages"] <= told["link_messages"]
    assert run("check", tmp_path / "cut", dataset) == 0


@pytest.mark.parametrize(("load", "lcf"), [("exact", 0.5), ("estimate", 0.75)])
def test_fewest_messages_with_the_brokers_that_are_allowed(
    load: str, lcf: float, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--lcf", lcf, "--load", load, "--compare", "none")
    _, told = answer(capsys, "allocate", dataset, "--out", tmp_path / "plan", *words)
    more = ("--fewest", "messages", "--brokers", told["brokers"] + 1)
    code, fewer = answer(capsys, "allocate", dataset, "--out", tmp_path / "fewer", *words, *more)
    assert code == 0
    assert 2 <= fewer["brokers"] <= told["brokers"] + 1
    assert fewer["link_messages"] <= told["link_messages"]
    assert run("check", tmp_path / "fewer", dataset) == 0


WRONG = {
    "closeness": (("allocate", "--closeness", "ios"), "--closeness: is for the ranking cram"),
    "fewest": (("allocate", "--fewest", "links"), "--fewest: 'links' is unknown"),
    "metric": (("overlay", "--metric", "near"), "--metric: 'near' is unknown"),
    "within": (("overlay", "--within", "p0"), "--within: 'p0' is not understood"),
    "within whom": (("overlay", "--within", "p0=3"), "--within: 'p0=3' is not understood"),
    "who is it": (("overlay", "--within", "x:b0=3"), "--within: there is no broker"),
    "broker": (("overlay", "--broker-degree", "x=3"), "--broker-degree: there is no broker 'x'"),
    "degree of what": (("overlay", "--broker-degree", "3"), "--broker-degree: '3'"),
    "alpha": (("overlay", "--alpha", 0.5), "--alpha: is for the metric hybrid"),
    "compare": (("overlay", "--compare", "best"), "--compare: 'best' is unknown"),
    "changes": (("overlay", "--changes", 2), "--changes: there is no older plan"),
    "no plan": (("overlay", "--from", "nowhere"), "no plan.json"),
    "ranking": (("allocate", "--ranking", "first"), "--ranking: 'first' is unknown"),
    "lcf": (("allocate", "--lcf", 1.5), "--lcf: 1.5 is out of range"),
    "load": (("allocate", "--load", "some"), "--load: 'some' is unknown"),
    "cover": (("allocate", "--metric", "cover"), "--metric: covering"),
    "moves": (("allocate", "--moves", 3), "--moves: there is no older plan"),
    "rankings": (("allocate", "--compare", "best"), "--compare: 'best' is unknown"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_answered_and_nothing_is_written(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: Any
) -> None:
    (command, *words), said = wrong
    assert run(command, dataset, "--out", tmp_path / "plan", *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()


def test_impossible_limits_are_exit_1_with_what_would_do(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--degree", 2, "--diameter", 3)
    assert run("overlay", dataset, "--out", tmp_path / "plan", *limits) == 1
    said = capsys.readouterr().err
    assert "diameter" in said
    assert "Allow 7" in said
    assert not (tmp_path / "plan").exists()
