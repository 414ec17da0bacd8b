"""Marking plans: what is written passes the check, and the check names whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marking_datasets import write_marking_dataset
from marking_worlds import (
    figure_2,
    links,
    network,
    random_counts,
    random_shared_problem,
    random_source_problem,
    random_tree,
    tree_table,
)
from ready import stages_are_there

import fanplan
from fanplan.core.errors import CheckError, InputError
from fanplan.layers.marking.check import walk_ways
from fanplan.layers.marking.ledger import descriptor_counts, violations
from fanplan.layers.marking.params import ControlBy
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.verbs.check import check_plan


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def random_network(seed: int, nodes: int = 8) -> tuple[MarkedNetwork, pa.Table]:
    """A tree with some more links, and trees that use them."""
    rng = np.random.default_rng(seed)
    pairs = {(min(pair), max(pair)) for root in (0, 3, 5) for pair in random_tree(rng, root, nodes)}
    names = [f"n{i}" for i in range(nodes)]
    given_links = links(sorted(pairs), rng.integers(1, 4, len(pairs)).astype(float).tolist())
    world = MarkedNetwork(pa.array(names), **random_counts(rng, nodes), links=given_links)
    rows = [
        (names[root], names[parent], names[child])
        for root in np.flatnonzero(world.published).tolist()
        for parent, child in spanning(rng, sorted(pairs), root)
    ]
    columns = zip(*rows, strict=True)
    return world, pa.table(dict(zip(("root", "parent", "child"), map(list, columns), strict=True)))


def spanning(rng: np.random.Generator, pairs: list[Any], root: int) -> list[tuple[int, int]]:
    """A random tree of links from a root to all nodes."""
    edges: list[tuple[int, int]] = []
    joined = {root}
    while True:
        ways = [(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
        open_ = [(a, b) for a, b in ways if a in joined and b not in joined]
        if not open_:
            return edges
        edges.append(open_[int(rng.integers(len(open_)))])
        joined.add(edges[-1][1])


KINDS = ("shared:n2", "per-source", "given")


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.sampled_from(["one", "latency", "cost"]),
    st.sampled_from([0.0, 0.5]),
    st.booleans(),
)
def test_markings_of_all_kinds_pass(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    trees: Any,
    sending: ControlBy,
    storing: Any,
    raw: bool,
) -> None:
    folder = tmp_path_factory.mktemp("world")
    world, table = random_network(seed)
    dataset = fanplan.Dataset(write_marking_dataset(folder / "d", world, table))
    made = fanplan.mark(dataset, trees, raw=raw, control_by=sending, prices={"stored": storing})
    result = check_plan(made.save(folder / "plan"), dataset.path)
    assert (result.violations, result.missed) == ((), 0)
    told = made.summary()
    marks = pq.read_table(folder / "plan" / "marks.parquet")
    on = {"p": marks["sigma"].to_numpy(), "s": marks["tau"].to_numpy()}
    cost = np.where(np.array(marks["mark"].to_pylist()) == "p", on["p"], on["s"])
    assert told["cost"] == pytest.approx(float((cost * marks["price"].to_numpy()).sum()))
    assert told["cost"] <= min(told["pub_everywhere"], told["sub_everywhere"]) + 1e-9
    assert told["links"] == told["p_links"] + told["s_links"] == marks.num_rows
    assert told["published"] == (1 + raw) * world.published.sum()
    assert [row["cost"] for row in made.compared()][-1] == pytest.approx(told["cost"])


@given(st.integers(0, 10**6), st.booleans())
def test_the_check_counts_the_same_another_way(seed: int, shared: bool) -> None:
    problem = random_shared_problem(seed) if shared else random_source_problem(seed)
    publish = np.random.default_rng(seed).random(problem.size) < 0.6
    walked, counts = walk_ways(problem, publish), descriptor_counts(problem)
    assert walked.sigma.tolist() == counts.sigma.tolist()
    assert walked.tau.tolist() == counts.tau.tolist()
    assert np.flatnonzero(walked.broken).tolist() == violations(problem, publish).tolist()


@pytest.fixture
def dataset(tmp_path: Path) -> fanplan.Dataset:
    return fanplan.Dataset(write_marking_dataset(tmp_path / "dataset", figure_2()))


def test_figure_2_costs_what_the_paper_says(dataset: fanplan.Dataset, tmp_path: Path) -> None:
    made = fanplan.mark(dataset, "per-source")
    costs = [(row["marking"], row["cost"]) for row in made.compared()]
    assert costs == [
        ("subscriptions everywhere", 8.0),
        ("publications everywhere", 6.0),
        ("best", 5.0),
    ]
    marks = pq.read_table(made.save(tmp_path / "plan") / "marks.parquet").to_pylist()
    assert [tuple(row.values()) for row in marks] == [
        ("A", "B", "p", 2, 4, 1.0, None, None),
        ("B", "C", "s", 2, 1, 1.0, None, None),
        ("B", "D", "p", 2, 3, 1.0, None, None),
    ]


def test_nodes_need_no_table_of_brokers(tmp_path: Path) -> None:
    """B has no client; it is known from the links, or from the trees."""
    world = figure_2()
    path = write_marking_dataset(tmp_path / "links", world, brokers=False)
    assert fanplan.mark(fanplan.Dataset(path), "per-source").summary()["nodes"] == 4
    bare = MarkedNetwork(world.nodes, world.published, world.subscribed)
    path = write_marking_dataset(tmp_path / "trees", bare, tree_table(A="AB BC BD"), brokers=False)
    made = fanplan.mark(fanplan.Dataset(path), "given")
    assert made.summary()["cost"] == 5.0
    assert check_plan(made.save(tmp_path / "plan"), path).ok


# ---- merging

MERGED = [(False, "D", ["C"], 2), (True, "A", ["B"], 1)]
"""Of D's 3 descriptors C covers 2; B covers one of A's."""


@pytest.fixture
def covered(tmp_path: Path) -> fanplan.Dataset:
    """As Figure 2, but B publishes too."""
    world = network("ABCD", ["AB", "BC", "BD"], {"A": 2, "B": 2}, {"C": 1, "D": 3})
    return fanplan.Dataset(write_marking_dataset(tmp_path / "covered", world, covers=MERGED))


@pytest.mark.parametrize("trees", ["per-source", "shared:B"])
def test_merging_counts_less(covered: fanplan.Dataset, tmp_path: Path, trees: str) -> None:
    """On A to B τ sinks from 4 to 2 as C covers, on the others σ from 4 to 3 as B does.

    The marks that are best without merging are so with it.
    """
    made = fanplan.mark(covered, trees, merge=True)
    told = made.summary()
    assert told["merged"] == {
        "cost": 6.0,
        "plain": 6.0,
        "plain_merged": 6.0,
        "pub_everywhere": 8.0,
        "sub_everywhere": 6.0,
    }
    assert [row["marking"] for row in made.compared()][-2:] == ["best", "best merged"]
    plan = made.save(tmp_path / "plan")
    marks = pq.read_table(plan / "marks.parquet").to_pylist()
    assert [(row["merged_sigma"], row["merged_tau"]) for row in marks] == [(2, 2), (3, 1), (3, 3)]
    assert check_plan(plan, covered.path).ok


def test_merging_may_mark_otherwise(tmp_path: Path) -> None:
    """A publishes 3 descriptors; C and D want the same 2, so that A to B pays as an s-link."""
    world = network("ABCD", ["AB", "BC", "BD"], {"A": 3}, {"C": 2, "D": 2})
    covers = [(False, "D", ["C"], 2)]
    dataset = fanplan.Dataset(write_marking_dataset(tmp_path / "d", world, covers=covers))
    made = fanplan.mark(dataset, "per-source", merge=True)
    told = made.summary()
    assert (told["merged"]["plain"], told["merged"]["plain_merged"]) == (7.0, 7.0)
    assert (told["cost"], told["merged"]["cost"], told["s_links"]) == (8.0, 6.0, 3)
    assert check_plan(made.save(tmp_path / "plan"), dataset.path).ok


MISMERGED = {
    "merged_sigma": (lambda rows: first(rows, merged_sigma=9), "marks: merged_sigma (1): 'A' to"),
    "merged_tau": (lambda rows: first(rows, merged_tau=None), "marks: merged_tau (1): 'A' to 'B'"),
}


@pytest.mark.parametrize("wrong", MISMERGED.values(), ids=MISMERGED.keys())
def test_wrong_merged_counts_are_named(
    covered: fanplan.Dataset, tmp_path: Path, wrong: Any
) -> None:
    change, said = wrong
    plan = fanplan.mark(covered, "per-source", merge=True).save(tmp_path / "plan")
    edit(plan, change)
    assert any(said in text for text in check_plan(plan, covered.path).violations)


def test_wrong_merged_costs_are_named(covered: fanplan.Dataset, tmp_path: Path) -> None:
    made = fanplan.mark(covered, "per-source", merge=True)
    plan = made.save(tmp_path / "plan")
    amend(plan, merged=dict.fromkeys(made.summary()["merged"], 99.0))
    said = " ".join(check_plan(plan, covered.path).violations)
    for part in ("merged.cost (1): stated 99.0", "merged.sub_everywhere", "costs do not rise"):
        assert part in said


def test_raw_regions_are_not_merged(covered: fanplan.Dataset) -> None:
    with pytest.raises(InputError, match="merge: covered regions cannot both count"):
        fanplan.mark(covered, "per-source", raw=True, merge=True)


def test_too_much_to_merge_is_refused(tmp_path: Path) -> None:
    beyond: list[Any] = [(True, None, [], 2_000_000)]
    dataset = fanplan.Dataset(write_marking_dataset(tmp_path / "d", figure_2(), covers=beyond))
    with pytest.raises(InputError, match=r"2,000,000 regions.*Mark without merging"):
        fanplan.mark(dataset, "per-source", merge=True)


# ---- wrong plans


def edit(folder: Path, change: Callable[..., Any]) -> None:
    path = folder / "marks.parquet"
    rows = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)


def amend(folder: Path, **changes: Any) -> None:
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"marking": content["marking"] | changes}))


def first(rows: list[dict[str, Any]], **changes: Any) -> list[dict[str, Any]]:
    return [rows[0] | changes, *rows[1:]]


WRONG = {
    "invalid": (lambda rows: first(rows, mark="s"), "p-link behind an s-link (1): 'B' to 'D'"),
    "no mark": (lambda rows: first(rows, mark="x"), "neither p nor s (1): 'A' to 'B'"),
    "a wrong sigma": (lambda rows: first(rows, sigma=3), "marks: sigma (1): 'A' to 'B'"),
    "a wrong tau": (lambda rows: first(rows, tau=3), "marks: tau (1): 'A' to 'B'"),
    "a wrong price": (lambda rows: first(rows, price=2.0), "marks: price (1): 'A' to 'B'"),
    "a link missing": (lambda rows: rows[1:], "marks: missing (1): 'A' to 'B'"),
    "a link twice": (lambda rows: [*rows, rows[0]], "marks: given twice (1): 'A' to 'B'"),
    "the way back": (
        lambda rows: [*rows, rows[0] | {"from_node": "B", "to_node": "A"}],
        "marks: in no tree (1): 'B' to 'A'",
    ),
    "an unknown node": (lambda rows: first(rows, to_node="X"), "no such to_node (1): 'X'"),
    "no marks": (lambda rows: [], "marks: missing (3)"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_the_table_is_named(
    dataset: fanplan.Dataset, tmp_path: Path, wrong: Any
) -> None:
    change, named = wrong
    plan = fanplan.mark(dataset, "per-source").save(tmp_path / "plan")
    edit(plan, change)
    result = check_plan(plan, dataset.path)
    assert any(named in text for text in result.violations), result.violations


RECORDED = ["nodes", "publishers", "subscribers", "published", "subscribed", "links", "p_links"]
RECORDED += ["s_links", "cost", "pub_everywhere", "sub_everywhere"]


def test_what_is_wrong_in_the_record_is_named(dataset: fanplan.Dataset, tmp_path: Path) -> None:
    plan = fanplan.mark(dataset, "per-source").save(tmp_path / "plan")
    amend(plan, **dict.fromkeys(RECORDED, 99))
    edited, *said = check_plan(plan, dataset.path).violations
    assert edited.startswith("edited since it was written")
    assert [text.partition(" (")[0] for text in said] == [
        f"plan.json: marking.{n}" for n in RECORDED
    ]


def test_a_marking_dearer_than_broadcasting_is_no_plan(
    dataset: fanplan.Dataset, tmp_path: Path
) -> None:
    """All links s-links: valid, but not the best."""
    plan = fanplan.mark(dataset, "per-source").save(tmp_path / "plan")
    edit(plan, lambda rows: [row | {"mark": "s"} for row in rows])
    amend(plan, cost=8.0, p_links=0, s_links=3)
    _, *said = check_plan(plan, dataset.path).violations
    assert said == ["plan.json: marking.cost (1): 8.0 is more than the 6.0 of broadcasting"]


def test_a_plan_that_fails_its_check_is_not_written(
    dataset: fanplan.Dataset, tmp_path: Path
) -> None:
    made = fanplan.mark(dataset, "per-source")
    object.__setattr__(made.section, "marks", made.section.marks.slice(1))
    with pytest.raises(CheckError, match="missing"):
        made.save(tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


# ---- bad input

APART = network("ABCD", ["AB", "BC"], {"A": 2}, {"C": 1, "D": 3})
BAD = {
    "kind": (figure_2(), None, {"trees": "steiner"}, "'steiner' is unknown"),
    "no core": (figure_2(), None, {"trees": "shared:"}, "'shared:' is unknown"),
    "unknown core": (figure_2(), None, {"trees": "shared:X"}, "core: there is no node 'X'"),
    "sending": (figure_2(), None, {"trees": "per-source", "control_by": "x"}, "control_by: 'x'"),
    "storing": (
        figure_2(),
        None,
        {"trees": "per-source", "prices": {"stored": -1.0}},
        "prices: stored: -1.0 is out of range",
    ),
    "no trees": (figure_2(), None, {"trees": "given"}, "there is no table trees"),
    "apart": (APART, None, {"trees": "per-source"}, "that of 'A' does not reach 'D'"),
    "apart, shared": (APART, None, {"trees": "shared:B"}, "that of 'B' does not reach 'D'"),
    "a cycle": (
        figure_2(),
        tree_table(A="AB BC CB BD"),
        {"trees": "given"},
        "'B' is entered again in that of 'A'",
    ),
    "not reached": (
        figure_2(),
        tree_table(A="AB BC"),
        {"trees": "given"},
        "that of 'A' does not reach 'D'",
    ),
    "unknown node": (figure_2(), tree_table(A="AX"), {"trees": "given"}, "child 'X' is not a node"),
    "no link": (
        figure_2(),
        tree_table(A="AC"),
        {"trees": "given"},
        "no link leads from 'A' to 'C'",
    ),
    "no tree": (figure_2(), tree_table(B="BA"), {"trees": "given"}, "publishing node 'A' has none"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_input_is_named(tmp_path: Path, bad: Any) -> None:
    world, trees, wishes, named = bad
    dataset = fanplan.Dataset(write_marking_dataset(tmp_path / "d", world, trees))
    with pytest.raises(InputError, match=named):
        fanplan.mark(dataset, **wishes)


def test_prices_of_links_need_links(tmp_path: Path) -> None:
    world = network("ABCD", None, {"A": 2}, {"C": 1, "D": 3})
    trees = tree_table(A="AB BC BD")
    dataset = fanplan.Dataset(write_marking_dataset(tmp_path / "d", world, trees))
    assert fanplan.mark(dataset, "given", prices={"stored": 1.0}).summary()["cost"] == 10.0
    with pytest.raises(InputError, match="there are no links that have a latency"):
        fanplan.mark(dataset, "given", control_by="latency")
    for trees in ("per-source", "shared:A"):
        with pytest.raises(InputError, match="links: there are none"):
            fanplan.mark(dataset, trees)


def test_nobody_publishes(tmp_path: Path) -> None:
    world = network("AB", ["AB"], {}, {"B": 1})
    dataset = fanplan.Dataset(write_marking_dataset(tmp_path / "d", world))
    with pytest.raises(InputError, match="advertisements: there is no region"):
        fanplan.mark(dataset, "per-source")
