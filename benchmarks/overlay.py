"""Overlays: similarity, building of trees, improved trees and allocation, in one run.

    python benchmarks/overlay.py [--quick] [--only similarity building trees limited allocation]
        [--sizes 10000 …] [--measures overlap interest cover] [--huge SHARE] [--peers MOST]
        [--brokers N] [--clients 800 …] [--followed 2 3 4] [--loads estimate exact]
        [--seeds 3] [--first-seed 0]

Workloads are those of Tajuddin (2011): generator `brokers` (section 5.4.2) and `clients` (section
6.4.2), and ours: generator `enterprise`, and portfolios. Similarity is timed on the clock, as it
runs on all cores, and in processor seconds of all processes; the rest in processor seconds, medians
over the seeds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, get_args

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from pyspark.sql import DataFrame, SparkSession

from fanplan.boxes.extents import Extents, make_extents
from fanplan.core.stop import never
from fanplan.data.ingest.extents import Chunks, write_chunks
from fanplan.data.spark import running
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Load,
    Ranking,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import fewest_brokers
from fanplan.layers.overlay.allocation.cram import cram_allocation
from fanplan.layers.overlay.allocation.crossing import fewer_messages, spread
from fanplan.layers.overlay.allocation.phases import Deployed, deployed
from fanplan.layers.overlay.allocation.publishers import cut_messages
from fanplan.layers.overlay.params import Closeness
from fanplan.layers.overlay.problem import broker_similarity, client_similarity
from fanplan.layers.overlay.published.similar import (
    cover_tree,
    hybrid_tree,
    interest_tree,
    overlap_tree,
    random_tree,
)
from fanplan.layers.overlay.search.improve import improved_tree
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits
from fanplan.layers.overlay.stages.similarity import (
    covers_of_owners,
    interests_of_owners,
    overlaps_of_owners,
)
from fanplan.network.brokers import ClientProblem, OverlayProblem, Routes, Similarity
from fanplan.network.carried import OverlayLedger, overlay_ledger
from fanplan.network.generated import broker_routes, client_routes
from fanplan.network.trees import Tree
from fanplan.workload.generators import clients, enterprise
from fanplan.workload.generators.draws import names, zipf
from fanplan.workload.generators.population import Regions

SECTIONS = ("similarity", "building", "trees", "limited", "allocation")
MEASURES = ("overlap", "interest", "cover")
BIASES = (0.0, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0)
THESIS = ("overlap", "cover", "hybrid")
"""Trees of the thesis that ours is measured against; it does not test interest alone."""
PUBLICATIONS, SECONDS = 10_000, 10.0
NUMPY_MOST = 10_000
NEIGHBOURS = 50
NEAR, LINKS = 38, 20
"""Similar brokers of each broker when trees of very many are built."""
MARKETS, FILLED, BROKERS = 10, 8, 400
"""Portfolios: markets, brokers that all rates fill, and brokers there are."""
BUSIEST = 1.4
"""Filters: a broker's capacity, in what the busiest user wants, so that all fit."""
KEPT = (("N", 0), ("NQ", 0), ("NQZ", 2), ("NQZ", 3), ("N", 1))
"""Venues, and the first cell of amounts, that each filter of the generator `enterprise` lets by."""


# ---- similarity


def table_of(regions: Regions) -> pa.Table:
    """Boxes as a table, a column per end."""
    axes = regions.lo.shape[1]
    return pa.table(
        {"subscription": np.arange(len(regions)), "topic_id": regions.topic.astype(np.int32)}
        | {"owner": regions.broker.astype(np.int32)}
        | {f"lo{axis}": regions.lo[:, axis] for axis in range(axes)}
        | {f"hi{axis}": regions.hi[:, axis] for axis in range(axes)}
    )


def chunks(spark: SparkSession, table: pa.Table, folder: Path) -> Chunks:
    folder.mkdir()
    pq.write_table(table, folder / "rows.parquet", row_group_size=100_000)
    rows = spark.read.parquet(str(folder / "rows.parquet"))
    owned = rows.selectExpr("subscription", "owner", "1.0D AS weight")
    low, high = ends(table)
    sides = f"array({', '.join(low)}) AS lo", f"array({', '.join(high)}) AS hi"
    boxes = rows.selectExpr("subscription", "topic_id", *sides)
    return write_chunks(owned, boxes, len(low), folder / "chunks")


