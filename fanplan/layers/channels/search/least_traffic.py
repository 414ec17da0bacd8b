"""What no plan undercuts whose tables have at most these sizes: messages times links.

Each host has a link of its own, and each of several switches of a row one that leads to the others.
Beyond that there are two arguments, and the better one counts. *Ports*: two or more hosts at a
switch get a row without a further crossing only by an entry with exactly these ports, and there are
as many as the table holds. *Distance*: a row loses something at every switch where its hosts are
not those of its tree, so a tree can be near one of several rows that are far from each other, and
there are as many trees as tables have room for. Rows have one tree at most, and any number of
channels at single switches.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Words, listed_by, starts_of
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.traffic import CHUNKS, NetRows, net_rows


class Parts(NamedTuple):
    """What rows want at switches other than their source's: part k is of ``row[k]``, at
    ``switch[k]``, with so many hosts; equal sets at a switch are one ``kind``."""

    row: Ints
    switch: Ints
    hosts: Ints
    kind: Ints


def least_traffic(problem: SwitchProblem) -> float:
    """The bound; see docs/decisions/0031-tables.md."""
    return least_of_sizes(problem, [problem.limit])[0]


def least_of_sizes(problem: SwitchProblem, limits: list[Longs]) -> list[float]:
    """The same for tables of several sizes."""
    net, apart = net_rows(problem), problem.fabric.apart()
    links, code, fallback = row_needs(net, apart)
    parts = parts_of(net)
    base, lost = float(problem.messages @ links), row_losses(net, parts, code, fallback, apart)
    found = []
    for limit in limits:
        beyond = float(lost[most_channels(problem, limit, apart) :].sum())
        found.append(base + max(beyond_ports(problem, limit, apart, parts), beyond))
    return found


def beyond_ports(problem: SwitchProblem, limit: Longs, apart: bool, parts: Parts) -> float:
    """Of sets of ports that have no entry; where switches share links, by half."""
    several = parts.hosts > 1
    kind, switch = parts.kind[several], parts.switch[several]
    weight = np.bincount(kind, problem.messages[parts.row[several]])
    where = np.zeros(len(weight), np.int64)
    where[kind] = switch
    heaviest = np.lexsort((-weight, where))
    rank = np.arange(len(where)) - np.searchsorted(where[heaviest], where[heaviest])
    beyond = rank >= limit[where[heaviest]]
    return (1.0 if apart else 0.5) * float(weight[heaviest][beyond].sum())


def row_losses(net: NetRows, parts: Parts, code: Words, fallback: Longs, apart: bool) -> Floats:
    """What rows lose at least that are near no tree, most first.

    Rows with the same hosts, sources included, can share one, so they are one.
    """
    count = np.bincount(parts.row, minlength=len(net.messages))
    starts, order = listed_by(parts.kind, int(parts.kind.max(initial=-1)) + 1)
    near = nearest_rows(starts_of(count), parts.kind, starts, parts.row[order], code, apart)
    unit = np.unique(code, return_inverse=True)[1]
    lost = np.bincount(unit, np.minimum(fallback, near / 2) * net.messages)
    return np.sort(lost)[::-1].astype(np.float64)


def most_channels(problem: SwitchProblem, limit: Longs, apart: bool) -> int:
    """Channels with hosts at several switches that tables have room for.

    Each has an entry at two switches with hosts, and, if these are apart, at one beside them.
    """
    fabric, room = problem.fabric, np.minimum(limit, problem.size)
    homes = np.zeros(len(room), bool)
    homes[fabric.at] = True
    most = int(room[homes].sum()) // 2
    if apart:
        beside = np.zeros(len(room), bool)
        beside[fabric.near[np.repeat(homes, np.diff(fabric.starts))]] = True
        most = min(most, int(room[beside].sum()))
    return most


@compiled
def row_needs(net: NetRows, apart: bool) -> tuple[Longs, Words, Longs]:
    """Per row the links that it needs at least, a hash of its hosts, source included, and what it
    loses without a tree.

    Then a copy leaves the source for every switch; where switches are apart, it leaves the source's
    switch, too.
    """
    size, seen = len(net.messages), np.full(len(net.limit), -1, np.int64)
    code, (links, loss) = np.zeros(size, np.uint64), np.zeros((2, size), np.int64)
    for row in range(size):
        source, others, switches = net.source[row], 0, 0
        home, at_home = net.at[source], 0
        code[row] = mix(np.uint64(source + 1))
        for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
            if host != source:
                others += 1
                code[row] += mix(np.uint64(host + 1))
                if seen[net.at[host]] != row:
                    seen[net.at[host]] = row
                    switches += 1
                    at_home += net.at[host] == home
        far = switches - at_home
        if others:
            links[row] = others + 1 + (far + (1 if apart else 0) if far else 0)
            loss[row] = switches - 1 + (max(0, far - 1) if apart else 0)
    return links, code, loss


@compiled(parallel=True)
def nearest_rows(
    starts: Longs, kind: Ints, kind_starts: Longs, rows: Ints, code: Words, apart: bool
) -> Longs:
    """What each row and the nearest other one lose at least together on one tree.

    Of rows with a and b switches of which e have equal sets, the two sources' aside: where only one
    of them has hosts 2 links, or 1 if switches are not apart, where the sets differ 1.
    """
    size = len(starts) - 1
    found = np.zeros(size, np.int64)
    for chunk in numba.prange(CHUNKS):
        equal, met = np.zeros(size, np.int32), np.empty(size, np.int32)
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            mine, count = starts[row + 1] - starts[row], 0
            found[row] = max(0, mine - 2)
            for k in range(starts[row], starts[row + 1]):
                for other in rows[kind_starts[kind[k]] : kind_starts[kind[k] + 1]]:
                    if equal[other] == 0:
                        met[count] = other
                        count += 1
                    equal[other] += 1
            for other in met[:count]:
                theirs = starts[other + 1] - starts[other]
                most, least = max(mine, theirs), min(mine, theirs)
                together = (2 * most - least if apart else most) - 2 - equal[other]
                if code[other] != code[row]:
                    found[row] = min(found[row], max(0, together))
                equal[other] = 0
    return found


def parts_of(net: NetRows) -> Parts:
    """Counted in a first turn, written in a second; then equal sets are found by their hashes."""
    none = np.empty(0, np.int32)
    total = list_parts(net, none, none, none, np.empty(0, np.uint64))
    row, switch, hosts = np.empty((3, total), np.int32)
    code = np.empty(total, np.uint64)
    list_parts(net, row, switch, hosts, code)
    kind = np.unique(code, return_inverse=True)[1].astype(np.int32)
    return Parts(row, switch, hosts, kind)


@compiled
def list_parts(net: NetRows, row_of: Ints, switch_of: Ints, hosts_of: Ints, code_of: Words) -> int:
    total, switches = 0, len(net.limit)
    count, there = np.zeros(switches, np.int32), np.empty(switches, np.int32)
    code = np.zeros(switches, np.uint64)
    for row in range(len(net.messages)):
        different, home = 0, net.at[net.source[row]]
        for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
            s = net.at[host]
            if s != home:
                if count[s] == 0:
                    there[different], code[s] = s, np.uint64(0)
                    different += 1
                count[s] += 1
                code[s] += mix(np.uint64(host + 1))
        for s in there[:different]:
            if len(row_of):
                row_of[total], switch_of[total], hosts_of[total] = row, s, count[s]
                code_of[total] = code[s]
            count[s] = 0
            total += 1
    return total
