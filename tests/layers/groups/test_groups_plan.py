"""Groups plans: what is written passes the check, and the check names whatever is wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from group_datasets import write_group_dataset
from group_worlds import random_world
from group_worlds import routes_of as routes_of_world
from hypothesis import given, settings
from hypothesis import strategies as st
from marking_worlds import tree_table
from overlays import routes_of
from ready import stages_are_there

import fanplan
from fanplan.core.errors import CheckError, InputError
from fanplan.network.brokers import Routes
from fanplan.simulation.messages import merged_routes
from fanplan.verbs.check import check_plan


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


# R over K and M, which have A, B and C, D. Two messages to A and C, two to all leaves, ten to D.
NAMES = ["A", "B", "C", "D", "K", "M", "R"]
LINKS = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
TREE = "RK RM KA KB MC MD"
SENT = {(6, (0, 2)): 2.0, (6, (0, 1, 2, 3)): 2.0, (6, (3,)): 10.0, (6, ()): 8.0}


def paper(folder: Path, **more: Any) -> fanplan.Dataset:
    given_ = {"links": LINKS} | more
    return fanplan.Dataset(write_group_dataset(folder, NAMES, routes_of(SENT), **given_))


@pytest.fixture
def dataset(tmp_path: Path) -> fanplan.Dataset:
    return paper(tmp_path / "dataset")


def random_routes(seed: int, roots: int) -> tuple[list[Any], int, Routes]:
    """Links of a tree, the number of brokers, and traffic."""
    world = random_world(seed, roots)
    routes, _ = merged_routes(routes_of_world(world)[0])
    return [tuple(link) for link in world.links.tolist()], world.brokers, routes


SELECT = ("top:30%", "top:100%", "threshold:0", "budget:1", "budget:6")


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 3]),
    st.sampled_from(SELECT),
    st.sampled_from(["nc", "fc", "saving"]),
    st.booleans(),
    st.sampled_from(["links", "per-publisher", "given"]),
)
def test_plans_of_all_kinds_pass(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    roots: Any,
    select: Any,
    rank: str,
    shortcuts: bool,
    trees: str,
) -> None:
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
    wishes: dict[str, Any] = {"rank": rank, "shortcuts": shortcuts, "trees": trees}
    prices = {"matched": 2.0, "entry": 0.5}
    made = fanplan.groups(fanplan.Dataset(path), select, prices=prices, **wishes)
    result = check_plan(made.save(folder / "plan"), path)
    assert (result.violations, result.missed) == ((), 0)
    told = made.summary()
    assert told["selected"] <= told["groups"]
    assert told["value"] <= told["bound"] + 1e-9
    if rank == "saving":
        cost = made.compared()[-1]
        assert cost["saved"] == pytest.approx(told["value"], abs=1e-9)
    if select.startswith("budget"):
        assert told["entries"] <= int(select.partition(":")[2])


def hung_table(names: list[str], links: list[Any], sources: np.ndarray) -> pa.Table:
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


def test_the_paper_s_tree(dataset: fanplan.Dataset, tmp_path: Path) -> None:
    made = fanplan.groups(dataset, "budget:3", prices={"control": 0.0})
    plan = made.save(tmp_path / "plan")
    groups = pq.read_table(plan / "virtual_groups.parquet").to_pylist()
    assert [(row["root"], row["members"], row["messages"]) for row in groups] == [
        ("R", 1, 10.0),
        ("R", 2, 2.0),
    ]
    shortcuts = pq.read_table(plan / "shortcuts.parquet").to_pylist()
    assert [tuple(row.values()) for row in shortcuts] == [
        (0, "R", "D", 1),
        (1, "R", "A", 1),
        (1, "R", "C", 1),
    ]
    told = made.summary()
    assert (told["groups"], told["selected"], told["entries"], told["saving"]) == (3, 2, 3, 14)
    assert {row["figure"]: row["saved"] for row in made.compared()}["matches"] == 14
    assert told["delay"] == (14 * 2 + 8 * 4) / 22


def test_equal_input_gives_equal_bytes(dataset: fanplan.Dataset, tmp_path: Path) -> None:
    one, other = (fanplan.groups(dataset).save(tmp_path / name) for name in ("one", "other"))
    files = sorted(path.name for path in one.iterdir())
    assert "group_trees.parquet" in files
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in files)


def test_roots_where_nothing_is_published_are_told(tmp_path: Path) -> None:
    dataset = paper(tmp_path / "d", trees=tree_table(R=TREE, A="AK KR"))
    made = fanplan.groups(dataset, trees="given")
    assert made.summary()["silent"] == ["A"]
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok


def test_each_publisher_has_its_shortest_paths(tmp_path: Path) -> None:
    """From R the way to C is over M; from A it is over a link of its own."""
    sent = SENT | {(0, (2, 3)): 3.0}
    latency = [1.0] * len(LINKS) + [2.0]
    links = [*LINKS, (0, 2)]
    path = write_group_dataset(tmp_path / "d", NAMES, routes_of(sent), links, latency=latency)
    made = fanplan.groups(fanplan.Dataset(path), "top:100%", trees="per-publisher")
    plan = made.save(tmp_path / "plan")
    trees = {(row["root"], row["child"]): row["parent"] for row in rows(plan, "group_trees")}
    assert (trees["R", "C"], trees["A", "C"], trees["A", "D"]) == ("M", "A", "M")
    assert made.summary()["roots"] == 2


# ---- wrong plans


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return found


def edit(folder: Path, table: str, change: Callable[..., Any]) -> None:
    path = folder / f"{table}.parquet"
    content = change(rows(folder, table))
    pq.write_table(pa.Table.from_pylist(content, schema=pq.read_schema(path)), path)


def amend(folder: Path, **changes: Any) -> None:
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"groups": content["groups"] | changes}))


def first(content: list[dict[Any, Any]], **changes: Any) -> list[dict[Any, Any]]:
    return [content[0] | changes, *content[1:]]


def first_is(name: str, value: int) -> Callable[..., Any]:
    return lambda content: first(content, **{name: value})


# All groups in order of members × messages: 0 to D; 1 to A, B, C, D; 2 to A and C.
WRONG = {
    "an unknown broker": ("group_members", lambda r: first(r, broker="X"), "broker 'X' is unknown"),
    "an unknown group": ("group_members", lambda r: first(r, group=9), "group 9 is unknown"),
    "numbers": ("virtual_groups", lambda r: r[1:], "not numbered from 0"),
    "no members": ("group_members", lambda r: r[1:], "without members (1): group 0"),
    "a member twice": ("group_members", lambda r: [*r, r[0]], "given twice (1): group 0, 'D'"),
    "another member": (
        "group_members",
        lambda r: [*r, r[0] | {"broker": "B"}],
        "no traffic has just these members (1): group 0",
    ),
    "not reached": ("shortcuts", lambda r: r[1:], "members: not reached (1): group 0, 'D'"),
    "reached twice": (
        "group_links",
        lambda r: [*r, {"group": 0, "from_broker": "M", "to_broker": "D"}],
        "entries: reached twice (1): group 0",
    ),
    "in the air": (
        "shortcuts",
        lambda r: first(r, from_broker="M", bypassed=0),
        "begins where the group does not come (1): group 0, 'M' to 'D'",
    ),
    "beside the tree": (
        "shortcuts",
        lambda r: first(r, bypassed=0),
        "entries: not along the tree (1): group 0, 'R' to 'D'",
    ),
    "too far": (
        "shortcuts",
        lambda r: first(r, bypassed=7),
        "entries: not along the tree (1): group 0, 'R' to 'D'",
    ),
    "in vain": (
        "group_links",
        lambda r: [*r, {"group": 0, "from_broker": "R", "to_broker": "K"}],
        "entries: leads to no member (1): group 0, 'R' to 'K'",
    ),
    "a parting broker bypassed": (
        "shortcuts",
        lambda r: [*r, {"group": 1, "from_broker": "R", "to_broker": "A", "bypassed": 1}],
        "shortcuts: bypasses where ways part (1): group 1, 'R' to 'A'",
    ),
    "another link in the tree": (
        "group_trees",
        lambda r: [x | {"parent": "K"} if x["child"] == "D" else x for x in r],
        "trees: no such link (1): 'K' to 'D'",
    ),
    "no root": (
        "group_trees",
        lambda r: [x for x in r if x["root"] != "R"],
        "root 'R' has no tree",
    ),
    "two parents": ("group_trees", lambda r: [*r, r[0]], "has two parents"),
    "a cycle": (
        "group_trees",
        lambda r: [x | {"parent": "A"} if x["child"] == "K" else x for x in r],
        "no way leads from the root",
    ),
    **{
        name: (
            "virtual_groups",
            first_is(name, 99),
            f"virtual_groups: {name} (1): group 0: stated 99",
        )
        for name in ("members", "messages", "unwanted", "entries", "control", "benefit")
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset, and a plan with all groups by members × messages."""
    folder = tmp_path_factory.mktemp("made")
    with stages_are_there():
        dataset = paper(folder / "dataset")
        plan = fanplan.groups(dataset, "top:100%", rank="nc").save(folder / "plan")
    return dataset.path, plan


