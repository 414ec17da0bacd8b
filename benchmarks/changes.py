"""From one channel plan to another: how many changes, and what it costs at its dearest.

    python benchmarks/changes.py [--flows N] [--users N] [--channels K]

Plans of a generated market by kmodes, by tock with greedy-flow, and by round-robin, each turned
into each other. Beside the order that `fanplan diff` takes stands the plain one: all that is added,
then all that is removed. Seconds are processor seconds; states are those of steps of 500 changes.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import pyarrow as pa

from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_workload
from fanplan.data.interest import InterestProblem
from fanplan.data.reader import Manifest
from fanplan.layers.channels.changes.changes import channel_states
from fanplan.layers.channels.changes.order import ChannelChanges, costed, ordered_changes
from fanplan.layers.channels.changes.world import ChannelWorld, SentByPlan, world_between
from fanplan.layers.channels.check.check import find_service
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap, MapPairs
from fanplan.layers.channels.methods import find_method
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.plain_topics import MarketParams

W = Weights()
METHODS = ("kmodes", "tock+greedy-flow", "round-robin")
STEPS_OF = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"flows": 10_000, "users": 250, "channels": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    generated = load_kind("market").generate(MarketParams(flows=asked.flows, users=asked.users), 0)
    problem = from_workload(generated, "flow")
    maps = {name: planned(problem, name, asked.channels) for name in METHODS}
    costs = {name: cost(analytic_ledger(problem, found), W) for name, found in maps.items()}
    print("| from | to | changes | dearer end | peak | plain peak | order s | check s per state |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for old, new in itertools.permutations(METHODS, 2):
        world = between(problem, maps[old], maps[new])
        print(f"| {old} | {new} |", measured(world, max(costs[old], costs[new])), flush=True)


def planned(problem: InterestProblem, name: str, channels: int) -> ChannelMap:
    method = find_method(*name.split("+", 1))
    return method.planner(problem, method.params(channels=channels), 0, never)


def between(problem: InterestProblem, old: ChannelMap, new: ChannelMap) -> ChannelWorld:
    truth = ChannelTruth(
        Manifest("", problem.seconds, "overlap", "atomic", True, {}),
        pa.table({}),
        pa.array(np.arange(problem.size)).cast(pa.large_string()),
        problem.messages,
        problem.bytes,
        np.arange(problem.size, dtype=np.int32),
        problem.indptr,
        problem.audience,
        problem.subscribers,
        problem.messages * problem.audience_sizes,
    )
    return world_between(truth, sent(problem, old), sent(problem, new), known=True)


def sent(problem: InterestProblem, plan: ChannelMap) -> SentByPlan:
    """Channels that reach everywhere, and nothing past brokers."""

    def relation(pairs: MapPairs, height: int) -> PlanRelation:
        return PlanRelation(pairs.starts(height), pairs.right)

    decisions = Decisions(
        relation(plan.assigned, problem.size),
        relation(plan.members, plan.channels),
        relation(plan.unicast, problem.size),
    )
    return SentByPlan(decisions, ("",) * plan.channels, np.zeros(0, np.int64))


def measured(world: ChannelWorld, dearer: float) -> str:
    began = time.process_time()
    changes = ordered_changes(world, W)
    order = time.process_time() - began
    place = np.lexsort((changes.key, changes.phase))
    by_phase = ChannelChanges(changes.phase[place], changes.key[place], changes.moving[place])
    plain = costed(by_phase, world, W)
    wanted = np.diff(world.truth.audience_starts)
    began, states = time.process_time(), 0
    for state in channel_states(world, changes, np.arange(len(changes)) // STEPS_OF):
        assert (find_service(world.truth, state.decisions()).reached == wanted).all()
        states += 1
    check = (time.process_time() - began) / states
    figures = [f"{x:,.0f}" for x in (len(changes), dearer, changes.cost.max(), plain.cost.max())]
    return " | ".join([*figures, f"{order:.2f}", f"{check:.3f}"]) + " |"


if __name__ == "__main__":
    main()
