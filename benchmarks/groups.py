"""Groups: finding them on Spark, matching publications to them, and choosing them, beside peers.

    python benchmarks/groups.py [--full] [--only PART] [--sides 250 …] [--leaves N]

Identification: brokers ("leaves") with boxes in a plane of side × side cells. Spark marks the cells
and counts the different sets of brokers. Peers group the same marks, given as pairs of a cell and a
broker with its signature's words, in one process; they get some of the cells, and their rate is
extrapolated (~). Times are processor seconds, of all processes. Choice:
total cost at equal state.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rtree import index as rtree_index

from fanplan.core.kernels import compiled
from fanplan.data.spark import session
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.grid import grid_of
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.matchers import (
    class_matcher,
    exact_matcher,
    match_class,
    match_exact,
)
from fanplan.layers.groups.problem.regions import BrokerRegions, broker_words
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.groups.search.choose import candidates_of
from fanplan.layers.groups.stages.cells import GridStage, marked_cells
from fanplan.network.brokers import Routes
from fanplan.papers.hyper.samples import at_equal_state, paper_problem, priced_cost
from fanplan.workload.generators.draws import names
from fanplan.workload.generators.networks import TreeGridParams, draw_tree_grid

STEP = 10
"""Boxes end at multiples of so many cells, so that neighbours have the same brokers."""

GOAL = 20.0
"""Times the rate of an R-tree."""


# ---- identification


def boxes_in(side: int, leaves: int, each: int, seed: int) -> BrokerRegions:
    """Boxes of about a tenth of the plane's side, ``each`` for a broker."""
    rng = np.random.default_rng(seed)
    places, wide = side // STEP, max(1, side // STEP // 10)
    lo = rng.integers(0, places - wide, (leaves * each, 2)) * STEP
    hi = lo + rng.integers(wide // 2 + 1, wide + wide // 2 + 1, lo.shape) * STEP
    broker = np.repeat(np.arange(leaves), each)
    axes = np.full(len(lo), 2, np.int32)
    nothing = np.zeros(len(lo), np.int64)
    ends = lo.astype(np.float64), np.minimum(hi, side).astype(np.float64)
    return BrokerRegions(nothing, axes, broker, *ends)


def write_boxes(folder: Path, boxes: BrokerRegions, side: int) -> GridStage:
    for name, table in (
        (
            "broker_regions",
            {
                "topic_id": pa.array(boxes.topic, pa.int32()),
                "broker": pa.array(boxes.broker, pa.int32()),
                "lo": pa.array(list(boxes.lo), pa.list_(pa.float64())),
                "hi": pa.array(list(boxes.hi), pa.list_(pa.float64())),
            },
        ),
        (
            "group_grid",
            {
                "topic_id": pa.array([0, 0], pa.int32()),
                "axis": pa.array([0, 1], pa.int32()),
                "edges": pa.array([np.arange(side + 1.0)] * 2, pa.list_(pa.float64())),
            },
        ),
    ):
        (folder / name).mkdir(parents=True)
        # As many files as cores, so that all of them read.
        half = len(next(iter(table.values()))) // 2
        for number, rows in enumerate((slice(0, half), slice(half, None))):
            part = pa.table({key: values[rows] for key, values in table.items()})
            pq.write_table(part, folder / name / f"{number}.parquet")
    return GridStage(str(folder / "group_grid"), str(folder), 1, 2)


def on_spark(spark: SparkSession, folder: Path, grid: GridStage) -> int:
    """The number of different sets of brokers that marked a cell."""
    marks = marked_cells(spark.read.parquet(str(folder / "broker_regions")), grid)
    return marks.select("high", "low").distinct().count()


def pairs_of(boxes: BrokerRegions, side: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The marks of the first rows of cells, each pair of a cell and a broker once."""
    cells, brokers = [], []
    for lo, hi, broker in zip(boxes.lo, boxes.hi, boxes.broker, strict=True):
        a, b = int(lo[0]), min(int(hi[0]), rows)
        if a < b:
            own = (np.arange(a, b)[:, None] * side + np.arange(int(lo[1]), int(hi[1]))).ravel()
            cells.append(own.astype(np.int32))
            brokers.append(np.full(len(own), broker, np.int32))
    cell, broker = np.concatenate(cells), np.concatenate(brokers)
    _, first = np.unique(cell.astype(np.int64) << 32 | broker, return_index=True)
    first.sort()
    return cell[first], broker[first]


def with_pandas(cell: np.ndarray, a: np.ndarray, b: np.ndarray) -> int:
    sums = pd.DataFrame({"cell": cell, "a": a, "b": b}).groupby("cell", sort=False).sum()
    return len(sums.drop_duplicates())


def with_polars(cell: np.ndarray, a: np.ndarray, b: np.ndarray) -> int:
    rows = pl.DataFrame({"cell": cell, "a": a, "b": b})
    sums = rows.group_by("cell").agg(pl.col("a").sum(), pl.col("b").sum())
    return sums.select("a", "b").unique().height


def processes() -> dict[int, float]:
    """Processor seconds so far of this process and all below it: Spark's JVM and its workers."""
    own = psutil.Process()
    every = (own, *own.children(recursive=True))
    return {process.pid: sum(process.cpu_times()[:2]) for process in every}


def on_spark_timed(spark: SparkSession, folder: Path, grid: GridStage) -> tuple[int, float, float]:
    """Sets, seconds on the clock, and processor seconds of all processes."""
    before, began = processes(), time.perf_counter()
    groups = on_spark(spark, folder, grid)
    after = processes()
    used = sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
    return groups, time.perf_counter() - began, used


def timed(work: Callable[..., Any], *given: Any, clock: Callable[[], float]) -> tuple[Any, float]:
    before = clock()
    result = work(*given)
    return result, clock() - before


def identify(spark: SparkSession, side: int, leaves: int, each: int, most: int) -> None:
    """One line: Spark with all cells, peers with as many rows as have ``most`` marks."""
    boxes = boxes_in(side, leaves, each, seed=1)
    marks = float((boxes.hi - boxes.lo).prod(axis=1).sum())
    with tempfile.TemporaryDirectory() as name:
        grid = write_boxes(Path(name), boxes, side)
        groups, clock, seconds = on_spark_timed(spark, Path(name), grid)
    rows = min(side, max(STEP, int(side * most / marks)))
    cell, broker = pairs_of(boxes, side, rows)
    words = broker_words(np.arange(leaves)).astype(np.int64)[broker]
    sizes = f"{side * side:>9,} {leaves:>7,} {each:>5} {marks:>13,.0f} {groups:>8,}"
    print(f"{sizes} {clock:>7.1f} {seconds:>7.1f}", end="")
    for peer in (with_pandas, with_polars):
        found, taken = timed(peer, cell, words[:, 0], words[:, 1], clock=time.process_time)
        assert rows < side or found == groups
        whole = taken * marks / len(cell)
        print(f" {whole:>9.1f}{'~' if rows < side else ' '} {whole / seconds:>6.1f}×", end="")
    print()


# ---- matching


@compiled
def scanned(lo: np.ndarray, hi: np.ndarray, broker: np.ndarray, point: np.ndarray) -> np.ndarray:
    """How many brokers want each point: all boxes are asked, which come broker by broker."""
    counts = np.zeros(len(point), np.int64)
    for i in range(len(point)):
        last = -1
        for box in range(len(lo)):
            inside = broker[box] != last
            for axis in range(lo.shape[1]):
                inside &= (lo[box, axis] <= point[i, axis]) & (point[i, axis] < hi[box, axis])
            if inside:
                counts[i] += 1
                last = broker[box]
    return counts


def paper_sized(points: int) -> None:
    """The paper's space: 100 cells on one axis, 64 leaves. A broker wants cells as they are."""
    params = TreeGridParams()
    world, problem = draw_tree_grid(params, 1), paper_problem(0, 0, 1)
    cell = np.repeat(np.arange(params.cells), np.diff(world.starts))
    order = np.argsort(world.leaves, kind="stable")
    lo = cell[order][:, None] + 0.0
    boxes = regions(world.leaves[order], lo, lo + 1.0)
    grid = grid_of([[np.arange(params.cells + 1.0)]])
    own = np.arange(problem.size, dtype=np.int32)
    by_cell = class_matcher(grid, np.arange(params.cells), problem.group, problem.span, own)
    x = np.random.default_rng(2).random((points, 1)) * params.cells
    rates = {"cells": rate(lambda p: match_class(by_cell, 0, p), x)}
    rates |= exact_and_peers(boxes, problem, x)
    rates["dict of cells"] = rate(dict_matcher(problem.group), x[: points // 10])
    exact = exact_matcher(boxes, problem)
    assert (match_class(by_cell, 0, x) == match_exact(exact, 0, x)).all()
    show_rates("the paper's space: 100 cells, 64 leaves", rates)


def plane(points: int, leaves: int) -> None:
    """Boxes that end anywhere, so that the index has cells that boxes cut."""
    rng = np.random.default_rng(3)
    lo = rng.random((4 * leaves, 2))
    hi = lo + rng.random(lo.shape) * 0.1
    boxes = regions(np.repeat(np.arange(leaves), 4), lo, hi)
    x = rng.random((points, 2))
    wanted = sorted({reached(boxes, point) for point in x[:1000]} - {()})
    routes = Routes(
        np.zeros(len(wanted), np.int32),
        np.cumsum([0, *map(len, wanted)]),
        np.array([broker for who in wanted for broker in who], np.int32),
        np.ones(len(wanted)),
        np.ones(len(wanted)),
    )
    links = np.stack([np.zeros(leaves - 1, int), np.arange(1, leaves)], axis=1)
    trees = hung_at(links, np.array([0]), leaves)
    problem = exact_groups(names("b", leaves), trees, routes)
    title = f"a plane: {leaves:,} leaves with 4 boxes that end anywhere"
    show_rates(title, exact_and_peers(boxes, problem, x))


def regions(broker: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> BrokerRegions:
    axes = np.full(len(lo), lo.shape[1], np.int32)
    return BrokerRegions(np.zeros(len(lo), np.int64), axes, broker.astype(np.int64), lo, hi)


def reached(boxes: BrokerRegions, point: np.ndarray) -> tuple[int, ...]:
    inside = ((boxes.lo <= point) & (point < boxes.hi)).all(axis=1)
    return tuple(np.unique(boxes.broker[inside]).tolist())


def exact_and_peers(
    boxes: BrokerRegions, problem: GroupsProblem, x: np.ndarray
) -> dict[str, float]:
    exact, tree = exact_matcher(boxes, problem), tree_matcher(boxes, problem)
    few = x[: len(x) // 100]
    assert match_exact(exact, 0, few[:500]).tolist() == tree(few[:500])
    scan = lambda p: scanned(boxes.lo, boxes.hi, boxes.broker, p)  # noqa: E731
    return {
        "exact": rate(lambda p: match_exact(exact, 0, p), x),
        "linear scan, compiled": rate(scan, few),
        "R-tree": rate(tree, few),
    }


def dict_matcher(group: np.ndarray) -> Callable[[np.ndarray], list[int]]:
    known = dict(enumerate(group.tolist()))
    return lambda points: [known.get(int(x), -1) for x in points[:, 0].tolist()]


def tree_matcher(boxes: BrokerRegions, problem: GroupsProblem) -> Callable[[np.ndarray], list[int]]:
    """All boxes that hold a point, by an R-tree; the set of their brokers is looked up."""
    # The R-tree has closed boxes of two axes or more.
    more = ((0, 0), (0, 2 - boxes.lo.shape[1]))
    lo, hi = np.pad(boxes.lo, more), np.pad(np.nextafter(boxes.hi, -np.inf), more)
    ends = np.concatenate([lo, hi], axis=1).tolist()
    tree = rtree_index.Index((i, end, None) for i, end in enumerate(ends))
    members = np.split(problem.members, problem.starts[1:-1])
    groups = {frozenset(who.tolist()): g for g, who in enumerate(members)}
    broker = boxes.broker.tolist()

    def match(points: np.ndarray) -> list[int]:
        places = np.tile(np.pad(points, more), 2).tolist()
        held = (tree.intersection(place) for place in places)
        return [groups.get(frozenset(broker[i] for i in found), -1) for found in held]

    return match


def rate(match: Callable[[np.ndarray], Any], points: np.ndarray) -> float:
    """Publications a second of processor time; the first call compiles."""
    match(points[:10])
    _, seconds = timed(match, points, clock=time.process_time)
    return len(points) / seconds


def show_rates(title: str, rates: dict[str, float]) -> None:
    print(f"\nMatching in {title}; publications/s of one core")
    for name, value in rates.items():
        print(f"{name:<24} {value:>12,.0f} {value / rates['R-tree']:>9,.1f} × R-tree")
    for name in (name for name in ("cells", "exact") if name in rates):
        met = "met" if rates[name] >= GOAL * rates["R-tree"] else "missed"
        print(f"goal, {name}: at least {GOAL:.0f} × R-tree: {met}")


# ---- choice


def choice(args: argparse.Namespace) -> None:
    """Mean cost of the best 10 % by the paper's benefits, and of the true saving at equal state."""
    print(f"\nChoice, total cost, mean of {args.runs} workloads")
    print(f"{'':<10} {'default':>9} {'nc':>9} {'saving':>9} {'fc':>9} {'saving':>9}")
    for name, zipf in (("uni-uni", (0, 0)), ("zipf-uni", (1, 0)), ("zipf-zipf", (1, 1))):
        costs = []
        for seed in range(args.runs):
            problem = paper_problem(*zipf, seed)
            candidates = candidates_of(problem)
            none = np.zeros(problem.size, bool)
            pairs = (at_equal_state(problem, candidates, rank, 10) for rank in ("nc", "fc"))
            costs.append(
                [priced_cost(groups_ledger(problem, none)), *(c for pair in pairs for c in pair)]
            )
        print(f"{name:<10}", *(f"{value:>9,.0f}" for value in np.mean(costs, axis=0)))


def identification(args: argparse.Namespace) -> None:
    spark = session()
    print("\nIdentification; processor seconds of all processes, and times Spark's")
    print(f"{'cells':>9} {'leaves':>7} {'boxes':>5} {'marks':>13} {'sets':>8}", end="")
    print(f" {'clock':>7} {'Spark':>7} {'pandas':>10} {'':>7} {'Polars':>10}")
    with tempfile.TemporaryDirectory() as name:
        small = write_boxes(Path(name), boxes_in(100, 100, 2, 0), 100)
        on_spark(spark, Path(name), small)  # starts workers, compiles
    for each in (1, 4):
        for side in args.sides:
            identify(spark, side, args.leaves, each, args.most)
    spark.stop()


def matching(args: argparse.Namespace) -> None:
    paper_sized(args.points)
    plane(args.points, args.leaves)


PARTS = {"matching": matching, "choice": choice, "identification": identification}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--sides", type=int, nargs="+", default=[250, 500])
    parser.add_argument("--leaves", type=int, default=2_000)
    parser.add_argument("--most", type=int, default=5_000_000, help="marks that peers get")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--full", action="store_true", help="a million cells, 10,000 leaves")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be given again")
    args = parser.parse_args()
    if args.full:
        args.sides, args.leaves, args.most, args.runs = [250, 500, 1000], 10_000, 20_000_000, 30
    for name in args.only or PARTS:
        PARTS[name](args)


if __name__ == "__main__":
    main()
