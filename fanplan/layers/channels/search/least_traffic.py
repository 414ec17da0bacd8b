"""What no plan undercuts whose tables have at most these sizes: messages times links.

Each host has a link of its own, and each of several switches of a row one that leads to the others.
Beyond that there are two arguments, and the better one counts. *Ports*: two or more hosts at a
switch get a row without a further crossing only by an entry with exactly these ports, and there are
as many as the table holds. *Distance*: every host that a channel lacks takes a copy more from the
source, and every one that it has in vain a link; so a channel can be near one of several rows that
are far from each other, and there are as many channels as tables have room for.
"""

from __future__ import annotations

import numba
import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Words, listed_by, starts_of
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.traffic import CHUNKS, NetRows, net_rows


def least_traffic(problem: SwitchProblem, losses: Floats | None = None) -> float:
    """The bound; see docs/decisions/0031-tables.md. Losses are the same for all sizes of tables."""
    net, apart = net_rows(problem), problem.fabric.apart()
    links, row, switch, ports = least_links(net, apart)
    lost = row_losses(problem) if losses is None else losses
    beyond = float(lost[most_channels(problem, apart) :].sum())
    unlisted = beyond_ports(problem, apart, row, switch, ports)
    return float(problem.messages @ links) + max(unlisted, beyond)


def beyond_ports(
    problem: SwitchProblem, apart: bool, row: Longs, switch: Longs, ports: Words
) -> float:
    """Of sets of ports that have no entry; where switches share links, by half."""
    if not len(row):
        return 0.0
    order = np.lexsort((ports, switch))
    new = (np.diff(switch[order]) != 0) | (np.diff(ports[order]) != 0)
    group = np.append(0, np.cumsum(new))
    weight = np.bincount(group, problem.messages[row[order]])
    where = switch[order][np.append(True, new)]
    heaviest = np.lexsort((-weight, where))
    rank = np.arange(len(where)) - np.searchsorted(where[heaviest], where[heaviest])
    beyond = rank >= problem.limit[where[heaviest]]
    return (1.0 if apart else 0.5) * float(weight[heaviest][beyond].sum())


def row_losses(problem: SwitchProblem) -> Floats:
    """What rows lose at least that are near no channel, most first.

    Rows with the same hosts, sources included, can share one, so they are one.
    """
    net = net_rows(problem)
    code, fallback, others = row_codes(net, problem.fabric.apart())
    starts, order = listed_by(net.source, len(net.at))
    sending = starts, order.astype(np.int32)
    far = nearest_rows(net, wanting_rows(net), sending, code, others)
    unit = np.unique(code, return_inverse=True)[1]
    lost = np.bincount(unit, np.minimum(fallback, far / 2) * problem.messages)
    return np.sort(lost)[::-1].astype(np.float64)


def most_channels(problem: SwitchProblem, apart: bool) -> int:
    """Channels with hosts at several switches that tables have room for.

    Each has an entry at two switches with hosts, and, if these are apart, at one beside them.
    """
    fabric, room = problem.fabric, np.minimum(problem.limit, problem.size)
    homes = np.zeros(len(room), bool)
    homes[fabric.at] = True
    most = int(room[homes].sum()) // 2
    if apart:
        beside = np.zeros(len(room), bool)
        beside[fabric.near[np.repeat(homes, np.diff(fabric.starts))]] = True
        most = min(most, int(room[beside].sum()))
    return most


@compiled
def row_codes(net: NetRows, apart: bool) -> tuple[Words, Longs, Longs]:
    """Per row a hash of its hosts, source included; what it loses on no channel with hosts at
    several switches; and its hosts but the source.

    By unicast, or on a channel at one switch, copies leave the source for all hosts but those of
    one switch; where switches are apart, they leave the source's switch one by one, too.
    """
    size = len(net.messages)
    code, (loss, others) = np.zeros(size, np.uint64), np.zeros((2, size), np.int64)
    count, seen = np.zeros(len(net.limit), np.int64), np.full(len(net.limit), -1, np.int64)
    for row in range(size):
        source, most, far = net.source[row], 0, 0
        code[row] = mix(np.uint64(source + 1))
        for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
            if host == source:
                continue
            here = net.at[host]
            if seen[here] != row:
                seen[here], count[here] = row, 0
            count[here] += 1
            most, far = max(most, count[here]), far + (here != net.at[source])
            others[row] += 1
            code[row] += mix(np.uint64(host + 1))
        loss[row] = others[row] - most + (max(0, far - most) if apart else 0)
    return code, loss, others


