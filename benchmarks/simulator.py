"""Events per second of the simulator, against the same model in SimPy.

The workload is that of Tajuddin (2011), section 5.4.2, on a random tree of 450 brokers. SimPy gets
the first publications only, with a process per copy and a resource per broker, as its manual does
it. Seconds are of the processor: other work on the machine counts for neither side.

    python benchmarks/simulator.py [--publications 40000] [--sample 400]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from fanplan.network.generated import broker_routes
from fanplan.simulation.messages import Messages, as_publications
from fanplan.simulation.params import Congestion, SimulationParams
from fanplan.simulation.simulate import run_messages
from fanplan.simulation.spread import RouteTree, RouteVisits, SimulatedNetwork, spread_routes
from fanplan.workload.generators import clients

LATENCY = 100.0
UNIT = 1000.0
CAPACITY = 1000.0
MODELS: tuple[Congestion, ...] = ("none", "rule", "queue")


@dataclass
class Peer:
    """The model in SimPy: same tables of visits, same brokers, same rule."""

    ways: RouteVisits
    congestion: Congestion
    env: simpy.Environment = field(default_factory=simpy.Environment)

    def __post_init__(self) -> None:
        self.visits = self.ways.visits.tolist()
        size = int(self.ways.visits["broker"].max()) + 1
        self.servers = [simpy.Resource(self.env) for _ in range(size)]
        self.processed, self.load, self.window, self.held = ([0] * size for _ in range(4))
        self.delays: list[float] = []

    def run(self, messages: Messages) -> float:
        """Processor seconds of a run."""
        self.env.process(self.enter(messages))
        begin = time.process_time()
        self.env.run()
        return time.process_time() - begin

    def enter(self, messages: Messages) -> Generator[Any, Any, None]:
        for born, route in zip(messages.time_ms.tolist(), messages.route.tolist(), strict=True):
            yield self.env.timeout(born - self.env.now)
            self.env.process(self.copy(int(self.ways.starts[route]), born, 0.0))

    def copy(self, hop: int, born: float, delay: float) -> Generator[Any, Any, None]:
        """A copy on its way to a broker, and what the broker does with it."""
        yield self.env.timeout(delay)
        first, broker, _, copies, arrives, _ = self.visits[hop]
        self.count_load(broker)
        if self.congestion == "queue":
            with self.servers[broker].request() as turn:
                yield turn
                yield self.env.timeout(UNIT / CAPACITY)
        self.processed[broker] += 1
        if arrives:
            self.delays.append(self.env.now - born)
        held = 0
        if copies and self.congestion == "rule":
            held, self.held[broker] = self.held[broker], 0
        for child in range(first, first + copies):
            self.env.process(self.copy(child, born, held + LATENCY))

    def count_load(self, broker: int) -> None:
        window = int(self.env.now // UNIT)
        if window != self.window[broker]:
            last = self.load[broker] if window == self.window[broker] + 1 else 0
            self.held[broker] = max(0, last - int(CAPACITY))
            self.window[broker], self.load[broker] = window, 0
        self.load[broker] += 1


def workload(count: int) -> tuple[SimulatedNetwork, RouteVisits, Messages]:
    """The thesis' brokers, a random tree, and publications on it."""
    population = clients.populate_brokers(clients.BrokersParams(), 1)
    sent = clients.publications_by_rate(population, count, 1)
    routes, route = broker_routes(population, sent)
    rng = np.random.default_rng(1)
    size = len(population.brokers)
    links = np.array([(rng.integers(i), i) for i in range(1, size)], np.int32)
    network = SimulatedNetwork(size, links, np.full(size - 1, LATENCY), np.zeros(size - 1))
    ways = spread_routes(network, routes, [RouteTree(np.arange(size - 1))])
    return network, ways, as_publications(1000.0 * sent.time, route)


def sampled(ways: RouteVisits, messages: Messages, count: int) -> tuple[RouteVisits, Messages]:
    """The first publications, with a route each: SimPy gets no longer lists than it needs."""
    parts = [
        ways.visits[ways.starts[r] : ways.starts[r + 1]].copy() for r in messages.route[:count]
    ]
    starts = np.cumsum([0, *map(len, parts)])
    for part, start, route in zip(parts, starts, messages.route, strict=False):
        part["first"] += start - ways.starts[route]
    return RouteVisits(starts, np.concatenate(parts)), as_publications(
        messages.time_ms[:count], np.arange(count)
    )


def compare(network: SimulatedNetwork, ways: RouteVisits, messages: Messages, sample: int) -> None:
    """One line per model: both rates and their ratio, after a check that both do the same."""
    capacity = np.full(network.brokers, CAPACITY)
    for congestion in MODELS:
        params = SimulationParams(congestion, latency_ms=LATENCY)
        some, few = sampled(ways, messages, sample)
        peer = Peer(some, congestion)
        peer_seconds = peer.run(few)
        same = run_messages(network, some, capacity, few, params)
        assert same.processed.tolist() == peer.processed
        assert abs(same.delay_mean_ms / np.mean(peer.delays) - 1) < 0.01
        begin = time.process_time()
        result = run_messages(network, ways, capacity, messages, params)
        seconds = time.process_time() - begin
        rate, peer_rate = result.events / seconds, same.events / peer_seconds
        print(
            f"| {congestion} | {result.events:,} | {seconds:.1f} | {rate / 1e6:.2f} "
            f"| {peer_rate / 1e6:.4f} | {rate / peer_rate:.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--publications", type=int, default=40_000)
    parser.add_argument("--sample", type=int, default=400, help="publications for SimPy")
    chosen = parser.parse_args()
    network, ways, messages = workload(chosen.publications)
    print("| congestion | events | seconds | M events/s | SimPy, M events/s | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    compare(network, ways, messages, chosen.sample)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of the process, tables and all: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
