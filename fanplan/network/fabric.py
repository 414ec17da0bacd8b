"""The switches between hosts: which links there are, and the shortest paths among switches.

A host is a broker of clients; every other node of the table `links` is a switch. A host hangs at
one switch: of several the first by name. Links between hosts carry nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Ints, Longs, listed_by
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled

MOST_SWITCHES = 10_000
"""Paths are kept for every pair of switches."""


@dataclass(frozen=True, eq=False)
class Fabric:
    """Hosts and switches by name, ascending, and the trees of shortest paths between switches.

    ``at[h]`` is the switch of host h. From switch s the next one on the way to r is
    ``parent[r, s]``, ``depth[r, s]`` links away from r in all; NONE: there is no way.
    """

    hosts: pa.Array
    switches: pa.Array
    at: Ints
    starts: Longs
    near: Ints
    parent: Ints
    depth: Ints

    def roots(self, most: int) -> Ints:
        """The switches nearest to all hosts, which trees are hung up at."""
        far = self.depth.astype(np.int64) @ np.bincount(self.at, minlength=len(self.switches))
        far[self.depth[:, self.at].min(axis=1) == NONE] = np.iinfo(np.int64).max
        near = np.argsort(far, kind="stable")[:most].astype(np.int32)
        # In no order: those with names beside each other often share what lies below them.
        return np.random.default_rng(0).permutation(near)

    def apart(self) -> bool:
        """Whether no two switches with hosts are linked with each other."""
        homes = np.zeros(len(self.switches), bool)
        homes[self.at] = True
        tail = np.repeat(np.arange(len(homes)), np.diff(self.starts))
        return not bool((homes[tail] & homes[self.near]).any())


def make_fabric(a: pa.Array, b: pa.Array, hosts: pa.Array) -> Fabric:
    """The fabric of links between names, each link once."""
    ends = pa.chunked_array([a, b]).unique()
    switches = ends.filter(pc.invert(pc.is_in(ends, hosts))).sort()
    if not len(switches):
        what = "every node is a broker, so there are no switches"
        raise InputError(Problem("links", what, "Give links of brokers to switches, or no limit"))
    if len(switches) > MOST_SWITCHES:
        what = f"{len(switches)} switches are more than {MOST_SWITCHES}"
        raise InputError(Problem("links", what, "Give a part of the network"))
    one, two = (positions_among(end, switches) for end in (a, b))
    inside = (one != NONE) & (two != NONE)
    tail, head = np.append(one[inside], two[inside]), np.append(two[inside], one[inside])
    order = np.lexsort((head, tail))
    starts, _ = listed_by(tail[order], len(switches))
    near = head[order].astype(np.int32)
    parent, depth = shortest_paths(starts, near)
    at = switch_of_hosts(a, b, hosts, switches)
    cut = np.flatnonzero(depth[at[0], at] == NONE)
    if len(cut):
        what = f"no way leads from {hosts[0].as_py()!r} to {hosts[int(cut[0])].as_py()!r}"
        raise InputError(Problem("links", what, "Add the links between them"))
    return Fabric(hosts, switches, at, starts, near, parent, depth)


def positions_among(names: pa.Array, among: pa.Array) -> Longs:
    found: Longs = pc.index_in(names, value_set=among).fill_null(NONE).to_numpy().astype(np.int64)
    return found


def switch_of_hosts(a: pa.Array, b: pa.Array, hosts: pa.Array, switches: pa.Array) -> Ints:
    """The first switch of each host; every host must have one."""
    at = np.full(len(hosts), len(switches), np.int64)
    for one, two in ((a, b), (b, a)):
        host, switch = positions_among(one, hosts), positions_among(two, switches)
        linked = (host != NONE) & (switch != NONE)
        np.minimum.at(at, host[linked], switch[linked])
    alone = np.flatnonzero(at == len(switches))
    if len(alone):
        what = f"{hosts[int(alone[0])].as_py()!r} has no link to a switch"
        raise InputError(Problem("links", what, "Add the link"))
    return at.astype(np.int32)


@compiled
def shortest_paths(starts: Longs, near: Ints) -> tuple[Ints, Ints]:
    """For every root the parent and the depth of every switch, breadth first, lowest first."""
    size = len(starts) - 1
    parent, depth = np.full((size, size), NONE, np.int32), np.full((size, size), NONE, np.int32)
    queue = np.empty(size, np.int32)
    for root in range(size):
        queue[0], depth[root, root], found = root, 0, 1
        for i in range(size):
            if i == found:
                break
            here = queue[i]
            for there in near[starts[here] : starts[here + 1]]:
                if depth[root, there] == NONE:
                    depth[root, there], parent[root, there] = depth[root, here] + 1, here
                    queue[found] = there
                    found += 1
    return parent, depth