@compiled(parallel=True)
def nearest_rows(
    net: NetRows,
    wanting: tuple[Longs, Ints],
    sending: tuple[Longs, Ints],
    code: Words,
    others: Longs,
) -> Longs:
    """In how many hosts each row differs from the nearest other one, sources aside.

    ``wanting`` has the rows of each host, ``sending`` those that it sends.
    """
    size, least = len(net.messages), np.int64(len(net.at))
    for row in range(size):
        if others[row]:
            least = min(least, others[row])
    found = np.zeros(size, np.int64)
    for chunk in numba.prange(CHUNKS):
        common, met = np.zeros(size, np.int32), np.empty(size, np.int32)
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            if others[row]:
                count = common_hosts(net, row, wanting, sending, common, met)
                found[row] = others[row] + least
                for other in met[:count]:
                    if code[other] != code[row]:
                        apart = others[row] + others[other] - common[other]
                        found[row] = min(found[row], apart)
                    common[other] = 0
    return found


@compiled
def common_hosts(
    net: NetRows,
    row: int,
    wanting: tuple[Longs, Ints],
    sending: tuple[Longs, Ints],
    common: Ints,
    met: Ints,
) -> int:
    """Twice the hosts in common with each row that has any, once where it sends one of the two."""
    source, count = net.source[row], 0
    count = met_rows(wanting, source, 1, common, met, count)
    for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
        if host != source:
            count = met_rows(wanting, host, 2, common, met, count)
            count = met_rows(sending, host, 1, common, met, count)
    return count


@compiled
def met_rows(
    lists: tuple[Longs, Ints], host: int, worth: int, common: Ints, met: Ints, count: int
) -> int:
    for other in lists[1][lists[0][host] : lists[0][host + 1]]:
        if common[other] == 0:
            met[count] = other
            count += 1
        common[other] += worth
    return count


def wanting_rows(net: NetRows) -> tuple[Longs, Ints]:
    """The rows that each host wants of others: starts and rows."""
    starts = starts_of(wanted_of_others(net))
    return starts, listed_rows(net, starts[:-1].copy(), starts[-1])


@compiled
def wanted_of_others(net: NetRows) -> Longs:
    count = np.zeros(len(net.at), np.int64)
    for row in range(len(net.messages)):
        for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
            count[host] += host != net.source[row]
    return count


@compiled
def listed_rows(net: NetRows, place: Longs, total: int) -> Ints:
    rows = np.empty(total, np.int32)
    for row in range(len(net.messages)):
        for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
            if host != net.source[row]:
                rows[place[host]] = row
                place[host] += 1
    return rows


@compiled
def least_links(net: NetRows, apart: bool) -> tuple[Longs, Longs, Longs, Words]:
    """Links that each row needs at least; and, for switches with several of its hosts and not its
    source, (row, switch, hash of the hosts): counted in a first turn, written in a second.
    """
    size, switches = len(net.messages), len(net.parent)
    links, total = np.zeros(size, np.int64), 0
    count, there = np.zeros(switches, np.int64), np.empty(switches + 1, np.int64)
    code, code_of = np.zeros(switches, np.uint64), np.empty(0, np.uint64)
    row_of, switch_of = np.empty(0, np.int64), np.empty(0, np.int64)
    for turn in range(2):
        if turn:
            row_of, switch_of = np.empty(total, np.int64), np.empty(total, np.int64)
            code_of, total = np.empty(total, np.uint64), 0
        for row in range(size):
            different, others = hosts_by_switch(net, row, count, code, there)
            if others:
                inner = different - (0 if apart else 1) if different > 1 else 0
                links[row] = others + 1 + inner
            for s in there[1:different]:
                if turn and count[s] > 1:
                    row_of[total], switch_of[total], code_of[total] = row, s, code[s]
                total += count[s] > 1
            count[there[:different]] = 0
    return links, row_of, switch_of, code_of


@compiled
def hosts_by_switch(
    net: NetRows, row: int, count: Longs, code: Words, there: Longs
) -> tuple[int, int]:
    """How many switches a row has, that of its source first, and how many hosts but the source."""
    there[0], different, others = net.at[net.source[row]], 1, 0
    for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
        if host != net.source[row]:
            s = net.at[host]
            if s != there[0] and count[s] == 0:
                there[different], code[s] = s, np.uint64(0)
                different += 1
            count[s] += 1
            code[s] = mix(code[s] ^ np.uint64(host))
            others += 1
    return different, others