@pytest.fixture
def plan(made: tuple[Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(made[1], tmp_path / "plan")


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_a_table_is_named(made: tuple[Path, Path], plan: Path, wrong: Any) -> None:
    table, change, named = wrong
    edit(plan, table, change)
    result = check_plan(plan, made[0])
    assert any(named in text for text in result.violations), result.violations


def test_a_member_that_is_bypassed_is_named(tmp_path: Path) -> None:
    """K wants what A gets below it."""
    sent: dict[tuple[int, tuple[int, ...]], float] = {(6, (0, 4)): 2.0}
    path = write_group_dataset(tmp_path / "d", NAMES, routes_of(sent), LINKS)
    plan = fanplan.groups(fanplan.Dataset(path), "top:100%").save(tmp_path / "plan")
    edit(plan, "group_links", lambda r: [x for x in r if x["to_broker"] == "K"])
    short = {"group": 0, "from_broker": "R", "to_broker": "A", "bypassed": 1}
    edit(plan, "shortcuts", lambda r: [short])
    said = check_plan(plan, path).violations
    assert any("shortcuts: bypasses a member (1): group 0, 'R' to 'A'" in text for text in said)


def test_the_same_group_twice_is_named(made: tuple[Path, Path], plan: Path) -> None:
    for table in ("virtual_groups", "group_members", "group_links", "shortcuts"):
        edit(plan, table, lambda r: [*r, *(x | {"group": 3} for x in r if x["group"] == 0)])
    said = check_plan(plan, made[0]).violations
    assert any("groups: given twice (1): group 3" in text for text in said)


COUNTS = ("brokers", "roots", "groups", "selected", "covered", "value")
LEDGER = ["publications", "delay", "messages", "matches", "saving", "entries", "link_messages"]
LEDGER += ["matches_total", "unwanted", "overhead"]


def test_what_is_wrong_in_the_record_is_named(made: tuple[Path, Path], plan: Path) -> None:
    ledger = dict.fromkeys(LEDGER, 9999.0)
    amend(plan, **dict.fromkeys(COUNTS, 99), ledger=ledger, default=ledger, bound=1.0)
    said = {text.partition(" (")[0] for text in check_plan(plan, made[0]).violations}
    wanted = {f"plan.json: groups.{name}" for name in (*COUNTS, "bound")}
    wanted |= {f"plan.json: groups.{of}.{n}" for of in ("ledger", "default") for n in LEDGER}
    assert wanted <= said


RULES = {
    "budget": ("budget:6", "budget (1): 9 entries are more than 6"),
    "top": ("top:30%", "top (1): 3 groups are not the best 1"),
    "threshold": ("threshold:100", "threshold: not above 100 (3): group 0"),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_a_rule_that_is_not_kept_is_named(
    made: tuple[Path, Path], plan: Path, rule: tuple[str, str]
) -> None:
    select, said = rule
    params = json.loads((plan / "plan.json").read_text())["groups"]["params"]
    amend(plan, params=params | {"select": select})
    assert any(said in text for text in check_plan(plan, made[0]).violations)


def test_a_longer_way_is_named(tmp_path: Path) -> None:
    links, latency = [*LINKS, (0, 3)], [1.0] * 6 + [5.0]
    path = write_group_dataset(tmp_path / "d", NAMES, routes_of(SENT), links, latency=latency)
    plan = fanplan.groups(fanplan.Dataset(path), trees="per-publisher").save(tmp_path / "plan")
    edit(
        plan, "group_trees", lambda r: [x | {"parent": "A"} if x["child"] == "D" else x for x in r]
    )
    said = check_plan(plan, path).violations
    assert any("trees: a shorter way from 'R' (1): 'D' to 'M'" in text for text in said), said


def test_a_given_tree_that_was_changed_is_named(tmp_path: Path) -> None:
    dataset = paper(tmp_path / "d", links=None, trees=tree_table(R=TREE))
    plan = fanplan.groups(dataset, trees="given").save(tmp_path / "plan")
    edit(
        plan, "group_trees", lambda r: [x | {"parent": "K"} if x["child"] == "D" else x for x in r]
    )
    said = check_plan(plan, dataset.path).violations
    assert "trees: not as given (1): 'K' to 'D'" in said
    assert "trees: a given link is missing (1): 'M' to 'D'" in said


def test_a_plan_that_fails_its_check_is_not_written(
    dataset: fanplan.Dataset, tmp_path: Path
) -> None:
    made = fanplan.groups(dataset, "top:100%")
    made.section.tables["group_members"] = made.section.tables["group_members"].slice(1)
    with pytest.raises(CheckError, match="groups"):
        made.save(tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


# ---- bad input

CUT = [link for link in LINKS if link != (3, 5)]
BAD = {
    "no links": ({"links": None}, {}, "there is no table links"),
    "a cycle": ({"links": [*LINKS, (0, 1)]}, {}, "'B' to 'K' closes a cycle. Add --trees per-pub"),
    "apart": ({"links": CUT}, {}, "they do not join 'A' with 'D'"),
    "apart, by path": ({"links": CUT}, {"trees": "per-publisher"}, "do not join 'A' with 'D'"),
    "no trees": ({}, {"trees": "given"}, "there is no table trees"),
    "unknown": ({"trees": tree_table(R="RX")}, {"trees": "given"}, "child 'X' is not a broker"),
    "twice": (
        {"trees": tree_table(R=TREE + " KD")},
        {"trees": "given"},
        "that of 'R' has not just one way to 'D'",
    ),
    "astray": (
        {"trees": tree_table(R="RK KA KB AC DM MD")},
        {"trees": "given"},
        "that of 'R' has not just one way to 'D'",
    ),
    "a root below": ({"trees": tree_table(R=TREE + " AR")}, {"trees": "given"}, "root 'R' has a"),
    "no tree": ({"trees": tree_table(A="AK")}, {"trees": "given"}, "'R' sends, but is not a root"),
    "too small": (
        {"trees": tree_table(R="RK KA KB")},
        {"trees": "given"},
        "'C' is not in its tree",
    ),
    "kind": ({}, {"trees": "best"}, "trees: 'best' is unknown"),
    "no home": ({"homes": False}, {}, "subscriptions: some rows have no broker"),
    "rank": ({}, {"rank": "best"}, "rank: 'best' is unknown"),
    "price": ({}, {"prices": {"matched": -1.0}}, "matched: -1.0 is out of range"),
    "price of what": ({}, {"prices": {"hop": 1.0}}, "prices: 'hop' has none"),
    "mark": ({}, {"mark": "most"}, "mark: 'most' is unknown"),
    "cells": ({}, {"cells": 0}, "cells: 0 is out of range"),
    "least": ({}, {"least": -1.0}, "least: -1.0 is out of range"),
    **{
        f"select {text}": ({}, {"select": text}, f"select: '{text}' {said}")
        for text, said in {
            "best": "is not understood",
            "top": "is not understood",
            "top:x": "is not understood",
            "top:nan": "is not understood",
            "threshold:5%": "is not understood",
            "top:0%": "is not a share",
            "top:-5%": "is not a share",
            "top:101%": "is not a share",
            "top:10": "is not a share",
            "threshold:-1": "takes groups that cost more",
            "budget:0": "is not a number of entries",
            "budget:2.5": "is not a number of entries",
        }.items()
    },
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_input_is_named(tmp_path: Path, bad: Any) -> None:
    world, wishes, named = bad
    with pytest.raises(InputError, match=re.escape(named)):
        fanplan.groups(paper(tmp_path / "d", **world), **wishes)


def test_nothing_is_published(tmp_path: Path) -> None:
    path = write_group_dataset(tmp_path / "d", NAMES, routes_of({(6, (0,)): 0.0}), LINKS)
    with pytest.raises(InputError, match="nothing is published at 'R'"):
        fanplan.groups(fanplan.Dataset(path))


def test_a_share_may_be_a_number(dataset: fanplan.Dataset) -> None:
    one, other = (fanplan.groups(dataset, text).summary() for text in ("top:50%", "top:0.5"))
    assert one["selected"] == other["selected"] == 2
