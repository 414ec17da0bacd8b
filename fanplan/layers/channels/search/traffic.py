"""What crosses the links between hosts and switches, per message of a row, and the least that can.

A channel is a tree of switches with the hosts of its members; a message crosses every link of it
once. A row may be on several. A host outside sends to the nearest switch of the tree. To one
subscriber alone a message takes a shortest path. Ideal multicast is the tree of shortest paths from
the source to exactly those who want the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs, Position, starts_of
from fanplan.core.kernels import compiled
from fanplan.layers.channels.problem import SwitchProblem

CHUNKS = 64
"""Parts that rows are looked at in: more than there are cores."""
STEPS = 64
"""Of the price of entries, from an empty table to a full one."""


class NetRows(NamedTuple):
    """A problem as kernels take it.

    Without a tree row i takes ``beside[i]`` of the links of unicast. Entries of switch s are worth
    ``price[s]`` to others, step by step as more of the table is taken from them.
    """

    starts: Longs
    hosts: Ints
    copies: Ints
    source: Ints
    messages: Floats
    at: Ints
    parent: Ints
    depth: Ints
    limit: Longs
    roots: Ints
    beside: Floats
    price: Floats


class Trees(NamedTuple):
    """Channel j is the tree of hosts ``hosts[starts[j]:starts[j + 1]]`` hung up at ``root[j]``."""

    root: Ints
    starts: Longs
    hosts: Ints


class Carried(NamedTuple):
    """Row i goes to the channels ``channels[starts[i]:starts[i + 1]]``."""

    starts: Longs
    channels: Ints


class Traffic(NamedTuple):
    """Messages times links in the window: of the plan, of other ways, and a bound."""

    planned: float
    unicast: float
    ideal: float
    bound: float


def one_each(channel: Ints) -> Carried:
    """Rows with one channel each, or NONE."""
    return Carried(starts_of(channel != NONE), channel[channel != NONE])


def net_rows(problem: SwitchProblem) -> NetRows:
    f, p = problem.fabric, problem
    rows = (p.starts, p.hosts, p.copies, p.source, p.messages)
    others = np.ones(p.size), np.zeros((len(p.limit), STEPS))
    return NetRows(*rows, f.at, f.parent, f.depth, p.limit, p.roots, *others)


@compiled
def path(net: NetRows, a: int, b: int) -> int:
    """Links between two hosts."""
    return 0 if a == b else 2 + net.depth[net.at[a], net.at[b]]


@compiled
def unicast_links(net: NetRows, row: Position) -> int:
    """Links that a message of the row crosses if it is sent to each subscriber alone."""
    total = 0
    for k in range(net.starts[row], net.starts[row + 1]):
        total += net.copies[k] * path(net, net.source[row], net.hosts[k])
    return total


@compiled
def ideal_links(net: NetRows, row: int, mark: Longs, stamp: int) -> tuple[int, int, float]:
    """Links of ideal multicast, the switches that it takes an entry of, and their price."""
    root = net.at[net.source[row]]
    mark[root], switches, others, price = stamp, 1, 0, net.price[root, 0]
    for k in range(net.starts[row], net.starts[row + 1]):
        others += net.hosts[k] != net.source[row]
        here = net.at[net.hosts[k]]
        while mark[here] != stamp:
            mark[here] = stamp
            switches += 1
            price += net.price[here, 0]
            here = net.parent[root, here]
    return (others + switches if others else 0), switches, price


@compiled(parallel=True)
def row_links(net: NetRows) -> tuple[Longs, Longs, Longs, Floats]:
    """Per row the links of unicast and of ideal multicast; of the latter switches and price."""
    size = len(net.messages)
    unicast, ideal, switches = np.zeros((3, size), np.int64)
    price = np.zeros(size)
    for chunk in numba.prange(CHUNKS):
        mark = np.full(len(net.parent), -1, np.int64)
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            unicast[row] = unicast_links(net, row)
            ideal[row], switches[row], price[row] = ideal_links(net, row, mark, row)
    return unicast, ideal, switches, price


# ---- what a plan carries


@compiled
def hang_up(
    net: NetRows, root: int, hosts: Ints, marks: Longs, kids: Ints, only: Ints, found: Ints
) -> tuple[int, int]:
    """The tree of some hosts at a root, cut back to where it first divides: (switches, top).

    ``found`` has its switches first; ``marks`` has the stamp ``marks[-1]`` for them.
    """
    marks[-1] += 1
    stamp, count = marks[-1], 0
    for host in hosts:
        here = net.at[host]
        if marks[here] != stamp:
            marks[here], kids[here], found[count] = stamp, 0, here
            count += 1
            while here != root:
                over = net.parent[root, here]
                only[over], new = here, marks[over] != stamp
                if new:
                    marks[over], kids[over], found[count] = stamp, 0, over
                    count += 1
                kids[over] += 1
                if not new:
                    break
                here = over
        kids[net.at[host]] += 2
    top = root
    while count and kids[top] == 1:
        marks[top], top = 0, only[top]
    kept = 0
    for i in range(count):
        if marks[found[i]] == stamp:
            found[kept] = found[i]
            kept += 1
    return kept, top


@compiled
def tree_scratch(net: NetRows) -> tuple[Longs, Ints, Ints, Ints]:
    """Marks, kids, only and found for ``hang_up``."""
    size = len(net.parent)
    return (
        np.zeros(size + 1, np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size + 1, np.int32),
    )


@compiled(parallel=True)
def planned_links(net: NetRows, trees: Trees, carried: Carried) -> Longs:
    """Links that a message of each row crosses on its channels, and beside them."""
    size = len(net.messages)
    total = np.zeros(size, np.int64)
    switch_starts, switches = tree_switches(net, trees)
    links = np.diff(trees.starts) + np.diff(switch_starts) - 1
    for chunk in numba.prange(CHUNKS):
        member = np.full(len(net.at), -1, np.int64)
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            source = net.source[row]
            for j in carried.channels[carried.starts[row] : carried.starts[row + 1]]:
                inside = False
                for host in trees.hosts[trees.starts[j] : trees.starts[j + 1]]:
                    member[host] = row
                    inside |= host == source
                total[row] += links[j]
                if not inside:
                    nearest = len(net.parent)
                    for s in switches[switch_starts[j] : switch_starts[j + 1]]:
                        nearest = min(nearest, net.depth[net.at[source], s])
                    total[row] += 1 + nearest
            for k in range(net.starts[row], net.starts[row + 1]):
                if member[net.hosts[k]] != row:
                    total[row] += net.copies[k] * path(net, source, net.hosts[k])
    return total


@compiled
def tree_switches(net: NetRows, trees: Trees) -> tuple[Longs, Ints]:
    """The switches of each tree, one after the other."""
    marks, kids, only, found = tree_scratch(net)
    starts = np.zeros(len(trees.root) + 1, np.int64)
    for j in range(len(trees.root)):
        hosts = trees.hosts[trees.starts[j] : trees.starts[j + 1]]
        count, _ = hang_up(net, trees.root[j], hosts, marks, kids, only, found)
        starts[j + 1] = starts[j] + count
    switches = np.empty(starts[-1], np.int32)
    for j in range(len(trees.root)):
        hosts = trees.hosts[trees.starts[j] : trees.starts[j + 1]]
        count, _ = hang_up(net, trees.root[j], hosts, marks, kids, only, found)
        switches[starts[j] : starts[j + 1]] = found[:count]
    return starts, switches


def table_rows(problem: SwitchProblem, trees: Trees) -> tuple[Ints, Longs, Longs]:
    """Entries port by port: (channel, switch, neighbour), where hosts come after all switches."""
    net, size = net_rows(problem), len(problem.fabric.switches)
    starts, switches = tree_switches(net, trees)
    channel = np.repeat(np.arange(len(trees.root), dtype=np.int32), np.diff(starts))
    over = problem.fabric.parent[trees.root[channel], switches].astype(np.int64)
    inside = np.isin(channel * np.int64(size) + over, channel * np.int64(size) + switches)
    inside &= over != NONE
    below, above, own = switches[inside].astype(np.int64), over[inside], channel[inside]
    joined = np.repeat(np.arange(len(trees.root), dtype=np.int32), np.diff(trees.starts))
    at = problem.fabric.at[trees.hosts].astype(np.int64)
    return (
        np.concatenate((own, own, joined)),
        np.concatenate((below, above, at)),
        np.concatenate((above, below, size + trees.hosts.astype(np.int64))),
    )


def traffic_of(problem: SwitchProblem, trees: Trees, carried: Carried, bound: float) -> Traffic:
    net, m = net_rows(problem), problem.messages
    unicast, ideal, _, _ = row_links(net)
    planned = planned_links(net, trees, carried)
    return Traffic(float(m @ planned), float(m @ unicast), float(m @ ideal), bound)
