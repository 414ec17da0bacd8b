"""The check of switches' tables: none too large, every entry a part of one tree with the members.

Traffic on links is counted again from the plan's tables: by sorted keys here, trees that are hung
up there. What is ideal, and what no plan undercuts, is counted level by level of the network.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
import scipy.sparse.csgraph

from fanplan.core.arrays import NONE, Floats, Ints, Longs, Words
from fanplan.data.interest import load_interest
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions
from fanplan.layers.channels.problem import SwitchProblem, load_switch_problem
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.network.dataset import read_link_table
from fanplan.plan.findings import EXAMPLES, Findings, require_close
from fanplan.plan.stored import StoredPlan

AT_A_TIME = 1_000
"""Rows that are held against all others together: bounds the memory."""


class Ports(NamedTuple):
    """Entries port by port; a neighbour is a switch, or NONE and then a host."""

    channel: Longs
    switch: Longs
    near: Longs
    host: Longs


def check_switches(
    plan: StoredPlan, dataset: Path, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    """Tables of switches, if these are limited."""
    record = plan.section(ChannelsRecord)
    limit = record.params.max_switch_entries
    if limit is None and record.traffic is None:
        return
    if record.traffic is None or not isinstance(limit, int | Mapping):
        what = "tables are limited without their traffic, or traffic told without a limit"
        findings.violate("plan.json: traffic", 1, [what])
        return
    placed = load_switch_problem(dataset, load_interest(dataset, "flow"), limit)
    ports = read_ports(plan, dataset, placed, record.channels, findings)
    if ports is None:
        return
    check_sizes(placed, ports, findings)
    switches, links = check_trees(placed, ports, decisions, record.channels, findings)
    counted = {
        "planned": planned_traffic(placed, truth, decisions, switches, links),
        "unicast": float(placed.messages @ lone_links(placed)),
        "ideal": float(placed.messages @ ideal_links(placed)),
        "bound": proved_traffic(placed),
    }
    for name, value in counted.items():
        stated = record.traffic.get(name, np.nan)
        require_close(f"traffic: {name}", stated, value, counted["unicast"], findings)


def read_ports(
    plan: StoredPlan, dataset: Path, placed: SwitchProblem, channels: int, findings: Findings
) -> Ports | None:
    """The table as numbers; None if it names what is not there."""
    table = plan.read("switch_entries", ("switch", "channel", "neighbour"))
    names, hosts = placed.fabric.switches, placed.fabric.hosts
    switch = numbers(table["switch"], names)
    near, host = (numbers(table["neighbour"], those) for those in (names, hosts))
    channel = table["channel"].to_numpy().astype(np.int64)
    links = read_link_table(dataset)
    assert links is not None
    known = pa.concat_tables(
        [links.select(["a", "b"]), links.select(["b", "a"]).rename_columns(["a", "b"])]
    )
    size = len(names) + len(hosts)
    nodes = pa.concat_arrays([names, hosts])
    linked = numbers(known["a"], nodes) * size + numbers(known["b"], nodes)
    mine = switch * size + np.where(near != NONE, near, len(names) + host)
    wrong = (switch == NONE) | ((near == NONE) & (host == NONE)) | ~np.isin(mine, linked)
    wrong |= (channel < 0) | (channel >= channels)
    told = [str(row) for row in table.filter(pa.array(wrong)).slice(0, EXAMPLES).to_pylist()]
    findings.violate(
        "switch_entries: not a link of a switch, or no channel", int(wrong.sum()), told
    )
    rows = np.stack((channel, mine), axis=1)
    findings.violate(
        "switch_entries: rows given twice", len(rows) - len(np.unique(rows, axis=0)), []
    )
    return None if wrong.any() else Ports(channel, switch, near, host)


def numbers(values: pa.ChunkedArray, among: pa.Array) -> Longs:
    found = pc.index_in(values, value_set=among).fill_null(NONE).to_numpy()
    result: Longs = found.astype(np.int64)
    return result


def check_sizes(placed: SwitchProblem, ports: Ports, findings: Findings) -> None:
    """No switch has more entries than its table holds."""
    entries = np.unique(ports.switch * (ports.channel.max(initial=0) + 1) + ports.channel)
    size = ports.channel.max(initial=0) + 1
    held = np.bincount(entries // size, minlength=len(placed.limit))
    over = np.flatnonzero(held > placed.limit)
    told = [
        f"{placed.fabric.switches[int(s)].as_py()!r} holds {held[s]}, not {placed.limit[s]}"
        for s in over[:EXAMPLES]
    ]
    findings.violate("switch_entries: a table is too large", len(over), told)


def check_trees(
    placed: SwitchProblem, ports: Ports, decisions: Decisions, channels: int, findings: Findings
) -> tuple[scipy.sparse.csr_array, Longs]:
    """Every channel has one tree, with exactly the hosts of its members: its switches and links."""
    size, people = len(placed.limit), len(placed.fabric.hosts)
    inner = ports.near != NONE
    here = ports.channel[inner] * size + ports.switch[inner]
    there = ports.channel[inner] * size + ports.near[inner]
    nodes, at = np.unique(ports.channel * size + ports.switch, return_inverse=True)
    one_sided = ~np.isin(there * channels * size + here, here * channels * size + there)
    findings.violate("switch_entries: an entry lacks its other end", int(one_sided.sum()), [])
    left = at[inner]
    right = np.minimum(np.searchsorted(nodes, there), max(len(nodes) - 1, 0))
    graph = scipy.sparse.coo_array((np.ones(len(left)), (left, right)), (len(nodes), len(nodes)))
    parts = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    channel = nodes // size
    pieces = np.unique(np.stack((channel, parts)), axis=1)[0]
    edges = np.bincount(ports.channel[inner], minlength=channels) // 2
    switches = np.bincount(channel, minlength=channels)
    wrong = (np.bincount(pieces, minlength=channels) != 1) | (edges != switches - 1)
    told = [f"channel {j}" for j in np.flatnonzero(wrong)[:EXAMPLES]]
    findings.violate("switch_entries: not one tree", int(wrong.sum()), told)
    members = decisions.members.sides()
    wanted = np.unique(members.left * people + placed.home[members.right])
    given = np.unique(ports.channel[~inner] * people + ports.host[~inner])
    differ = np.setxor1d(wanted, given) // people
    told = [f"channel {j}" for j in np.unique(differ)[:EXAMPLES]]
    findings.violate("switch_entries: not the hosts of the members", len(differ), told)
    hosts = np.bincount(given // people, minlength=channels)
    ones = np.ones(len(nodes), bool)
    table = scipy.sparse.csr_array((ones, (channel, nodes % size)), (channels, size))
    return table, hosts + edges


def lone_links(placed: SwitchProblem) -> Floats:
    """Links that a message of each row crosses by unicast."""
    row = np.repeat(np.arange(placed.size), np.diff(placed.starts))
    far = placed.copies * paths(placed, row, placed.hosts)
    return np.bincount(row, far, placed.size).astype(np.float64)


def paths(placed: SwitchProblem, row: Longs, host: Ints) -> Longs:
    """Links from the source of a row to a host."""
    fabric, source = placed.fabric, placed.source[row]
    far: Longs = np.where(source == host, 0, 2 + fabric.depth[fabric.at[source], fabric.at[host]])
    return far


def planned_traffic(
    placed: SwitchProblem,
    truth: ChannelTruth,
    decisions: Decisions,
    switches: scipy.sparse.csr_array,
    links: Longs,
) -> float:
    """Messages times links: of trees, of ways to them, and of unicast."""
    carried, members, alone = (
        relation.sides() for relation in (decisions.channels, decisions.members, decisions.unicast)
    )
    total = float(truth.messages[carried.left] @ links[carried.right])
    people = len(placed.fabric.hosts)
    joined = members.left * people + placed.home[members.right]
    source = placed.source[carried.left]
    outside = ~np.isin(carried.right * people + source, joined)
    for flow, channel, host in zip(
        carried.left[outside], carried.right[outside], source[outside], strict=True
    ):
        tree = switches.indices[switches.indptr[channel] : switches.indptr[channel + 1]]
        near = placed.fabric.depth[placed.fabric.at[host], tree].min(initial=len(placed.limit))
        total += truth.messages[flow] * (1 + near)
    far = paths(placed, alone.left, placed.home[alone.right])
    return total + float(truth.messages[alone.left] @ far)


def ideal_links(placed: SwitchProblem) -> Longs:
    """Links of the shortest paths from each source, level by level towards it."""
    fabric, size = placed.fabric, len(placed.limit)
    row = np.repeat(np.arange(placed.size), np.diff(placed.starts))
    others = np.bincount(row[placed.hosts != placed.source[row]], minlength=placed.size)
    level = np.unique(row * size + fabric.at[placed.hosts])
    found = level
    while len(level):
        root, here = fabric.at[placed.source[level // size]], level % size
        level = np.unique((level // size * size + fabric.parent[root, here])[root != here])
        level = level[~np.isin(level, found)]
        found = np.append(found, level)
    # The switch of the source is among those found of every row.
    switches = np.bincount(found // size, minlength=placed.size)
    return np.where(others > 0, others + switches, 0)


def proved_traffic(placed: SwitchProblem) -> float:
    """What no plan undercuts: see docs/decisions/0031-tables.md.

    Sets of hosts are told apart by sums of random numbers; equal sums of different sets could only
    lower the bound.
    """
    fabric, size, apart = placed.fabric, len(placed.limit), placed.fabric.apart()
    row = np.repeat(np.arange(placed.size), np.diff(placed.starts))
    other = placed.hosts != placed.source[row]
    row, host = row[other], placed.hosts[other]
    home = fabric.at[placed.source[row]]
    key, group, count = np.unique(
        row * size + fabric.at[host], return_inverse=True, return_counts=True
    )
    code = np.random.default_rng(1).integers(1, 1 << 62, len(fabric.hosts), dtype=np.uint64)
    codes = np.zeros(len(key), np.uint64)
    np.add.at(codes, group, code[host])
    away = np.unique(np.append(key, np.unique(row * size + home)))
    different = np.bincount(away // size, minlength=placed.size)
    hosts = np.bincount(row, minlength=placed.size)
    inner = np.where(different > 1, different - (0 if apart else 1), 0)
    base = float(placed.messages @ np.where(hosts > 0, hosts + 1 + inner, 0))
    far = key % size != fabric.at[placed.source[key // size]]
    several = (count > 1) & far
    where, what = key[several] % size, codes[several]
    pairs, at = np.unique(np.stack((where.astype(np.uint64), what)), axis=1, return_inverse=True)
    weight = np.bincount(at.ravel(), placed.messages[key[several] // size], pairs.shape[1])
    beyond = 0.0
    for switch in np.unique(pairs[0]):
        own = np.sort(weight[pairs[0] == switch])[::-1]
        beyond += float(own[int(min(placed.limit[int(switch)], len(own))) :].sum())
    ports = (1.0 if apart else 0.5) * beyond
    switches = np.bincount(key // size, minlength=placed.size)
    gone = np.bincount(key[far] // size, minlength=placed.size)
    alone: Longs = np.maximum(switches - 1, 0)
    if apart:
        alone = alone + np.maximum(gone - 1, 0)
    return base + max(ports, far_rows(placed, key[far], codes[far], alone))


def far_rows(placed: SwitchProblem, key: Longs, codes: Words, alone: Longs) -> float:
    """What rows lose that are near no tree, those aside that would lose most.

    ``key`` has row and switch of every set of hosts, but at the source's switch; ``codes`` the set.
    """
    size, apart = placed.size, placed.fabric.apart()
    row, kind = key // len(placed.limit), np.unique(codes, return_inverse=True)[1]
    shape = (size, int(kind.max(initial=0)) + 1)
    sets = scipy.sparse.csr_array((np.ones(len(row), np.int32), (row, kind)), shape)
    unit = equal_rows(placed)
    count = np.bincount(row, minlength=size)
    near = np.maximum(count - 2, 0)
    for first in range(0, size, AT_A_TIME):
        equal = scipy.sparse.coo_array(sets[first : first + AT_A_TIME] @ sets.T)
        one, two = equal.row + first, equal.col
        valid = unit[one] != unit[two]
        one, two, same = one[valid], two[valid], equal.data[valid]
        most = np.maximum(count[one], count[two])
        apiece = 2 * most - np.minimum(count[one], count[two]) if apart else most
        np.minimum.at(near, one, np.maximum(apiece - 2 - same, 0))
    lost = np.bincount(unit, np.minimum(alone, near / 2) * placed.messages)
    return float(np.sort(lost)[::-1][room_for_channels(placed) :].sum())


def equal_rows(placed: SwitchProblem) -> Longs:
    """The same number for rows with the same hosts, sources included."""
    sets = [
        frozenset((*placed.hosts[a:b].tolist(), source))
        for (a, b), source in zip(
            itertools.pairwise(placed.starts), placed.source.tolist(), strict=True
        )
    ]
    numbers = {hosts: i for i, hosts in enumerate(dict.fromkeys(sets))}
    return np.array([numbers[hosts] for hosts in sets], np.int64)


def room_for_channels(placed: SwitchProblem) -> int:
    """Channels at several switches: each is in tables of two that have hosts, and, where no two of
    these are linked, in that of a neighbour."""
    fabric, room = placed.fabric, np.minimum(placed.limit, placed.size)
    homes = np.unique(fabric.at)
    most = int(room[homes].sum()) // 2
    if not fabric.apart():
        return most
    beside = {int(n) for s in homes for n in fabric.near[fabric.starts[s] : fabric.starts[s + 1]]}
    return min(most, int(room[sorted(beside)].sum()))
