"""Meshes of subscribers, each topic connected: ours beside what was published, in one run.

    python benchmarks/topics.py [--quick] [--sizes 1000x100 10000x1000] [--scan 300x50]

Every node wants 10 to 90 topics, as in the papers; topics are equally popular, or by Zipf. Peers:
greedy merge as it was published (Chockler et al. 2007), which scans all pairs before each link, at
the smallest size; with a matrix of gains that every link brings up to date, as Chen et al. made it
quick, up to 2,000 nodes; flat (Onus and Richa 2009); and a row for each topic. Times are processor
seconds.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import never
from fanplan.layers.mesh.bound import mesh_bound
from fanplan.layers.mesh.problem import Wants, wants_of
from fanplan.layers.mesh.published.merge import (
    Parts,
    apart,
    degrees_of,
    flat_merge,
    gain_of,
    greedy_merge,
    link,
)
from fanplan.layers.mesh.search.mesh import lowest_degree, separate_trees
from fanplan.layers.mesh.search.spare import without_spare

WANTED = (10, 90)
"""Topics that a node wants, fewest and most."""
MATRIX_MOST = 2000
"""Nodes whose pairs are kept in a matrix by the peer."""
FLAT_MOST = 3000
"""Nodes for which the lowest degree is searched for."""


def drawn_wants(nodes: int, topics: int, skew: float, seed: int) -> Wants:
    """Each node wants some topics, without repetition, by weights 1 / rank ** skew."""
    random = np.random.default_rng(seed)
    weight = -skew * np.log(np.arange(1, topics + 1))
    most = min(WANTED[1], topics)
    found = []
    for node in range(nodes):
        count = int(random.integers(min(WANTED[0], most), most + 1))
        # The largest of weights with Gumbel noise are a draw without repetition.
        topic = np.argsort(-(weight + random.gumbel(size=topics)))[:count]
        found.append(np.stack((topic, np.full(count, node))))
    topic, node = np.concatenate(found, axis=1)
    return wants_of(topic, node, topics, nodes)


@compiled
def scanning_merge(wants: Wants, parts: Parts) -> Longs:
    """Greedy merge as published: all pairs are looked at before each link."""
    nodes, count = len(parts.degree), 0
    links = np.empty(len(wants.node), np.int64)
    while True:
        best, most = 0, 0
        for u in range(nodes):
            for v in range(u + 1, nodes):
                gain = gain_of(wants, parts, u, v)
                if gain > most:
                    best, most = u * nodes + v, gain
        if most == 0:
            return links[:count]
        links[count] = best
        count += 1
        link(wants, parts, best // nodes, best % nodes)


@compiled
def matrix_merge(wants: Wants, parts: Parts) -> Longs:
    """Greedy merge with the gains of all pairs; joining two parts lowers those across them."""
    nodes, count = len(parts.degree), 0
    gains = np.zeros((nodes, nodes), np.int16)
    for topic in range(len(wants.first) - 1):
        for i in range(wants.first[topic], wants.first[topic + 1]):
            for j in range(i + 1, wants.first[topic + 1]):
                gains[wants.node[i], wants.node[j]] += 1
    top = np.empty(nodes, np.int64)
    for u in range(nodes):
        top[u] = np.argmax(gains[u])
    links = np.empty(len(wants.node), np.int64)
    while True:
        u = 0
        for other in range(nodes):
            if gains[other, top[other]] > gains[u, top[u]]:
                u = other
        v = top[u]
        if gains[u, v] == 0:
            return links[:count]
        links[count] = u * nodes + v
        count += 1
        for k in range(wants.at[u], wants.at[u + 1]):
            lower_gains(wants, parts, wants.seat[k], v, wants.topic[k], gains, top)
        link(wants, parts, u, v)


@compiled
def lower_gains(
    wants: Wants, parts: Parts, seat: int, node: int, topic: int, gains: np.ndarray, top: Longs
) -> None:
    """In a topic, pairs across the parts of a seat and of a node gain one less."""
    first, last = wants.first[topic], wants.first[topic + 1]
    other = first + np.searchsorted(wants.node[first:last], node)
    if other == last or wants.node[other] != node or parts.part[other] == parts.part[seat]:
        return
    a = seat
    while True:
        b = other
        while True:
            u, v = min(wants.node[a], wants.node[b]), max(wants.node[a], wants.node[b])
            gains[u, v] -= 1
            if top[u] == v:
                top[u] = np.argmax(gains[u])
            b = parts.after[b]
            if b == other:
                break
        a = parts.after[a]
        if a == seat:
            return


class Measured(NamedTuple):
    """Links, and processor seconds to find them."""

    links: Longs
    seconds: float


def measured(title: str, work: Callable[[], Longs], nodes: int, before: float = 0.0) -> Measured:
    """Do the work and print a line of it; ``before`` are seconds that it goes on from."""
    start = time.process_time()
    links = work()
    seconds = time.process_time() - start + before
    told = f"{len(links):,} | {2 * len(links) / nodes:.3f} | {degrees_of(links, nodes).max()}"
    print(f"| {title} | {told} | {seconds:.2f} |", flush=True)
    return Measured(links, seconds)


def goal(what: str, ratio: float, wanted: float) -> None:
    met = "met" if ratio <= wanted else "NOT met"
    print(f"  Goal: {what} at most {wanted}: {ratio:.4f}, {met}", flush=True)


def compare(nodes: int, topics: int, skew: float, scanned: bool) -> None:
    wants = drawn_wants(nodes, topics, skew, 0)
    title = f"{nodes:,} × {topics:,} | {'Zipf' if skew else 'uniform'}"

    def run(name: str, work: Callable[[], Longs], before: float = 0.0) -> Measured:
        return measured(f"{title} | {name}", work, nodes, before)

    run("a row for each topic", lambda: separate_trees(wants))
    peers: dict[str, Measured] = {}
    if scanned:
        peers["as published"] = run(
            "greedy, as published", lambda: scanning_merge(wants, apart(wants))
        )
    if nodes <= MATRIX_MOST:
        peers["matrix"] = run("greedy, matrix", lambda: matrix_merge(wants, apart(wants)))
    greedy = run("greedy", lambda: greedy_merge(wants, 0, never))
    # What `fewest_links` does, without merging a second time.
    ours = run("best", lambda: without_spare(wants, greedy.links), greedy.seconds)
    if nodes <= FLAT_MOST:
        run("flat", lambda: flat_merge(wants, 0, never))
        run("best, lowest degree", lambda: lowest_degree(wants, 0, never))
    start = time.process_time()
    bound = mesh_bound(wants)
    print(
        f"| {title} | bound | {bound.links:,} | {2 * bound.links / nodes:.3f} | {bound.degree} | "
        f"{time.process_time() - start:.2f} |"
    )
    for name, peer in {"greedy": greedy, **peers}.items():
        goal(f"average degree over {name}", len(ours.links) / len(peer.links), 1.01)
        print(f"  {name} takes {peer.seconds / max(ours.seconds, 1e-3):.1f} times as long as ours")
    if nodes >= 10_000:
        goal("minutes", ours.seconds / 60, 5.0)


def warm_up() -> None:
    """Compile everything."""
    wants = drawn_wants(20, 12, 0.0, 1)
    work: list[Callable[[], Any]] = [
        lambda: scanning_merge(wants, apart(wants)),
        lambda: matrix_merge(wants, apart(wants)),
        lambda: lowest_degree(wants, 0, never),
        lambda: mesh_bound(wants),
    ]
    for each in work:
        each()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--scan", default="300x50", help="size that is also scanned as published")
    parser.add_argument("--sizes", nargs="+", default=["1000x100", "10000x1000"])
    options = parser.parse_args()
    sizes = ["200x30"] if options.quick else [options.scan, *options.sizes]
    warm_up()
    print("| nodes × topics | popularity | method | links | mean degree | most | processor s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        nodes, topics = map(int, size.split("x"))
        for skew in (0.0, 1.0):
            compare(nodes, topics, skew, scanned=size == sizes[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nPeak memory {peak / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
