"""Markings: the exact one against the paper's algorithm and against networkx, on growing networks.

    python benchmarks/marking.py [--quick] [--sides 10 …] [--domains 1 …] [--peers MOST]
                                 [--publishers N] [--seed S]

A network is a square mesh with random latencies, so that paths disagree a lot, and every second
node subscribes; or a transit-stub network as in section 4.1 of Ge et al. (2002), where they hardly
do. Each publisher has a tree of shortest paths. Processor seconds, of one run after a warm-up.
Then descriptors are merged: random regions at the nodes of transit-stub networks, some of which
cover others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import networkx
import numpy as np

from fanplan.core.arrays import Bools, Longs
from fanplan.layers.marking.ledger import (
    DescriptorCounts,
    cost_of_marks,
    descriptor_counts,
    pub_everywhere,
    sub_everywhere,
    violations,
)
from fanplan.layers.marking.merged import merged_counts
from fanplan.layers.marking.problem.covers import BothCovers, Covers, covering_nodes, uncovered
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.problem.trees import source_problem
from fanplan.layers.marking.published import repaired_marking
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.marking import Marking, exact_marking, whole_gains
from fanplan.layers.marking.search.requirements import requirements_of
from fanplan.network.brokers import Links
from fanplan.workload.generators.draws import names
from fanplan.workload.generators.networks import TransitStubParams, draw_pareto, draw_transit_stub

SIDES = (10, 20, 50, 100, 250, 720)
"""Nodes on a side. A mesh of 720 has a million directed links in trees."""
DOMAINS = (1, 2, 12, 77, 641)
"""Transit domains, of 808 nodes each."""
QUICK = {"sides": (10, 20, 50, 100), "domains": (1, 2, 12)}
PEERS = {"Figure 6, repaired": 3_000, "networkx": 30_000}
"""The most links that a peer is asked for: beyond, it takes minutes."""


def mesh(side: int, publishers: int, seed: int) -> MarkedNetwork:
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    a = np.concatenate((at[:, :-1].ravel(), at[:-1].ravel()))
    b = np.concatenate((at[:, 1:].ravel(), at[1:].ravel()))
    published, subscribed = np.zeros((2, side * side), np.int64)
    for counts, many in ((published, publishers), (subscribed, side * side // 2)):
        chosen = rng.choice(side * side, many, replace=False)
        counts[chosen] = draw_pareto(TransitStubParams(), rng, many)
    latency = rng.uniform(0.5, 1.5, len(a))
    links = links_of(a, b, latency)
    return MarkedNetwork(names("n", side * side), published, subscribed, links)


def transit_stub(domains: int, publishers: int, seed: int) -> MarkedNetwork:
    """Domains of 8 transit nodes, 10 stubs of 10 nodes at each; half of those subscribe."""
    sizes = {"domains": domains, "transit": 8, "stubs": 10, "stub_nodes": 10}
    many = {"publishers": publishers, "subscribers": domains * 8 * 50}
    world = draw_transit_stub(TransitStubParams(**sizes, **many), seed)
    links = links_of(world.a, world.b, world.latency_ms)
    return MarkedNetwork(world.nodes, world.published, world.subscribed, links)


def links_of(a: np.ndarray, b: np.ndarray, latency: np.ndarray) -> Links:
    ones = np.ones(len(a))
    return Links(a.astype(np.int32), b.astype(np.int32), latency, ones * np.inf, ones)


def whole_marking(problem: MarkingProblem) -> Bools:
    """The exact marking by one minimum cut of everything."""
    relation = requirements_of(problem)
    gain = whole_gains(problem, descriptor_counts(problem))
    return ~largest_closure(relation, gain, np.array([0, relation.size]))


def with_networkx(problem: MarkingProblem) -> Bools:
    """One minimum cut of the same closure graph; of several it may find another one."""
    relation, gain = requirements_of(problem), whole_gains(problem, descriptor_counts(problem))
    graph = networkx.DiGraph()
    graph.add_nodes_from((*range(len(gain)), "source", "sink"))
    graph.add_edges_from(zip(relation.owners.tolist(), relation.items.tolist(), strict=True))
    for link, value in enumerate(gain.tolist()):
        if value > 0:
            graph.add_edge("source", link, capacity=value)
        elif value < 0:
            graph.add_edge(link, "sink", capacity=-value)
    kept = networkx.minimum_cut(graph, "source", "sink")[1][0]
    return np.array([link not in kept for link in range(len(gain))])


def processor(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    before = time.process_time()
    result = work(*given)
    return result, time.process_time() - before


def measure(
    problem: MarkingProblem, most: dict[str, int], taken: dict[str, float]
) -> dict[str, float]:
    """Seconds of each method; all must cost the same."""
    costs, counting = processor(descriptor_counts, problem)
    best, seconds = processor(exact_marking, problem)
    taken |= {"σ, τ": counting, "exact": seconds}
    rivals: dict[str, Callable[[MarkingProblem], Bools]] = {
        "in one piece": whole_marking,
        "Figure 6, repaired": repaired_marking,
        "networkx": with_networkx,
    }
    for name, marking in rivals.items():
        if problem.size <= most.get(name, problem.size):
            publish, taken[name] = processor(marking, problem)
            assert np.where(publish, *costs).sum() == best.cost
            assert not violations(problem, publish).size
    show(problem, best, costs, taken)
    return taken


def show(
    problem: MarkingProblem, best: Marking, counts: DescriptorCounts, taken: dict[str, float]
) -> None:
    facts = f"{problem.size:>9,} {len(problem.trees.link):>11,} {(best.part >= 0).sum():>9,}"  # type: ignore[union-attr]
    shares = [best.cost / all_(problem, counts) for all_ in (pub_everywhere, sub_everywhere)]
    times = [f"{taken[name]:.3f}" if name in taken else "" for name in COLUMNS]
    per_link = f"{taken['exact'] / problem.size * 1e6:.2f}"
    print(facts, *(f"{share:>6.3f}" for share in shares), *(f"{t:>9}" for t in times), per_link)


COLUMNS = ("trees", "σ, τ", "exact", "in one piece", "Figure 6, repaired", "networkx")


def run(
    name: str, make: Callable[..., MarkedNetwork], sizes: Sequence[int], args: argparse.Namespace
) -> None:
    print(f"\n{name}, {args.publishers} publishers; processor seconds")
    print(f"{'links':>9} {'entries':>11} {'entangled':>9}", "/ PubE", "/ SubE", end=" ")
    print("    trees      σ, τ     exact one piece  Figure 6  networkx µs/link")
    most = {peer: min(limit, args.peers) for peer, limit in PEERS.items()}
    for size in sizes:
        network = make(size, args.publishers, args.seed)
        problem, building = processor(source_problem, network)
        taken = measure(problem, most, {"trees": building})
        ratios = [f"{peer} {taken[peer] / taken['exact']:,.0f}" for peer in PEERS if peer in taken]
        if ratios:
            print("          times the exact:", ", ".join(ratios))


def covers_of(nodes: Longs, counts: Longs, topics: int, rng: np.random.Generator) -> Covers:
    """Random squares at nodes, a few of them large, and who covers whom, as on Spark."""
    node = np.repeat(nodes, counts[nodes])
    topic = rng.integers(0, topics, len(node))
    lo = rng.random((len(node), 2))
    hi = lo + rng.pareto(1.5, (len(node), 1)) * 0.05
    kept = uncovered(topic * len(counts) + node, lo, hi)
    counts[:] = np.bincount(node[kept], minlength=len(counts))
    found = covering_nodes(topic[kept], node[kept], lo[kept], hi[kept], 10**9)
    assert found is not None
    some = np.diff(found[0]) > 0
    ends = np.concatenate(([0], found[0][1:][some]))
    return Covers(node[kept][some], np.ones(some.sum(), np.int64), ends, found[1])


def merging(args: argparse.Namespace) -> None:
    """Costs and times with merging, beside those without."""
    print("\ntransit-stub, merged; processor seconds")
    print("    links   regions     pairs  covering   merging   solving  / plain  / PubE  / SubE")
    merged_row(1, args)  # compiles
    for domains in args.domains:
        print(merged_row(domains, args))


def merged_row(domains: int, args: argparse.Namespace) -> str:
    network, rng = transit_stub(domains, args.publishers, args.seed), np.random.default_rng(0)
    roles = network.published, network.subscribed
    wanted = [(np.flatnonzero(many), many, 20 * domains, rng) for many in roles]
    found, covering = processor(lambda: BothCovers(*(covers_of(*one) for one in wanted)))
    problem = source_problem(network)
    counts, merging_ = processor(merged_counts, problem, found)
    best, solving = processor(exact_marking, problem, counts)
    plain = cost_of_marks(problem, counts, exact_marking(problem).publish)
    others = plain, pub_everywhere(problem, counts), sub_everywhere(problem, counts)
    sizes = problem.size, sum(map(np.sum, roles)), sum(len(one.nodes) for one in found)
    told = [f"{size:>9,}" for size in sizes]
    told += [f"{seconds:>9.3f}" for seconds in (covering, merging_, solving)]
    return " ".join(told + [f"{best.cost / other:>8.3f}" for other in others])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--sides", type=int, nargs="+", default=SIDES)
    parser.add_argument("--domains", type=int, nargs="+", default=DOMAINS)
    parser.add_argument("--publishers", type=int, default=10)
    parser.add_argument("--peers", type=int, default=max(PEERS.values()))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        vars(args).update(QUICK)
    exact_marking(source_problem(mesh(4, 2, 0)))  # compiles
    repaired_marking(source_problem(mesh(4, 2, 0)))
    run("mesh", mesh, args.sides, args)
    run("transit-stub", transit_stub, args.domains, args)
    merging(args)


if __name__ == "__main__":
    main()
