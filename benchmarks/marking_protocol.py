"""The marking protocol: messages for an event and descriptors stored, against PubE and SubE.

    python benchmarks/marking_protocol.py [--networks N] [--events N] [--loss P] [--restarts R]
                                          [--hold MS] [--seed S]

Networks are transit-stub as in section 4.1 of Ge et al. (2002): 100 nodes, 10 publishers, 10
subscribers. The core of the shared tree is the first transit node. Figures are means over networks,
for an event; stored descriptors are means over all rests.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.layers.marking.protocol.churn import MarkingChurn, marking_churn
from fanplan.layers.marking.protocol.messages import MESSAGES
from fanplan.network.brokers import Links
from fanplan.workload.generators.networks import TransitStubParams, draw_transit_stub

FIGURES = (
    *("messages_per_event", "stored_mean", "stored_peak", "stored_node_peak"),
    *("converged_ms_mean", "converged_ms_max", "elections", "parts", "part_links_mean"),
    "wrong_rests",
)


def stub_network(seed: int) -> MarkedNetwork:
    world = draw_transit_stub(TransitStubParams(), seed)
    ones = np.ones(len(world.a))
    links = Links(world.a, world.b, world.latency_ms, ones * np.inf, ones)
    return MarkedNetwork(world.nodes, world.published, world.subscribed, links)


def simulated(trees: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The schemes of each network."""
    runs = []
    for seed in range(options.seed, options.seed + options.networks):
        churn = MarkingChurn(
            options.events, seed, options.loss, options.restarts, trees, hold_ms=options.hold
        )
        runs.append(marking_churn(stub_network(seed), churn).summary()["schemes"])
    return runs


def show(trees: str, runs: list[dict[str, Any]]) -> None:
    schemes = list(runs[0])
    print(f"\n{trees:<20}" + "".join(f"{scheme:>16}" for scheme in schemes))
    for kind in MESSAGES:
        values = [
            np.mean([run[s]["by_kind_per_event"].get(kind, 0) for run in runs]) for s in schemes
        ]
        if any(values):
            print(f"{kind:<20}" + "".join(f"{value:16.2f}" for value in values))
    for figure in FIGURES:
        values = [np.mean([run[scheme][figure] for run in runs]) for scheme in schemes]
        print(f"{figure:<20}" + "".join(f"{value:16.2f}" for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--hold", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for trees in ("shared:t0", "per-source"):
        start = time.process_time()
        runs = simulated(trees, options)
        show(trees, runs)
        print(f"processor seconds   {time.process_time() - start:16.1f}")


if __name__ == "__main__":
    main()