def ends(table: pa.Table) -> tuple[list[str], list[str]]:
    names = table.column_names
    return [n for n in names if n.startswith("lo")], [n for n in names if n.startswith("hi")]


def with_numpy(table: pa.Table, count: int) -> np.ndarray:
    """Row by row against all others."""
    lo, hi = (np.column_stack([table[name] for name in side]) for side in ends(table))
    topic, owner = table["topic_id"].to_numpy(), table["owner"].to_numpy()
    volume = np.prod(hi - lo, axis=1)
    found = np.zeros((count, count))
    for x in range(len(table)):
        sides = np.minimum(hi, hi[x]) - np.maximum(lo, lo[x])
        shared = np.prod(np.maximum(sides, 0.0), axis=1) * (topic == topic[x])
        found[owner[x]] += np.bincount(owner, shared**2 / (volume * volume[x]), count)
    return found


def with_duckdb(table: pa.Table, count: int) -> np.ndarray:
    """A self join on topic and ends, on two threads."""
    pairs = list(zip(*ends(table), strict=True))
    sides = " * ".join(f"(least(x.{h}, y.{h}) - greatest(x.{low}, y.{low}))" for low, h in pairs)
    meet = " AND ".join(f"x.{low} < y.{high} AND y.{low} < x.{high}" for low, high in pairs)
    volume = " * ".join(f"({high} - {low})" for low, high in pairs)
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("rows", table)
        rows = connection.sql(
            f"WITH s AS (SELECT *, {volume} AS volume FROM rows) "
            f"SELECT x.owner, y.owner, sum(({sides})**2 / (x.volume * y.volume)) "
            f"FROM s x JOIN s y ON x.topic_id = y.topic_id AND {meet} GROUP BY ALL"
        ).fetchnumpy()
    i, j, value = rows.values()
    found = np.zeros((count, count))
    found[i, j] = value
    return found


def gathered(pairs: DataFrame, count: int) -> np.ndarray:
    """Values by pairs of brokers, which are few."""
    rows = pairs.toArrow()
    found = np.zeros((count, count))
    found[rows["i"].to_numpy(), rows["j"].to_numpy()] = rows["value"].to_numpy()
    return found


def processes() -> dict[int, float]:
    """Processor seconds so far of this process and all below it: Spark's JVM and its workers."""
    own = psutil.Process()
    every = (own, *own.children(recursive=True))
    return {process.pid: sum(process.cpu_times()[:2]) for process in every}


