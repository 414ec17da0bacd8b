"""What cannot end well ends before the search: each case here would have failed after it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from delivery_datasets import World, world_of, write_world
from ready import stages_are_there
from sealing import seal_dataset

import fanplan
from fanplan.cli import plan as planning
from fanplan.core.errors import FanplanError
from fanplan.layers.channels.search import kmodes
from fanplan.layers.delivery import command as design
from fanplan.layers.delivery.search import joint
from fanplan.layers.overlay import linking

SEARCHES = (
    (linking, "improved_tree"),
    (linking, "general_overlay"),
    (design, "plan_allocation"),
    (joint, "layer_by_layer"),
    (joint, "delivery_on_channels"),
    (kmodes, "plan_once"),
)


def searched(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it searched, though it was bound to fail")


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module, name in SEARCHES:
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, searched)
    with stages_are_there():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A dataset, a design for it, and channels for it that know no sites."""
    folder = tmp_path_factory.mktemp("made")
    with stages_are_there():
        dataset = fanplan.open_dataset(write_world(folder / "dataset", world_of(1)))
        plan = fanplan.design(dataset, channels=2).save(folder / "plan")
        flat = fanplan.channels(dataset, 2).save(folder / "flat")
    return dataset.path, plan, flat


@pytest.mark.usefixtures("no_search")
def test_a_search_would_be_seen(made: tuple[Path, Path, Path]) -> None:
    with pytest.raises(AssertionError, match="it searched"):
        fanplan.design(fanplan.open_dataset(made[0]), channels=2)


# ---- a dataset that some layer cannot use


def rewrite(dataset: Path, stage: str, **columns: Any) -> None:
    """A stage with other columns."""
    file = dataset / stage / "part.parquet"
    table = pq.read_table(file)
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, pa.array([values] * len(table), table[name].type))
    pq.write_table(table, file)
    seal_dataset(dataset)


def no_sites(dataset: Path) -> None:
    rewrite(dataset, "brokers", site=None)


def nobody_sends(dataset: Path) -> None:
    rewrite(dataset, "senders", messages=0.0)


def no_regions(dataset: Path) -> None:
    rewrite(dataset, "descriptors", published=0)


def whole(_dataset: Path) -> None:
    pass


APART = (("b0", "b1", 1.0), ("b2", "b3", 1.0), ("b4", "b5", 1.0))
STRANGER = (*world_of(1).sent, (999.0, "p9", "t0", 1, 1.0))
Spoil = Callable[[Path], None]
SPOILT: dict[str, tuple[World, Spoil, dict[str, Any], str]] = {
    "sites": (world_of(1), no_sites, {"multicast": "site"}, "multicast: no broker has a site"),
    "senders": (world_of(1), nobody_sends, {}, "nobody is known to send what audience class 0"),
    "regions": (world_of(1), no_regions, {}, "advertisements: there is no region"),
    "links": (replace(world_of(1), links=APART), whole, {}, "links: they do not join 'b0' with"),
    "stranger": (replace(world_of(1), sent=STRANGER), whole, {}, "publisher 'p9': has no broker"),
}


@pytest.mark.parametrize(("world", "spoil", "asked", "said"), SPOILT.values(), ids=SPOILT)
@pytest.mark.usefixtures("no_search")
def test_a_design_that_some_layer_would_refuse(
    world: World, spoil: Spoil, asked: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = write_world(tmp_path / "dataset", world)
    spoil(folder)
    with pytest.raises(FanplanError, match=said):
        fanplan.design(fanplan.open_dataset(folder), channels=2, **asked)


# ---- layers that are taken from plans


FIXED: dict[str, tuple[dict[str, Any], str]] = {
    "groups": ({"fixed": {"groups": "{plan}"}}, "groups cannot be fixed without the trees"),
    "marking": ({"fixed": {"marking": "{plan}"}}, "marking cannot be fixed without the trees"),
    "domains": ({"fixed": {"channels": "{flat}"}}, "is outside the multicast domain of channel"),
    "unicast": (
        {"fixed": {"channels": "{plan}"}, "unicast_limit": 0.01},
        "unicast_limit: the channels of .* leave",
    ),
    "gone": ({"fixed": {"overlay": "nowhere"}}, "nowhere"),
}


@pytest.mark.parametrize(("asked", "said"), FIXED.values(), ids=FIXED)
@pytest.mark.usefixtures("no_search")
def test_a_design_around_layers_that_do_not_fit(
    made: tuple[Path, Path, Path], asked: dict[str, Any], said: str
) -> None:
    dataset, plan, flat = made
    names = {name: str(f).format(plan=plan, flat=flat) for name, f in asked["fixed"].items()}
    with pytest.raises(FanplanError, match=said):
        fanplan.design(fanplan.open_dataset(dataset), **asked | {"fixed": names})


# ---- an overlay whose limits no tree obeys


ANY: list[tuple[dict[str, Any], str]] = [
    ({"degrees": {"moon": 2}}, "there is no broker 'moon' here"),
    ({"within": (("b0", ("moon",), 1),)}, "no broker, publisher or subscriber 'moon'"),
    ({"start": "nowhere"}, "nowhere"),
]
OVERLAY: list[tuple[dict[str, Any], str]] = [
    ({"degree": 1}, "the degree limits allow"),
    ({"diameter": 1}, "no tree of 6 brokers has a diameter of 1"),
    *ANY,
]


@pytest.mark.parametrize(
    ("command", "asked", "said"),
    [*(("overlay", *case) for case in OVERLAY), *(("allocate", *case) for case in ANY)],
)
def test_limits_come_before_spark(
    made: tuple[Path, Path, Path],
    command: str,
    asked: dict[str, Any],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And so before any search; which brokers are linked is decided later by ``allocate``."""
    for module in ("linking.make_stages", "command.make_stages"):
        monkeypatch.setattr(f"fanplan.layers.overlay.{module}", searched)
    with pytest.raises(FanplanError, match=said):
        getattr(fanplan, command)(fanplan.open_dataset(made[0]), **asked)


# ---- places to write to


COMMANDS: dict[str, tuple[str, ...]] = {
    "channels": ("--channels", "2"),
    "curve": ("--channels", "2,3"),
    "overlay": (),
    "allocate": (),
    "groups": (),
    "mark": ("--trees", "per-source"),
    "design": ("--channels", "2"),
}


@pytest.mark.parametrize(("name", "words"), COMMANDS.items(), ids=COMMANDS)
def test_a_plan_that_could_not_be_written(
    made: tuple[Path, Path, Path],
    name: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Below a file, or on a disk that is full: nothing is ingested, no plan is made."""
    monkeypatch.setattr("fanplan.data.ingest.ingest.ingest_workload", searched)
    monkeypatch.setattr(planning, "run_one", searched)
    monkeypatch.setattr(planning, "run_curve", searched)
    command = "channels" if name == "curve" else name
    (tmp_path / "file").touch()
    for workload in (made[0], tmp_path / "not yet ingested"):
        out = tmp_path / "file" / "plan"
        assert run(command, workload, *words, "--out", out) == 2
        assert "cannot be written (Not a directory)" in capsys.readouterr().err
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=7))
    assert run(command, made[0], *words, "--out", tmp_path / "plan") == 3
    assert "7 bytes are free there, but about" in capsys.readouterr().err


