"""Groups of a cloud within the tables of its switches: traffic on links over ideal multicast.

    python benchmarks/tables.py [--groups N] [--tenants N] [--entries N,N] [--uniform] [--json F]

The cloud is that of Shahbaz et al. (2019): 27,648 hosts in a fat tree of three tiers, 3,000 tenants
and a million groups; a switch has room for 1,100 of them. Beside the plan stand unicast, and a tree
for each group until tables are full. More numbers of entries give the curve. Seconds are of the
processor, compiling included; the bound is one that no plan within the tables undercuts in which a
group has one tree at most. The whole process runs under a limit of address space (``--gigabytes``).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fanplan.core.stop import never
from fanplan.layers.channels.problem import ROOTS, SwitchProblem
from fanplan.layers.channels.search.least_traffic import least_of_sizes
from fanplan.layers.channels.search.switches import fill_tables, search_switches
from fanplan.layers.channels.search.traffic import (
    Carried,
    Trees,
    net_rows,
    row_links,
    traffic_of,
    tree_switches,
)
from fanplan.network.fabric import make_fabric
from fanplan.workload.generators.cloud import CloudParams, cloud_links, draw_cloud, host_names


def make_problem(params: CloudParams, seed: int) -> SwitchProblem:
    """The cloud of a seed, with tables of no size yet."""
    cloud, links, hosts = draw_cloud(params, seed), cloud_links(params), host_names(params)
    fabric = make_fabric(links["a"].combine_chunks(), links["b"].combine_chunks(), hosts)
    return SwitchProblem(
        fabric,
        cloud.starts,
        cloud.members,
        np.ones(len(cloud.members), np.int32),
        cloud.source,
        np.full(params.groups, params.rate),
        np.zeros(len(fabric.switches), np.int64),
        fabric.roots(ROOTS),
        np.arange(len(hosts), dtype=np.int32),
    )


def with_room(problem: SwitchProblem, entries: int) -> SwitchProblem:
    limit = np.full(len(problem.limit), entries)
    return SwitchProblem(**(vars(problem) | {"limit": limit}))


def measured(problem: SwitchProblem, way: str, trees: Trees, carried: Carried) -> dict[str, Any]:
    """A row of the table; no table may be larger than it is allowed to be."""
    traffic = traffic_of(problem, trees, carried, 0.0)
    held = np.bincount(tree_switches(net_rows(problem), trees)[1], minlength=len(problem.limit))
    if (held > problem.limit).any():
        raise SystemExit(f"{way}: a table holds {held.max()} entries")
    return {
        "entries": int(problem.limit.max()),
        "way": way,
        "over ideal %": 100 * (traffic.planned / traffic.ideal - 1),
        "unicast, over ideal %": 100 * (traffic.unicast / traffic.ideal - 1),
        "channels": len(trees.root),
        "groups on channels %": 100 * float((np.diff(carried.starts) > 0).mean()),
        "channels of a group": len(carried.channels) / problem.size,
        "fullest table": int(held.max()),
        "entries used %": 100 * float(held.sum() / max(problem.limit.sum(), 1)),
    }


def run(params: CloudParams, entries: list[int], seed: int) -> list[dict[str, Any]]:
    clock = Clock()
    problem = make_problem(params, seed)
    switches = len(problem.limit)
    clock.row({"groups": problem.size, "memberships": len(problem.hosts), "switches": switches})
    ideal = float(problem.messages @ row_links(net_rows(problem))[1])
    sizes = [np.full(switches, most) for most in entries]
    for most, least in zip(entries, least_of_sizes(problem, sizes), strict=True):
        over = 100 * (least / ideal - 1)
        clock.row({"entries": most, "way": "no plan is below", "over ideal %": over})
    for most in entries:
        limited = with_room(problem, most)
        ways: dict[str, Callable[[], tuple[Trees, Carried]]] = {
            "tree per group until full": partial(fill_tables, limited, seed),
            "planned": partial(search_switches, limited, limited.size, seed, never),
        }
        for way, plan in ways.items():
            clock.row(measured(limited, way, *plan()))
    return clock.rows


class Clock:
    """Prints each row with the processor seconds since the last one and the memory so far."""

    def __init__(self) -> None:
        self.last, self.rows = time.process_time(), list[dict[str, Any]]()

    def row(self, told: dict[str, Any]) -> None:
        now, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        row = {**told, "cpu s": now - self.last, "gigabytes": peak / 1e6}
        self.last = now
        self.rows.append(row)
        print(", ".join(f"{k} {v:.5g}" if k != "way" else v for k, v in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("groups", "tenants", "pods", "leaves", "hosts"):
        parser.add_argument(f"--{name}", type=int, default=getattr(CloudParams(), name))
    parser.add_argument("--uniform", action="store_true")
    parser.add_argument("--entries", default="1100")
    parser.add_argument("--seed", type=int, default=1001)
    parser.add_argument("--gigabytes", type=int, default=12)
    parser.add_argument("--json", type=Path)
    given = vars(parser.parse_args())
    limit = given.pop("gigabytes") << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    entries = [int(word) for word in given.pop("entries").split(",")]
    seed, file = given.pop("seed"), given.pop("json")
    rows = run(CloudParams(**given), entries, seed)
    if file:
        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