def timed(name: str, size: int, work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    before, start = processes(), time.perf_counter()
    found = work()
    seconds = time.perf_counter() - start
    used = sum(spent - before.get(pid, 0.0) for pid, spent in processes().items())
    print(f"| {name} | {size:,} | {seconds:.1f} | {used:.0f} |", flush=True)
    return seconds, found * (1 - np.eye(len(found)))


def similarity_at(spark: SparkSession, size: int, options: argparse.Namespace) -> None:
    count = min(options.brokers, size // 10)
    params = clients.BrokersParams(
        brokers=count, subscriptions=size, advertisements=max(count, size // 3)
    )
    drawn = clients.populate_brokers(params, 0)
    # Subscriptions are drawn in any order, so the first ones are a sample of all.
    drawn.subscriptions.broker[: int(options.huge * size)] = 0
    table = table_of(drawn.subscriptions)
    with tempfile.TemporaryDirectory() as folder:
        wanted = chunks(spark, table, Path(folder) / "wanted")
        offered = chunks(spark, table_of(drawn.advertisements), Path(folder) / "offered")
        works = {
            "overlap": lambda: overlaps_of_owners(spark, wanted),
            "interest": lambda: interests_of_owners(spark, offered, wanted),
            "cover": lambda: covers_of_owners(spark, wanted, wanted),
        }
        found = {
            name: timed(f"Spark, {name}", size, lambda name=name: gathered(works[name](), count))  # type: ignore[misc]
            for name in options.measures
        }
    for name, peer, most in (
        ("DuckDB self join, overlap", with_duckdb, options.peers),
        ("numpy loop, overlap", with_numpy, NUMPY_MOST),
    ):
        if size <= most and "overlap" in found:
            seconds, same = timed(name, size, lambda peer=peer: peer(table, count))  # type: ignore[misc]
            ours, values = found["overlap"]
            assert np.allclose(values, same), f"{name} differs"
            print(f"  {seconds / ours:.2f} times as long as Spark")


def similarity(options: argparse.Namespace) -> None:
    print("| method | subscriptions | seconds | processor seconds |\n| --- | --- | --- | --- |")
    with running() as spark:
        print("Warming up:")
        for size in (1000, *options.sizes):
            similarity_at(spark, size, options)


# ---- trees


def extents_of(regions: Regions, owner: np.ndarray) -> Extents:
    return make_extents(owner, np.arange(len(regions)), regions.topic, regions.lo, regions.hi)


def broker_problem(params: clients.BrokersParams, seed: int) -> OverlayProblem:
    """A drawn workload as a problem, without Spark."""
    drawn = clients.populate_brokers(params, seed)
    sent = clients.publications_by_rate(drawn, PUBLICATIONS, seed + 1)
    wanted, offered = drawn.subscriptions, drawn.advertisements
    alike = broker_similarity(
        extents_of(wanted, wanted.broker), extents_of(offered, offered.broker), params.brokers
    )
    return with_brokers(drawn.brokers, broker_routes(drawn, sent)[0], alike)


def with_brokers(names: pa.Array, routes: Routes, alike: Similarity) -> OverlayProblem:
    size = len(names)
    free = np.full(size, np.inf)
    return OverlayProblem(names, free, np.ones(size), routes, alike, None, 1.0, "benchmark")


def sparse_problem(size: int, seed: int) -> OverlayProblem:
    """Brokers that are like some others each; nothing is sent."""
    random = np.random.default_rng(seed)
    i = np.repeat(np.arange(size), NEIGHBOURS)
    j = (i + random.integers(1, size, len(i))) % size
    directed = scipy.sparse.coo_array((random.random(len(i)), (i, j)), (size, size)).tocsr()
    alike = Similarity(directed.maximum(directed.T), directed, directed)
    none = np.empty(0, np.int32)
    routes = Routes(none, np.zeros(1, np.int64), none, np.empty(0), np.empty(0))
    return with_brokers(names("b", size), routes, alike)


MAKERS: dict[str, Callable[[OverlayProblem, int], Tree]] = {
    "overlap": lambda problem, seed: overlap_tree(problem),
    "cover": lambda problem, seed: cover_tree(problem),
    "hybrid": lambda problem, seed: hybrid_tree(problem),
    "interest": lambda problem, seed: interest_tree(problem),
    "random": random_tree,
    "improved": lambda problem, seed: improved_tree(problem, ImproveParams(), seed, never).tree,
}


def in_processor_time(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def building(options: argparse.Namespace) -> None:
    print("| tree | brokers | processor seconds |\n| --- | --- | --- |")
    for size in (100, options.tree_brokers):
        problem = sparse_problem(size, 0)
        for name in (*THESIS, "random"):
            seconds = [
                in_processor_time(lambda: MAKERS[name](problem, seed))[1]  # noqa: B023
                for seed in range(options.seeds)
            ]
            if size > 100:  # the small ones compile
                print(f"| {name} | {size:,} | {median(seconds):.2f} |", flush=True)


def trees(options: argparse.Namespace) -> None:
    print("| bias | tree | link messages | ratio | delay, hops | processor seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    few: dict[str, Any] = {"brokers": 60, "subscriptions": 600, "advertisements": 200}
    small = few if options.quick else {}
    for bias in BIASES:
        params = clients.BrokersParams(bias=bias, **small)
        runs = [tree_runs(params, seed) for seed in range(options.seeds)]
        # One ratio for each seed: to the best tree of the thesis on the same workload.
        best = [min(run[name][0].link_messages for name in THESIS) for run in runs]
        for name in MAKERS:
            ledgers = [run[name][0] for run in runs]
            ratio = median(x.link_messages / b for x, b in zip(ledgers, best, strict=True))
            print(
                f"| {bias} | {name} | {median(x.link_messages for x in ledgers):,.0f} | "
                f"{ratio:.3f} | {median(x.delay_mean for x in ledgers):.2f} | "
                f"{median(run[name][1] for run in runs):.2f} |",
                flush=True,
            )
            if name == "improved" and bias == 0.75:
                print(goal("link messages", ratio, 0.90))


def goal(what: str, ratio: float, wanted: float, peer: str = "the best of the thesis") -> str:
    met = "met" if ratio <= wanted else "NOT met"
    return f"  Goal: {what} at most {wanted} of {peer}: {ratio:.3f}, {met}"


def tree_runs(params: clients.BrokersParams, seed: int) -> dict[str, tuple[OverlayLedger, float]]:
    problem = broker_problem(params, seed)
    found = {}
    for name, make in MAKERS.items():
        tree, seconds = in_processor_time(lambda make=make: make(problem, seed))  # type: ignore[misc]
        found[name] = overlay_ledger(tree.edges, 1.0, problem.routes), seconds
    return found


def near_routes(size: int, seed: int) -> OverlayProblem:
    """Two routes a broker: from anywhere to some 19 that are near each other in a hidden row."""
    random = np.random.default_rng(seed)
    row, count = random.permutation(size), 2 * size
    first = random.integers(0, size - NEAR, count)
    wanted = random.random((count, NEAR)) < 0.5
    source = random.integers(0, size, count).astype(np.int32)
    route, step = np.nonzero(wanted)
    target = row[first[route] + step].astype(np.int32)
    starts = np.searchsorted(route, np.arange(count + 1)).astype(np.int64)
    target = target[np.lexsort((target, route))]
    routes = Routes(source, starts, target, np.ones(count), np.diff(starts).astype(float))
    none = scipy.sparse.csr_array((size, size))
    return with_brokers(names("b", size), routes, Similarity(none, none, none))


def limited(options: argparse.Namespace) -> None:
    """Trees without a limit of links, where a star is best, and with one."""
    print("| brokers | links each | messages per arrival | hops | processor seconds |")
    print("| --- | --- | --- | --- | --- |")
    for most in (None, LINKS):
        for size in (450, 1000 if options.quick else 10_000):
            problem = (
                broker_problem(clients.BrokersParams(bias=0.75), 0)
                if size == 450
                else near_routes(size, 0)
            )
            params = ImproveParams(limits=TreeLimits(degree=most))
            made, seconds = in_processor_time(
                lambda problem=problem, params=params: improved_tree(problem, params, 0, never)  # type: ignore[misc]
            )
            ledger = overlay_ledger(made.tree.edges, 1.0, problem.routes)
            print(
                f"| {size:,} | {most or 'any'} | {ledger.link_messages / ledger.arrivals:.3f} | "
                f"{ledger.delay_mean:.1f} | {seconds:.0f} |",
                flush=True,
            )


# ---- allocation


def client_problem(count: int, seed: int) -> ClientProblem:
    """A publisher has three subscribers, so a quarter of the clients publishes."""
    params = clients.ClientsParams(advertisements=count // 4)
    drawn = clients.populate_clients(params, seed)
    routes, _ = client_routes(drawn, clients.publications_at_pace(drawn, SECONDS, seed + 1))
    wanted, offered = drawn.subscriptions, drawn.advertisements
    interest, common = client_similarity(
        extents_of(wanted, np.arange(len(wanted))),
        extents_of(offered, np.arange(len(offered))),
        len(wanted),
        len(offered),
    )
    return ClientProblem(
        names("p", len(offered)), names("u", len(wanted)), drawn.rates, interest, common, routes,
        drawn.brokers, np.full(params.brokers, params.capacity), np.ones(params.brokers),
        SECONDS, "benchmark",
    )  # fmt: skip


def market_problem(count: int, seed: int, followed: int = 3) -> ClientProblem:
    """Portfolios: who follows a market wants its first symbols, and all clients are one part.

    No broker holds all publishers that its subscribers listen to, so nearly every subscriber adds
    load wherever it is.
    """
    random = np.random.default_rng((seed, 7))
    publishers, size = count // 4, count // 4 // MARKETS
    subscribers = count - publishers
    market, rank = np.arange(publishers) % MARKETS, np.arange(publishers) // MARKETS
    follows = np.argsort(random.random((subscribers, MARKETS)), axis=1)[:, :followed]
    chance = 0.8 * np.exp(-rank / (0.15 * size))
    listed = (follows[:, :, None] == market).any(axis=1)
    wants = scipy.sparse.csr_array((random.random(listed.shape) < chance) & listed, dtype=float)
    rates = random.choice(np.arange(1.0, 11.0), publishers, p=zipf(10, 2.0))
    audience = wants.T.tocsr()
    audience.sort_indices()
    messages = rates * SECONDS
    routes = Routes(
        np.arange(publishers, dtype=np.int32), audience.indptr.astype(np.int64),
        audience.indices.astype(np.int32), messages, messages * np.diff(audience.indptr),
    )  # fmt: skip
    common = wants @ wants.T
    common.setdiag(0.0)
    common.eliminate_zeros()
    return ClientProblem(
        names("p", publishers), names("u", subscribers), rates, audience, common.tocsr(), routes,
        names("b", BROKERS), np.full(BROKERS, rates.sum() / FILLED), np.ones(BROKERS),
        SECONDS, "benchmark",
    )  # fmt: skip


def enterprise_problem(count: int, seed: int) -> ClientProblem:
    """Market data with filters, users of several sites; a feed for each symbol publishes it.

    A route has the cells of a symbol's grid that the same users want.
    """
    size = enterprise.EnterpriseParams(flows=count // 4, users=count - count // 4)
    made = enterprise.generate_enterprise(size, seed)
    cells, shares = cells_of_filters()
    wanted = made.tables["subscriptions"]
    user, topic = (
        wanted[name].combine_chunks().indices.to_numpy() for name in ("subscriber", "topic")
    )
    wants = np.zeros((size.flows, len(shares), size.users))
    wants[topic, :, user] = [cells[filtered] for filtered in wanted["filter"].to_pylist()]
    source, rate, audience = [], [], []
    for symbol, of_cells in enumerate(wants):
        distinct, which = np.unique(of_cells, axis=0, return_inverse=True)
        source += [symbol] * len(distinct)
        rate.append(np.bincount(which.ravel(), shares) * made.law.rates[symbol])
        audience.append(distinct)
    listed, messages = scipy.sparse.csr_array(np.concatenate(audience)), np.concatenate(rate)
    routes = Routes(
        np.array(source, np.int32), listed.indptr.astype(np.int64),
        listed.indices.astype(np.int32), messages * SECONDS,
        messages * SECONDS * np.diff(listed.indptr),
    )  # fmt: skip
    interest = scipy.sparse.csr_array(np.einsum("tcu,c->tu", wants, shares))
    capacity = BUSIEST * float((made.law.rates @ interest).max())
    flat = scipy.sparse.csr_array(wants.reshape(-1, size.users))
    weighed = scipy.sparse.diags_array(np.tile(shares, size.flows)) @ flat
    common = scipy.sparse.csr_array(flat.T @ weighed)
    common.setdiag(0.0)
    common.eliminate_zeros()
    return ClientProblem(
        names("p", size.flows), names("u", size.users), made.law.rates,
        interest, common, routes,
        names("b", BROKERS), np.full(BROKERS, capacity), np.ones(BROKERS),
        SECONDS, "benchmark",
    )  # fmt: skip


def cells_of_filters() -> tuple[dict[str | None, np.ndarray], np.ndarray]:
    """What each filter lets by of a symbol's cells, venues by amounts; and their shares."""
    amounts = np.arange(enterprise.AMOUNT_CELLS)
    shares = np.repeat(enterprise.VENUE_SHARES / len(amounts), len(amounts))
    cells: dict[str | None, np.ndarray] = {None: np.ones(len(shares))}
    for text, (venues, first) in zip(enterprise.FILTERS, KEPT, strict=True):
        allowed = np.isin(enterprise.VENUE.values, list(venues))
        cells[text] = np.outer(allowed, amounts >= first).ravel().astype(float)
    return cells, shares


def made_by(method: str, problem: ClientProblem, params: AllocationParams, seed: int) -> Deployed:
    """Clients by a method, on the overlap tree (section 6.3.2); the baseline knows no similarity.

    CRAM has whichever closeness needs fewest brokers. It and ours then have publishers moved to
    where most messages are cut.
    """
    link = (lambda o: random_tree(o, seed)) if method == "baseline" else overlap_tree
    if method == "best":
        found = best_allocation(problem, params, seed, never)
    elif method == "cram":
        each = [cram_allocation(problem, closeness, params) for closeness in get_args(Closeness)]
        found = min(each, key=lambda made: made.brokers)
    else:
        ranking = next(known for known in get_args(Ranking) if known == method)
        return deployed(problem, ranked_allocation(problem, ranking, params, seed), link)
    return with_cut(problem, found, link, params)


def with_cut(
    problem: ClientProblem,
    found: Allocation,
    link: Callable[[OverlayProblem], Tree],
    params: AllocationParams,
) -> Deployed:
    """Brokers linked, and publishers where most messages are cut on that tree."""
    made = deployed(problem, found, link)
    return cut_messages(problem, made, lambda _, other: deployed(problem, other, link), params)


def with_fewest_messages(
    problem: ClientProblem,
    found: Allocation,
    params: AllocationParams,
    seed: int,
    brokers: int,
    link: Callable[[OverlayProblem], Tree],
) -> Deployed:
    """What ``--fewest messages`` makes of our allocation with up to so many brokers.

    From one of the three starts that the command looks at: that of least load with all of them.
    """
    made = deployed(problem, spread(problem, params, found, brokers, seed, never), link)
    linked = lambda _, other: deployed(problem, other, link)  # noqa: E731
    return fewer_messages(problem, made, linked, params, seed, never)


def allocation_runs(
    problem: ClientProblem, load: Load, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Brokers, link messages and processor seconds of each method, and the bound."""
    params, found, allocated = AllocationParams(load=load), {}, {}
    for method in (*get_args(Ranking), "cram", "best"):
        made, seconds = in_processor_time(lambda m=method: made_by(m, problem, params, seed))  # type: ignore[misc]
        tell_busiest(method, made)
        found[method] = (made.allocation.brokers, made.ledger.link_messages, seconds)
        allocated[method] = made.allocation
    # Peers have the tree that their authors give them; then CRAM and ours have our tree.
    ours = lambda overlay: MAKERS["improved"](overlay, seed)  # noqa: E731
    for method in ("cram", "best"):
        made, seconds = in_processor_time(
            lambda m=method: with_cut(problem, allocated[m], ours, params)  # type: ignore[misc]
        )
        tell_busiest(f"{method}, our tree", made)
        spent = found[method][2] + seconds
        found[f"{method}, our tree"] = (made.allocation.brokers, made.ledger.link_messages, spent)
    few, most = allocated["best"], allocated["cram"].brokers
    for tree, link in (("", overlap_tree), (", our tree", ours)):
        made, seconds = in_processor_time(
            partial(with_fewest_messages, problem, few, params, seed, most, link)
        )
        tell_busiest(f"best, CRAM's brokers{tree}", made)
        spent = found["best"][2] + seconds
        row = made.allocation.brokers, made.ledger.link_messages, spent
        found[f"best, CRAM's brokers{tree}"] = row
    bound, seconds = in_processor_time(lambda: fewest_brokers(problem, params))
    found["bound"] = (bound, np.nan, seconds)
    return found


def tell_busiest(method: str, made: Deployed) -> None:
    """What the tree asks of single brokers: the room of allocation is for their clients alone."""
    links = np.bincount(made.trees.links.ravel()).max(initial=0)
    times = (made.processing / made.overlay.capacity).max()
    print(
        f"  {method}: one broker has {links} links, one processes {times:.2f} times its capacity; "
        f"{len(made.overloaded)} process more than their capacity",
        flush=True,
    )


def allocation(options: argparse.Namespace) -> None:
    print("Ratios are to the best of the thesis and to CRAM on the same workload.\n")
    print(
        "| workload | load | method | brokers | thesis | CRAM | link messages | thesis | CRAM | s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in options.clients:
        draws: dict[str, Callable[[int, int], ClientProblem]] = {"clients": client_problem}
        draws["enterprise"] = enterprise_problem
        draws |= {
            f"market, {each} of {MARKETS}": partial(market_problem, followed=each)
            for each in options.followed
        }
        for workload, draw in draws.items():
            first = options.first_seed
            problems = [draw(count, seed) for seed in range(first, first + options.seeds)]
            for load in options.loads:
                runs = [allocation_runs(each, load, s) for s, each in enumerate(problems, first)]
                tell_allocation(f"{workload} {count:,} | {load}", runs)
                tell_cram(f"{workload} {count:,} | {load}", runs, first)


def tell_allocation(title: str, runs: list[dict[str, tuple[float, float, float]]]) -> None:
    thesis = [np.min([run[ranking] for ranking in get_args(Ranking)], axis=0) for run in runs]
    peers = {"the best of the thesis": thesis, "CRAM": [np.array(run["cram"]) for run in runs]}
    for method in runs[0]:
        value = np.median([run[method] for run in runs], axis=0)
        shares = [ratios(runs, method, peer) for peer in peers.values()]
        sent = ["", "", ""] if method == "bound" else [
            f"{value[1]:,.0f}", *(f"{share[1]:.3f}" for share in shares)
        ]  # fmt: skip
        few = [f"{value[0]:.0f}", *(f"{share[0]:.3f}" for share in shares)]
        row = [title, method, *few, *sent, f"{value[2]:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)
    if all(run["best"][0] == run["bound"][0] and run["best"][1] == 0 for run in runs):
        print("  Ours has the fewest brokers there can be, and no messages on links: proved.")
        return
    for name, peer in peers.items():
        share, own = (ratios(runs, method, peer) for method in ("best", "best, our tree"))
        print(goal("brokers", share[0], 0.95 if name != "CRAM" else 0.90, name))
        print(goal("link messages on the same kind of tree", share[1], 0.90, name))
        print(goal("link messages on our tree", own[1], 0.90, name))
    for tree, kind in (("", "the overlap tree"), (", our tree", "our tree")):
        peer = [np.array(run[f"cram{tree}"]) for run in runs]
        same = ratios(runs, f"best, CRAM's brokers{tree}", peer)
        print(goal("link messages at as many brokers", same[1], 0.90, f"CRAM on {kind}"))


def tell_cram(title: str, runs: list[dict[str, tuple[float, float, float]]], first: int) -> None:
    """Ours beside CRAM, seed by seed: brokers, and messages at as many brokers on either tree."""
    print("\n| workload | load | seed | CRAM | best | bound | brokers | overlap tree | our tree |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    pairs = [("best", "cram", 0), ("best, CRAM's brokers", "cram", 1)]
    pairs += [("best, CRAM's brokers, our tree", "cram, our tree", 1)]
    shares = np.array([[share_of(run[a][i], run[b][i]) for a, b, i in pairs] for run in runs])
    for seed, (run, row) in enumerate(zip(runs, shares, strict=True), first):
        few = " | ".join(f"{run[method][0]:.0f}" for method in ("cram", "best", "bound"))
        print(f"| {title} | {seed} | {few} | {' | '.join(f'{x:.3f}' for x in row)} |")
    mean = " | ".join(f"{share:.3f}" for share in shares.mean(axis=0))
    print(f"| {title} | mean | | | | {mean} |\n", flush=True)


def share_of(own: float, other: float) -> float:
    """A part of another number; 0 of 0 is 1."""
    return 1.0 if own == other else own / (other or 1e-9)


def ratios(
    runs: list[dict[str, tuple[float, float, float]]], method: str, peer: list[np.ndarray]
) -> np.ndarray:
    """Medians of brokers, messages and seconds over those of a peer; 0 / 0 is 1."""
    pairs = [(np.array(run[method]), other) for run, other in zip(runs, peer, strict=True)]
    shares = [np.where(a == b, 1.0, a / np.where(b == 0, 1e-9, b)) for a, b in pairs]
    return np.asarray(np.median(shares, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="small sizes, one seed")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--brokers", type=int, default=1000, help="of similarity")
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--huge", type=float, default=0.0, help="share of all at one broker")
    parser.add_argument("--peers", type=int, default=10_000, help="largest size of DuckDB")
    parser.add_argument("--tree-brokers", type=int, default=10_000)
    parser.add_argument("--clients", type=int, nargs="+", default=[800, 2400])
    parser.add_argument("--loads", nargs="+", choices=get_args(Load), default=get_args(Load))
    parser.add_argument("--followed", type=int, nargs="*", default=[2, 3, 4], help="markets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="of allocation")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.brokers, options.clients = [2000], 100, [800]
        options.seeds, options.tree_brokers = 1, 1000
    sections = {f.__name__: f for f in (similarity, building, trees, limited, allocation)}
    for name in options.only:
        print(f"\n## {name}\n")
        sections[name](options)


if __name__ == "__main__":
    main()