def test_a_plan_takes_the_room_of_its_rows(
    made: tuple[Path, Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = sum(
        f.stat().st_size
        for stage in ("flows", "classes", "subscribers")
        for f in (made[0] / stage).glob("*.parquet")
    )
    monkeypatch.setattr("fanplan.core.folder.LITTLE", 0)
    monkeypatch.setattr(planning, "run_one", searched)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=rows - 1))
    assert run("design", made[0], "--channels", 2, "--out", tmp_path / "plan") == 3
    assert "are free there" in capsys.readouterr().err
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=rows))
    assert run("design", made[0], "--channels", 2, "--out", tmp_path / "plan") == 3
    assert "it searched" in capsys.readouterr().err


# ---- plans that cannot do what is asked, before a workload is ingested


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "{flat}", "{workload}"), "has no layer"),
        (("churn", "{flat}", "{workload}"), "has no layer groups and no layer marking"),
        (("churn", "{plan}", "{workload}"), "Say which of them"),
        (("replay", "{folder}/none", "{workload}"), "none"),
        (("check", "{folder}/none", "{workload}"), "none"),
        (("diff", "{folder}/none", "{plan}", "{workload}"), "none"),
        (("diff", "{plan}", "{plan}", "{workload}", "--steps-of", "0"), "0 is too few"),
        (("apply-check", "{plan}", "{workload}", "--was", "{folder}/none"), "none"),
        (("report", "{plan}", "--workload", "{workload}", "--out", "{plan}"), "is not a report"),
        (("channels", "{workload}", "--channels", "2,2", "--out", "{folder}/c"), "different"),
    ],
)  # fmt: skip
def test_nothing_is_ingested_for_a_plan_that_will_not_do(
    made: tuple[Path, Path, Path],
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("fanplan.data.ingest.ingest.ingest_workload", searched)
    places = {"plan": made[1], "flat": made[2], "folder": tmp_path, "workload": tmp_path / "w"}
    assert run(*(word.format(**places) for word in words)) == 2
    assert said in capsys.readouterr().err


def test_a_workload_is_not_drawn_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fanplan.workload.generators.enterprise.generate", searched, raising=False)
    (tmp_path / "file").touch()
    words = ("generate", "enterprise", "--users", 50)
    assert run(*words, "--out", tmp_path / "file" / "w") == 2
    assert "cannot be written" in capsys.readouterr().err
    assert run(*words, "--publications", 10**15, "--out", tmp_path / "w") == 3
    assert "are needed" in capsys.readouterr().err


def test_a_workload_is_not_read_for_a_dataset_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = tmp_path / "workload"
    workload.mkdir()
    (workload / "subscriptions.csv").write_text("subscriber,topic\ns,t\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    (tmp_path / "file").touch()
    monkeypatch.setattr("fanplan.data.ingest.ingest.find_sources", searched)
    for out, said in (("file/d", "cannot be written"), ("full", "is not a dataset")):
        assert run("ingest", workload, "--out", tmp_path / out) == 2
        assert said in capsys.readouterr().err


def test_a_plan_without_brokers_is_not_simulated_whatever_the_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workload is not even there: nothing of it is read."""
    with stages_are_there():
        dataset = fanplan.open_dataset(write_world(tmp_path / "dataset", world_of(1)))
        plan = fanplan.design(dataset, channels=2, without=("overlay",)).save(tmp_path / "plan")
    assert run("simulate", plan, tmp_path / "nowhere") == 2
    assert "has no brokers" in capsys.readouterr().err
