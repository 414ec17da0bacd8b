"""Groups plans: what is written passes the check, and the check names whatever is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from group_datasets import write_group_dataset
from group_worlds import random_world
from group_worlds import routes_of as routes_of_world
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import routes_of

import fanplan
from fanplan.api import groups_plans
from fanplan.plan.check import check_plan
from fanplan.problem.overlay import Routes
from fanplan.simulation.traffic import merged


@pytest.fixture(autouse=True)
def _stages_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The datasets here come with the stages that Spark would make."""
    monkeypatch.setattr(groups_plans, "make_group_stages", lambda *_: None)


# R over K and M, which have A, B and C, D. Two messages to A and C, one to all leaves, four to D.
NAMES = ["A", "B", "C", "D", "K", "M", "R"]
LINKS = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
TREE = "RK RM KA KB MC MD"
SENT = {(6, (0, 2)): 2.0, (6, (0, 1, 2, 3)): 1.0, (6, (3,)): 4.0, (6, ()): 8.0}


def paper(folder: Path, **more) -> fanplan.Dataset:
    given_ = {"links": LINKS} | more
    return fanplan.Dataset(write_group_dataset(folder, NAMES, routes_of(SENT), **given_))


@pytest.fixture
def dataset(tmp_path: Path) -> fanplan.Dataset:
    return paper(tmp_path / "dataset")


def random_routes(seed: int, roots: int) -> tuple[list, int, Routes]:
    """Links of a tree, the number of brokers, and traffic."""
    world = random_world(seed, roots)
    routes, _ = merged(routes_of_world(world)[0])
    return [tuple(link) for link in world.links.tolist()], world.brokers, routes


SELECT = ("top:30%", "top:100%", "threshold:0", "budget:1", "budget:6")


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 3]),
    st.sampled_from(SELECT),
    st.sampled_from(["nc", "fc", "saving"]),
    st.booleans(),
    st.sampled_from(["links", "per-publisher", "given"]),
)
def test_plans_of_all_kinds_pass(tmp_path_factory, seed, roots, select, rank, shortcuts, trees):
    folder = tmp_path_factory.mktemp("world")
    links, size, routes = random_routes(seed, roots)
    if trees == "per-publisher" and size > 2:
        links = sorted({tuple(sorted(link)) for link in [*links, (0, size - 1), (0, size // 2)]})
        links = [link for link in links if link[0] != link[1]]
    names = [f"b{i}" for i in range(size)]
    table = hung_table(names, links, routes.source) if trees == "given" else None
    if table is not None and not len(table):
        return
    path = write_group_dataset(folder / "d", names, routes, links, table)
    prices = {"match": 2.0, "entry": 0.5}
    wishes = {"rank": rank, "shortcuts": shortcuts, "trees": trees, "prices": prices}
    made = fanplan.groups(fanplan.Dataset(path), select, **wishes)
    result = check_plan(made.save(folder / "plan"), path)
    assert (result.violations, result.missed) == ((), 0)
    told = made.summary()
    assert told["selected"] <= told["groups"]
    assert told["value"] <= told["bound"] + 1e-9
    if select.startswith("budget"):
        assert told["entries"] <= int(select.partition(":")[2])


def hung_table(names: list[str], links: list, sources: np.ndarray) -> pa.Table:
    """The tree of links as a table, hung at each source and at a broker where nothing enters."""
    rows = []
    for root in sorted({*sources.tolist(), len(names) - 1}):
        seen, open_ = {root}, [root]
        while open_:
            here = open_.pop()
            near = {b for a, b in [*links, *((b, a) for a, b in links)] if a == here} - seen
            rows += [(names[root], names[here], names[there]) for there in near]
            seen |= near
            open_ += near
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(dict(zip(("root", "parent", "child"), map(list, columns), strict=True)))


def test_the_paper_s_tree(dataset, tmp_path):
    made = fanplan.groups(dataset, "budget:3", prices={"control": 0.0})
    plan = made.save(tmp_path / "plan")
    groups = pq.read_table(plan / "virtual_groups.parquet").to_pylist()
    assert [(row["root"], row["members"], row["messages"]) for row in groups] == [
        ("R", 1, 4.0),
        ("R", 2, 2.0),
    ]
    shortcuts = pq.read_table(plan / "shortcuts.parquet").to_pylist()
    assert [tuple(row.values()) for row in shortcuts] == [
        (0, "R", "D", 1),
        (1, "R", "A", 1),
        (1, "R", "C", 1),
    ]
    told = made.summary()
    assert (told["groups"], told["selected"], told["entries"], told["saving"]) == (3, 2, 3, 8)
    assert {row["figure"]: row["saved"] for row in made.compared()}["matches"] == 8
    assert told["delay"] == (8 * 2 + 4 * 4) / 12


def test_equal_input_gives_equal_bytes(dataset, tmp_path):
    one, other = (fanplan.groups(dataset).save(tmp_path / name) for name in ("one", "other"))
    files = sorted(path.name for path in one.iterdir())
    assert "group_trees.parquet" in files
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in files)
