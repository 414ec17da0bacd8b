"""Channels within the tables of switches: against all plans of tiny networks, and by command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cloud_worlds import write_cloud_dataset
from forging import forge, forge_rows

import fanplan
from fanplan.core.errors import InputError
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.layers.channels.check.switches import proved_traffic
from fanplan.layers.channels.problem import SwitchProblem, switch_problem
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.search.crowded import with_crowded_hosts
from fanplan.layers.channels.search.in_tables import channels_in_tables
from fanplan.layers.channels.search.least_traffic import least_traffic
from fanplan.layers.channels.search.switches import fill_tables, search_switches
from fanplan.layers.channels.search.traffic import Carried, Trees, table_rows, traffic_of
from fanplan.layers.channels.show import BESIDE_TABLES, show_channels
from fanplan.layers.registry import load_plan
from fanplan.network.fabric import Fabric, make_fabric
from fanplan.plan.made import Answer, Note
from fanplan.verbs.check import check_plan
from fanplan.workload.generators.cloud import CloudParams, cloud_links, draw_cloud, host_names

FLOWS = 4


def tiny_network(random: np.random.Generator) -> Fabric:
    """Four switches in a random tree with a link more, five hosts at two to four of them."""
    links = [(f"s{i}", f"s{random.integers(i)}") for i in range(1, 4)]
    high, low = sorted(random.choice(4, 2, replace=False).tolist(), reverse=True)
    links = sorted({*links, (f"s{high}", f"s{low}")})
    most = random.integers(2, 5)
    links += [(f"h{i}", f"s{random.integers(most)}") for i in range(5)]
    a, b = (pa.array(end) for end in zip(*links, strict=True))
    return make_fabric(a, b, pa.array([f"h{i}" for i in range(5)]))


def tiny_problem(seed: int) -> SwitchProblem:
    random = np.random.default_rng([31, seed])
    fabric = tiny_network(random)
    wanted = random.random((FLOWS, 7)) < random.uniform(0.3, 0.8)
    wanted[np.arange(FLOWS), random.integers(0, 7, FLOWS)] = True
    row, user = np.nonzero(wanted)
    names = [f"u{i}" for i in range(7)]
    interest = from_pairs(row, user, random.integers(1, 20, FLOWS), names=names, kind="flow")
    home = np.append(np.arange(5), random.integers(0, 5, 2)).astype(np.int32)
    source = random.integers(0, 5, FLOWS).astype(np.int32)
    limit = random.integers(0, 3, len(fabric.switches))
    return switch_problem(fabric, interest, home, source, limit)


def audience(problem: SwitchProblem, row: int) -> dict[int, int]:
    part = slice(problem.starts[row], problem.starts[row + 1])
    return dict(zip(problem.hosts[part].tolist(), problem.copies[part].tolist(), strict=True))


def between(problem: SwitchProblem, a: int, b: int) -> int:
    at = problem.fabric.at
    return 0 if a == b else 2 + int(problem.fabric.depth[at[a], at[b]])


def tree_of(problem: SwitchProblem, root: int, hosts: tuple[int, ...]) -> frozenset[int]:
    """All paths to the root, but for what they have in common beyond the first switch."""
    paths = []
    for host in hosts:
        path = [int(problem.fabric.at[host])]
        while path[-1] != root:
            path.append(int(problem.fabric.parent[root, path[-1]]))
        paths.append(path)
    common = set.intersection(*map(set, paths))
    first = next(node for node in paths[0] if node in common)
    return frozenset(node for path in paths for node in path[: path.index(first) + 1])


Channel = tuple[tuple[int, ...], frozenset[int]]
"""Hosts, and the switches of the tree."""


def links_of(problem: SwitchProblem, row: int, channels: Sequence[Channel]) -> int:
    """Links that a message of a row crosses on some channels, with unicast to all others."""
    source, total = int(problem.source[row]), 0
    for hosts, switches in channels:
        total += len(hosts) + len(switches) - 1
        if source not in hosts:
            near = problem.fabric.depth[problem.fabric.at[source], list(switches)].min()
            total += 1 + int(near)
    reached = {host for hosts, _ in channels for host in hosts}
    for host, copies in audience(problem, row).items():
        total += 0 if host in reached else copies * between(problem, source, host)
    return total


def alone(problem: SwitchProblem, row: int) -> float:
    return float(problem.messages[row]) * links_of(problem, row, ())


def all_channels(problem: SwitchProblem) -> list[Channel]:
    """Every channel that somebody may want and that tables have room for."""
    hosts = sorted({host for row in range(FLOWS) for host in audience(problem, row)})
    found = {
        (members, tree_of(problem, root, members))
        for size in range(2, len(hosts) + 1)
        for members, root in product(combinations(hosts, size), problem.roots.tolist())
    }
    return sorted(
        (one for one in found if all(problem.limit[s] > 0 for s in one[1])),
        key=lambda one: (one[0], sorted(one[1])),
    )


def optimum(problem: SwitchProblem) -> float:
    """The least traffic of all plans, looked at one by one: rows have one channel at several
    switches at most, and any number at single ones."""
    channels = all_channels(problem)

    @cache
    def row_cost(row: int, chosen: tuple[int, ...]) -> float:
        links = links_of(problem, row, [channels[j] for j in chosen])
        best = float(problem.messages[row]) * links
        if sum(len(channels[j][1]) > 1 for j in chosen) > 1:
            best = np.inf
        less = [row_cost(row, (*chosen[:i], *chosen[i + 1 :])) for i in range(len(chosen))]
        return min([best, *less])

    def grown(first: int, chosen: tuple[int, ...], left: list[int]) -> float:
        best, full = np.inf, True
        for j in range(first, len(channels)):
            if all(left[s] > 0 for s in channels[j][1]):
                less = [room - (s in channels[j][1]) for s, room in enumerate(left)]
                best, full = min(best, grown(j + 1, (*chosen, j), less)), False
        if full:
            best = sum(row_cost(row, chosen) for row in range(FLOWS))
        return best

    return grown(0, (), problem.limit.tolist())


def entries(problem: SwitchProblem, trees: Trees) -> np.ndarray:
    channel, switch, _ = table_rows(problem, trees)
    pairs = np.unique(np.stack((switch, channel)), axis=1)
    return np.bincount(pairs[0], minlength=len(problem.limit))


def recounted(problem: SwitchProblem, trees: Trees, carried: Carried) -> float:
    total = 0.0
    for row in range(problem.size):
        channels = []
        for j in carried.channels[carried.starts[row] : carried.starts[row + 1]]:
            hosts = tuple(trees.hosts[trees.starts[j] : trees.starts[j + 1]].tolist())
            channels.append((hosts, tree_of(problem, int(trees.root[j]), hosts)))
        assert sum(len(tree) > 1 for _, tree in channels) <= 1
        twice = Counter(host for hosts, _ in channels for host in hosts)
        assert all(twice[h] < 2 for h in audience(problem, row) if h != problem.source[row])
        total += float(problem.messages[row]) * links_of(problem, row, channels)
    return total


def test_tiny_networks_are_planned_within_their_tables_and_near_the_optimum() -> None:
    met, excess = 0, []
    for seed in range(24):
        problem = tiny_problem(seed)
        trees, carried = search_switches(problem, 9, seed, never)
        traffic = traffic_of(problem, trees, carried, least_traffic(problem))
        best = optimum(problem)
        assert (entries(problem, trees) <= problem.limit).all()
        assert (np.diff(trees.starts) >= 2).all()
        assert traffic.planned == pytest.approx(recounted(problem, trees, carried))
        assert traffic.unicast == sum(alone(problem, row) for row in range(FLOWS))
        assert traffic.bound <= best + 1e-9 <= traffic.planned + 1e-6
        assert traffic.planned <= traffic.unicast
        met += bool(traffic.planned <= best + 1e-6)
        excess.append(traffic.planned / best - 1 if best else 0.0)
    assert met >= 16, excess
    assert np.mean(excess) < 0.03, excess


def test_the_bound_is_proved_and_says_more_where_rows_are_far_from_each_other() -> None:
    for seed in range(24):
        problem = tiny_problem(seed)
        assert least_traffic(problem) == pytest.approx(proved_traffic(problem))
    params = CloudParams(pods=2, leaves=6, hosts=8, planes=2, cores=1, tenants=6, groups=400)
    cloud, links, hosts = draw_cloud(params, 3), cloud_links(params), host_names(params)
    fabric = make_fabric(links["a"].combine_chunks(), links["b"].combine_chunks(), hosts)
    group = np.repeat(np.arange(params.groups), np.diff(cloud.starts))
    interest = from_pairs(group, cloud.members, np.ones(params.groups), kind="flow")
    least, several = [], []
    for entries in (0, 8, 1000):
        limit = np.full(len(fabric.switches), entries)
        home = np.arange(len(hosts), dtype=np.int32)
        problem = switch_problem(fabric, interest, home, cloud.source, limit)
        trees, carried = search_switches(problem, params.groups, 1, never)
        bound = least_traffic(problem)
        traffic = traffic_of(problem, trees, carried, bound)
        assert bound == pytest.approx(proved_traffic(problem))
        assert bound <= traffic.planned
        assert traffic.planned == pytest.approx(recounted(problem, trees, carried))
        least.append(bound / traffic.ideal)
        several.append(bool((np.diff(carried.starts) > 1).any()))
    assert least[0] > 1.05 * least[2]
    assert least[0] > least[1] > least[2]
    assert least[2] <= 1.0 + 1e-9
    assert several == [False, True, False]


def test_rows_that_come_first_fill_the_tables_and_no_more() -> None:
    for seed in range(20):
        problem = tiny_problem(seed)
        trees, carried = fill_tables(problem, seed)
        assert (entries(problem, trees) <= problem.limit).all()
        assert traffic_of(problem, trees, carried, least_traffic(problem)).planned == pytest.approx(
            recounted(problem, trees, carried)
        )


def test_a_host_with_several_subscribers_gets_one_copy_if_a_table_has_room() -> None:
    """All of them were served one by one, as trees and sets have two hosts at least."""
    links = [("h0", "s"), ("h1", "s"), ("h2", "s")]
    a, b = (pa.array(end) for end in zip(*links, strict=True))
    fabric = make_fabric(a, b, pa.array(["h0", "h1", "h2"]))
    # Three at h1 want the first flow, two the second; two at h2 want the third.
    row, user = [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 3, 4]
    interest = from_pairs(row, user, [10, 5, 1], names=list("abcde"), kind="flow")
    home, source = np.array([1, 1, 1, 2, 2], np.int32), np.zeros(3, np.int32)
    planned = []
    for entries in range(3):
        problem = switch_problem(fabric, interest, home, source, np.array([entries]))
        map, tables = channels_in_tables(problem, interest, 9, 1, never)
        assert tables.traffic["bound"] == pytest.approx(proved_traffic(problem))
        planned.append(tables.traffic["planned"])
        assert map.channels == entries
    assert planned == [84.0, 34.0, 32.0]


def test_channels_of_single_hosts_keep_tables_and_lower_traffic() -> None:
    fewer = 0
    for seed in range(24):
        problem = tiny_problem(seed)
        before = search_switches(problem, 9, seed, never)
        trees, carried = with_crowded_hosts(problem, *before, 9)
        bound = least_traffic(problem)
        planned = traffic_of(problem, trees, carried, bound).planned
        assert (entries(problem, trees) <= problem.limit).all()
        assert len(trees.root) <= 9
        assert bound <= planned <= traffic_of(problem, *before, bound).planned
        assert planned == pytest.approx(recounted(problem, trees, carried))
        fewer += planned < traffic_of(problem, *before, bound).planned
    assert fewer


def test_who_sees_cheaper_methods_beside_it_is_told_that_they_know_no_tables() -> None:
    row = {"method": "m", "cost": 1.0, "excess_percent": 0.0, "unicast_fraction": 0.0, "seconds": 1}
    for further in ({}, {"link_traffic": 5.0}):
        parts = list(show_channels(Answer(row | further, [row], {}, [])))
        assert (Note(BESIDE_TABLES) in parts) == bool(further)


# ---- by command

HERE = fanplan.Engine("local[2]")
ENTRIES = 10


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cloud_dataset(tmp_path_factory.mktemp("cloud") / "dataset")


@pytest.fixture
def plan(dataset: Path, tmp_path: Path) -> Path:
    made = fanplan.channels(dataset, 500, max_switch_entries=ENTRIES, engine=HERE)
    return made.save(tmp_path / "plan")


def test_a_plan_within_tables_passes_its_check_and_says_what_crosses_links(
    plan: Path, dataset: Path
) -> None:
    assert check_plan(plan, dataset).ok
    told = load_plan(plan).section(ChannelsRecord).traffic
    assert told is not None
    assert told["bound"] <= told["planned"] < told["unicast"]
    table = pq.read_table(plan / "switch_entries.parquet")
    held = Counter(switch for switch, _ in set(zip(*map(column, table.columns[:2]), strict=True)))
    assert max(held.values()) == ENTRIES


def column(values: pa.ChunkedArray) -> list[Any]:
    result: list[Any] = values.to_pylist()
    return result


def test_tables_may_differ_by_switch(dataset: Path, tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("switch,entries\nleaf00-00,0\nspine01-00,1\n")
    made = fanplan.channels(dataset, 500, max_switch_entries=sizes, engine=HERE)
    plan = made.save(tmp_path / "plan")
    assert check_plan(plan, dataset).ok
    table = pq.read_table(plan / "switch_entries.parquet").to_pylist()
    assert "leaf00-00" not in {row["switch"] for row in table}
    assert len({row["channel"] for row in table if row["switch"] == "spine01-00"}) <= 1


def violations(plan: Path, dataset: Path) -> str:
    result = check_plan(plan, dataset)
    assert not result.ok
    return "\n".join(result.violations)


def test_a_table_that_is_too_large_is_found(plan: Path, dataset: Path) -> None:
    forge(plan, "channels", "params", "max_switch_entries", to=ENTRIES - 1)
    assert "a table is too large" in violations(plan, dataset)


@pytest.mark.parametrize("figure", ["planned", "unicast", "ideal", "bound"])
def test_other_traffic_is_found(plan: Path, dataset: Path, figure: str) -> None:
    told = json.loads((plan / "plan.json").read_text())["channels"]["traffic"][figure]
    forge(plan, "channels", "traffic", figure, to=1.01 * told)
    assert f"traffic: {figure}" in violations(plan, dataset)


def test_a_missing_port_is_found(plan: Path, dataset: Path) -> None:
    rows = pq.read_table(plan / "switch_entries.parquet").to_pylist()
    hosts = [row for row in rows if row["neighbour"].startswith("host")]
    forge_rows(plan, "switch_entries", [row for row in rows if row != hosts[0]])
    assert "not the hosts of the members" in violations(plan, dataset)
    inner = [row for row in rows if not row["neighbour"].startswith("host")]
    forge_rows(plan, "switch_entries", [row for row in rows if row != inner[0]])
    assert "an entry lacks its other end" in violations(plan, dataset)


def test_a_port_without_a_link_is_found(plan: Path, dataset: Path) -> None:
    rows = pq.read_table(plan / "switch_entries.parquet").to_pylist()
    forge_rows(plan, "switch_entries", [*rows[1:], rows[0] | {"neighbour": "leaf99"}])
    assert "not a link of a switch" in violations(plan, dataset)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"method": "tock"}, "knows no switches"),
        ({"unicast_limit": 0.5}, "does not go together"),
        ({"max_switch_entries": -1}, "too few"),
        ({"max_switch_entries": {"nowhere": 3}}, "no switch 'nowhere'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    dataset: Path, asked: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        fanplan.channels(dataset, 5, **({"max_switch_entries": 3} | asked), engine=HERE)
