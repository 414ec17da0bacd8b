"""Groups under churn: what rebuilding costs, and what the root may hold back meanwhile.

    python benchmarks/group_churn.py [--events 4000] [--updates 0.05] [--share 0.2] [--seed 1]

The tree and the cells of Zhang & Hu (2005), section 5.1, zipf-uniform. A match takes 1 ms, a link 1
to 10 ms; an event happens every ms. The best share of the groups by true saving is set up. All runs
have the same events. Every publication is checked to arrive exactly once.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools
from fanplan.layers.groups.params import GroupChoice, Top
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.protocol.churn import groups_churn
from fanplan.layers.groups.protocol.params import HOLD, GroupsChurn
from fanplan.layers.groups.search.choose import choose_groups
from fanplan.network.brokers import Routes
from fanplan.workload.generators.networks import TreeGridParams, draw_tree_grid

COLUMNS = ("in_groups", "matches", "link_messages", "delay_mean_ms", "delay_max_ms", "held")
REBUILDS = ("rebuilds", "rebuild_mean_ms", "groups_built", "groups_kept", "overhead")


def paper_problem(seed: int) -> GroupsProblem:
    params = TreeGridParams(zipf_leaves=1)
    world = draw_tree_grid(params, seed)
    root = np.arange(params.brokers) == 0
    trees = BrokerTrees(np.zeros(1, np.int32), np.where(root, -1, world.parent)[None])
    entry = np.zeros(params.cells, np.int32)
    deliveries = world.messages * np.diff(world.starts)
    routes = Routes(entry, world.starts, world.leaves, world.messages, deliveries)
    return exact_groups(pa.array([f"b{i}" for i in range(params.brokers)]), trees, routes)


def show(name: str, problem: GroupsProblem, churn: GroupsChurn, share: float) -> None:
    def choose(found: GroupsProblem) -> Bools:
        return choose_groups(found, GroupChoice(Top(share))).selected

    begin = time.process_time()
    figures = groups_churn(problem, churn, choose).summary()
    seconds = time.process_time() - begin
    shown = [f"{figures[column]:,.6g}" for column in COLUMNS + REBUILDS]
    more = [f"{figures[column]:,}" for column in ("control_messages", "resent")]
    print(" | ".join([name, *shown, *more, f"{seconds:.1f}"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--updates", type=float, default=0.05)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    problem = paper_problem(given.seed)
    about = {"events": given.events, "updates": given.updates, "seed": given.seed}
    print(" | ".join(["run", *COLUMNS, *REBUILDS, "control", "resent", "seconds"]))
    show("no groups", problem, GroupsChurn(**about), share=0.0)
    for hold in HOLD:
        show(f"hold {hold}", problem, GroupsChurn(**about, hold=hold), given.share)
    show("hold none, loss 5 %", problem, GroupsChurn(**about, hold="none", loss=0.05), given.share)


if __name__ == "__main__":
    main()
