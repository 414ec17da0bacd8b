"""A mesh as a plan: made, checked, compared, changed, drifted and told."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import run
from forging import forge, forge_rows, seal
from mesh_worlds import LATER, WANTED, write_mesh_dataset

import fanplan
from fanplan.core.errors import InfeasibleError, InputError
from fanplan.data.dataset import Dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return write_mesh_dataset(tmp_path / "dataset", WANTED, "key-1")


@pytest.fixture
def plan(tmp_path: Path, dataset: Dataset) -> Path:
    return fanplan.mesh(dataset).save(tmp_path / "plan")


def links_in(plan: Path) -> list[tuple[str, str, int]]:
    rows = pq.read_table(plan / "mesh_links.parquet").to_pylist()
    return [(row["a"], row["b"], row["topics"]) for row in rows]


def test_it_plans_and_passes_its_check(dataset: Dataset, plan: Path) -> None:
    made = fanplan.mesh(dataset)
    assert made.summary()["links"] == 3
    assert made.summary()["bound"] == 3
    assert made.summary()["nodes"] == 4
    assert ("ann", "bob", 2) in links_in(plan)
    assert fanplan.check(plan, dataset).ok


def test_flows_are_connected_by_their_audiences(tmp_path: Path, dataset: Dataset) -> None:
    made = fanplan.mesh(dataset, connect="flows").save(tmp_path / "flows")
    assert links_in(made) == [("ann", "bob", 1), ("ann", "cat", 1)]
    assert fanplan.check(made, dataset).ok


@pytest.mark.parametrize("method", ["greedy", "flat", "separate"])
def test_published_methods_are_plans_too(tmp_path: Path, dataset: Dataset, method: str) -> None:
    made = fanplan.mesh(dataset, method=method).save(tmp_path / method)  # type: ignore[arg-type]
    assert fanplan.check(made, dataset).ok


def test_the_check_finds_what_is_apart(dataset: Dataset, plan: Path) -> None:
    rows = pq.read_table(plan / "mesh_links.parquet").to_pylist()
    forge_rows(plan, "mesh_links", [row for row in rows if row["b"] != "dan"])
    seal(plan)
    found = fanplan.check(plan, dataset)
    assert found.missed == 1
    assert any("apart from others that want the same (1): dan in music" in v
               for v in found.violations)  # fmt: skip
    assert any("mesh: links (1): stated 3, counted 2" in v for v in found.violations)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"a": "ann", "b": "dan", "topics": 0}, "links that join nothing (1): ann–dan"),
        ({"a": "ann", "b": "zoe", "topics": 1}, "links of unknown subscribers (1): ann–zoe"),
        ({"a": "dan", "b": "cat", "topics": 1}, "links not in the order of names (1): dan–cat"),
        ({"a": "ann", "b": "cat", "topics": 2}, "wrong numbers of common topics (1): ann–cat"),
    ],
)
def test_the_check_knows_wrong_links(
    dataset: Dataset, tmp_path: Path, row: dict[str, object], told: str
) -> None:
    plan = fanplan.mesh(dataset, method="greedy").save(tmp_path / "plan")
    rows = pq.read_table(plan / "mesh_links.parquet").to_pylist()
    others = [one for one in rows if (one["a"], one["b"]) != (row["a"], row["b"])]
    forge_rows(plan, "mesh_links", [*others, row])
    seal(plan)
    assert any(told in violation for violation in fanplan.check(plan, dataset).violations)


def test_the_check_proves_bounds_and_limits(dataset: Dataset, tmp_path: Path) -> None:
    for at, value, told in (
        ("bound", 4, "mesh: bound"),
        ("degree_bound", 9, "mesh: degree_bound"),
        ("degree_mean", 1.0, "mesh: degree_mean"),
    ):
        plan = fanplan.mesh(dataset).save(tmp_path / at)
        forge(plan, "mesh", at, to=value)
        seal(plan)
        assert any(v.startswith(told) for v in fanplan.check(plan, dataset).violations)
    plan = fanplan.mesh(dataset, degree=2).save(tmp_path / "degree")
    forge(plan, "mesh", "params", "degree", to=1)
    seal(plan)
    assert any("more than 1 links" in v for v in fanplan.check(plan, dataset).violations)


def test_limits_are_kept_or_the_answer_says_what_would_do(dataset: Dataset) -> None:
    assert fanplan.mesh(dataset, degree=2).summary()["degree_max"] == 2
    with pytest.raises(InfeasibleError, match="Allow 2") as found:
        fanplan.mesh(dataset, degree=1)
    assert found.value.value == 2
    with pytest.raises(InputError, match="has its own"):
        fanplan.mesh(dataset, method="flat", aim="degree")
    with pytest.raises(InputError, match="lowest possible"):
        fanplan.mesh(dataset, aim="degree", degree=3)
    assert fanplan.mesh(dataset, aim="degree").summary()["degree_max"] == 2


def test_changes_and_drift(tmp_path: Path, dataset: Dataset, plan: Path) -> None:
    later = write_mesh_dataset(tmp_path / "later", LATER, "key-2")
    verdict = fanplan.apply_check(plan, later)
    assert (verdict.ok, verdict.layers["mesh"].missed) == (False, 1)
    assert verdict.layers["mesh"].moved["subscribers"].came == 1
    new = fanplan.mesh(later).save(tmp_path / "new")
    there = fanplan.diff(plan, new, steps_of=1)
    actions = there.changes()["action"].to_pylist()
    assert actions == sorted(actions)
    assert "peer" in actions
    assert list(there.steps())[-1]["after"]["links"] == 4


def test_it_is_compared_and_told(
    tmp_path: Path, dataset: Dataset, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    separate = fanplan.mesh(dataset, method="separate").save(tmp_path / "separate")
    found = fanplan.compare(plan, separate)
    assert ("mesh", "links") in [(line.layer, line.name) for line in found.lines]
    page = fanplan.report(plan, tmp_path / "report").page.read_text()
    assert "Subscribers are linked without brokers" in page
    assert run("mesh", dataset.path, "--out", tmp_path / "told", "--compare", "greedy,flat") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Mesh, checked method best" in told
    assert "no mesh has fewer links than 3" in told
    assert run("mesh", dataset.path, "--out", tmp_path / "x", "--compare", "best,odd") == 2


def test_nothing_shared_needs_no_links(tmp_path: Path) -> None:
    lone = write_mesh_dataset(tmp_path / "lone", {"a": "ann", "b": "bob"}, "key-3")
    plan = fanplan.mesh(lone, aim="degree").save(tmp_path / "plan")
    assert links_in(plan) == []
    assert fanplan.check(plan, lone).ok
