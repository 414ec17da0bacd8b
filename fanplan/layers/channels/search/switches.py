"""Channels for switches whose tables hold few groups: the least traffic on links that was found.

Every channel takes an entry in each switch of its tree. *Open*: the row that saves most per entry
beside the channels there are gets one of its own, until tables are full; hosts behind a full switch
stay outside. As channels only ever lower what is left to save, a row need not be looked at again
until it comes first (lazy greedy, Minoux 1978). *Settle*: every row takes its best channel, or
none. *Mold*: every channel takes the hosts that pay, so that one opened for a row becomes the
shared, coarser group of all that settled on it. Entries that this sets free are given away again.
Hosts outside are served at their switches (``local``), whose tables trees and sets of hosts share
by what entries are worth.
"""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import (
    NONE,
    Bools,
    Floats,
    Ints,
    Longs,
    Position,
    Words,
    listed_by,
    starts_of,
)
from fanplan.core.bits import has_bit, set_bit
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.channels.problem import SwitchProblem
from fanplan.layers.channels.search.effort import Lowest
from fanplan.layers.channels.search.local import (
    GLANCE,
    STUDY,
    Book,
    Corners,
    best_sets,
    corners_of,
    entry_values,
    learn,
    placed,
    row_savings,
    wants_of,
    within,
)
from fanplan.layers.channels.search.traffic import (
    CHUNKS,
    STEPS,
    Carried,
    NetRows,
    Trees,
    hang_up,
    net_rows,
    one_each,
    path,
    planned_links,
    row_links,
    tree_scratch,
    tree_switches,
    unicast_links,
)

BLOCK = 16
"""Channels of a host that lie side by side: a line of the cache."""
TRIES = 12
"""Roots that are compared for a tree."""
LEAST = 2
"""Hosts of a channel."""
LOOKS = 12
"""Looks at a row that no longer comes first."""
DEAR = 10.0
"""The last entry of a table is as dear as two to this power first ones."""
CLOSED = 0.3
"""Part of the channels, those that save least for their entries, that a round gives up."""
ROUNDS = 3
TURNS, SMALL = 4, 0.005
"""Times that trees and sets at single switches are found beside each other, while that gains more
than a small part."""
STARTS, WORK, NOISE = 16, 200_000, 0.5
"""Most searches, pairs of a row and a host that they look at in all, and how much keys vary."""

NO_TREES = Trees(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32))


class State(NamedTuple):
    """Channels as they grow: there are ``totals[0]`` of them, and ``totals[2]``
    blocks.

    Members of channel j are ``members[starts[j]:starts[j + 1]]``. The channels of a host lie in
    blocks: ``block[host]`` is the latest, ``before`` the one before, ``filled`` how much is in it.
    """

    totals: Longs
    used: Longs
    root: Ints
    links: Longs
    bits: Words
    starts: Longs
    members: Ints
    block: Ints
    before: Ints
    filled: Ints
    lists: Ints


class Scratch(NamedTuple):
    """Room to work in: of trees, of hosts kept, and of channels met."""

    marks: Longs
    kids: Ints
    only: Ints
    found: Ints
    kept: Ints
    saved: Floats
    met: Longs
    own: Longs
    touched: Ints


def search_switches(
    problem: SwitchProblem, channels: int, seed: int, stop: Stop
) -> tuple[Trees, Carried]:
    """At most so many channels that fit all tables, and those of each row; the rest by unicast.

    Where there is little to look at, it is looked at several times, in somewhat different order,
    and every second time as if there were trees alone.
    """
    net, random, told = net_rows(problem), np.random.default_rng(seed), Lowest(stop)
    look = partial(beside_trees, net, corners_of(net), row_links(net)[0], channels)
    nowhere = np.full(problem.size, NONE, np.int32)
    best = look(NO_TREES, nowhere, GLANCE)
    view, starts = best.view, min(STARTS, WORK // max(len(net.hosts), 1))
    for start in range(max(starts, TURNS)):
        if told(best.total):
            break
        noise = np.exp(random.normal(0.0, NOISE if start > TURNS else 0.0, problem.size))
        seen = net if start % 2 and starts > TURNS else view
        found = look(*search_trees(seen, noise, channels, random, told), GLANCE)
        # What entries are worth falls with the trees that there are: a step half of the way.
        view = found.view._replace(price=(view.price + found.view.price) / 2)
        small = found.total > (1 - SMALL) * best.total
        best = min(best, found, key=lambda one: one.total)
        if small and start and starts <= TURNS:
            break
    best = min(best, look(best.trees, best.channel, STUDY), key=lambda one: one.total)
    return placed(net, corners_of(net), best.book, best.trees, best.channel)


class Found(NamedTuple):
    """Trees, that of each row, sets at single switches, and how the next trees should see it."""

    total: float
    trees: Trees
    channel: Ints
    book: Book
    view: NetRows


def search_trees(
    net: NetRows, noise: Floats, channels: int, random: np.random.Generator, stop: Stop
) -> tuple[Trees, Ints]:
    """The best of some rounds; rows are looked at by their keys."""
    unicast, ideal, switches, price = row_links(net)
    beside = net.beside * unicast
    least = net.messages * ideal + price
    key = noise * np.maximum(net.messages * beside - least, 0) / np.maximum(switches, 1)
    turn = random.permutation(len(key)).astype(np.int32)
    state, choice = no_channels(net, channels), np.full(len(key), NONE, np.int32)
    best, lowest = (trees_of(state), choice), float(net.messages @ beside)
    for last in range(ROUNDS - 1, -1, -1):
        open_channels(net, state, key, least, turn, channels)
        choice, links = settle(net, state)
        total = float(net.messages @ links)
        if total < lowest:
            best, lowest = (trees_of(state), choice), total
        if stop(math.inf) or not last:
            break
        state = mold(net, state, choice, net.messages * (beside - links), turn, channels)
    return trimmed(net, *best)


def fill_tables(problem: SwitchProblem, seed: int) -> tuple[Trees, Carried]:
    """Rows in random order, each on a tree of its own while there is room; else by unicast."""
    net = net_rows(problem)
    state = no_channels(net, problem.size)
    turn = np.random.default_rng(seed).permutation(problem.size).astype(np.int32)
    choice = first_come(net, state, turn)
    return trees_of(state), one_each(choice)


def trees_of(state: State) -> Trees:
    count = state.totals[0]
    starts = state.starts[: count + 1]
    return Trees(state.root[:count].copy(), starts.copy(), state.members[: starts[-1]].copy())


# ---- channels at single switches beside them


def beside_trees(
    net: NetRows,
    corners: Corners,
    unicast: Longs,
    channels: int,
    trees: Trees,
    channel: Ints,
    effort: tuple[int, int],
) -> Found:
    """What is left of tables is given to sets at single switches; then rows leave trees that are
    worse for them than these."""
    wants = wants_of(net, corners, trees, channel)
    room = net.limit - np.bincount(tree_switches(net, trees)[1], minlength=len(net.limit))
    # At a glance sets have the whole table, which tells what entries are worth; then what is left.
    book = learn(net, corners, wants, room if effort == STUDY else net.limit, effort)
    price = entry_values(corners, book, net.limit)
    book = best_sets(within(corners, book, room), channels - len(trees.root))
    links = planned_links(net, trees, one_each(channel)) - row_savings(net, corners, wants, book)
    on_tree, lone = channel != NONE, links
    if on_tree.any():
        only = np.where(on_tree, NONE, NONE - 1).astype(np.int32)
        saved = row_savings(net, corners, wants_of(net, corners, trees, only), book)
        lone = np.where(on_tree, unicast - saved, links)
        left = np.where(lone < links, NONE, channel).astype(np.int32)
        trees, channel = trimmed(net, trees, left)
    view = net._replace(beside=lone / np.maximum(unicast, 1), price=price)
    return Found(float(net.messages @ np.minimum(links, lone)), trees, channel, book, view)


def no_channels(net: NetRows, channels: int) -> State:
    # Every channel takes an entry at least.
    room = min(int(np.minimum(net.limit, channels).sum()), channels, len(net.messages))
    # An entry has all hosts of its switch at most.
    ports = np.bincount(net.at, minlength=len(net.limit))
    hosts, size = len(net.at), min(int(np.minimum(net.limit, room) @ ports), len(net.hosts))
    return State(
        np.zeros(3, np.int64),
        np.zeros(len(net.limit), np.int64),
        np.zeros(room, np.int32),
        np.zeros(room, np.int64),
        np.zeros((room, (len(net.limit) + 63) // 64), np.uint64),
        np.zeros(room + 1, np.int64),
        np.empty(size, np.int32),
        np.full(hosts, NONE, np.int32),
        np.empty(size // BLOCK + hosts + 1, np.int32),
        np.zeros(size // BLOCK + hosts + 1, np.int32),
        np.empty((size // BLOCK + hosts + 1) * BLOCK, np.int32),
    )


@compiled
def make_scratch(net: NetRows, room: int) -> Scratch:
    marks, kids, only, found = tree_scratch(net)
    kept, touched = np.empty(len(net.at), np.int32), np.empty(room, np.int32)
    met, own = np.full((2, room), -1, np.int64)
    return Scratch(marks, kids, only, found, kept, np.zeros(room), met, own, touched)


# ---- trees within tables


@compiled
def hang(net: NetRows, root: int, hosts: Ints, s: Scratch) -> tuple[int, int]:
    return hang_up(net, root, hosts, s.marks, s.kids, s.only, s.found)


@compiled
def load(net: NetRows, state: State, s: Scratch, count: int) -> float:
    """How full the fullest switch of the tree at hand is, with an entry more; above 1: too full."""
    most = 0.0
    for here in s.found[:count]:
        most = max(most, (state.used[here] + 1) / max(net.limit[here], 1e-9))
    return most


@compiled
def fit(net: NetRows, state: State, hosts: Ints, first: int, s: Scratch) -> tuple[int, int, int]:
    """A tree with room for all hosts, or else for as many as possible: (root, hosts, switches).

    Roots are tried from the ``first`` on. Hosts are in ``s.kept``, switches in ``s.found``.
    """
    able = hosts[state.used[net.at[hosts]] < net.limit[net.at[hosts]]]
    if len(able) < LEAST:
        return -1, 0, 0
    root, count = fit_all(net, state, able, first, s)
    if root >= 0:
        s.kept[: len(able)] = able
        return root, len(able), count
    best, most = -1, LEAST - 1
    for i in range(min(TRIES, len(net.roots))):
        root = net.roots[(first + i) % len(net.roots)]
        kept = reachable(net, state, root, able, s)
        if kept > most:
            best, most = root, kept
    if best < 0:
        return -1, 0, 0
    kept = reachable(net, state, best, able, s)
    count, _ = hang(net, best, s.kept[:kept], s)
    return best, kept, count


@compiled
def fit_all(net: NetRows, state: State, hosts: Ints, first: int, s: Scratch) -> tuple[int, int]:
    """The least loaded tree with room for all hosts: (root, switches); -1 if none was found."""
    best, lowest = -1, 1.0 + 1e-9
    for i in range(min(TRIES, len(net.roots))):
        root = net.roots[(first + i) % len(net.roots)]
        count, _ = hang(net, root, hosts, s)
        most = load(net, state, s, count)
        if most < lowest:
            best, lowest = root, most
    if best < 0:
        return -1, 0
    count, _ = hang(net, best, hosts, s)
    return best, count


@compiled
def reachable(net: NetRows, state: State, root: int, hosts: Ints, s: Scratch) -> int:
    """Keep the hosts that no full switch separates from the top of their tree."""
    _, top = hang(net, root, hosts, s)
    kept = 0
    for host in hosts:
        here = net.at[host]
        while state.used[here] < net.limit[here] and here != top:
            here = net.parent[root, here]
        if state.used[here] < net.limit[here]:
            s.kept[kept] = host
            kept += 1
    return kept


@compiled
def add_channel(state: State, root: int, hosts: Ints, s: Scratch, count: int) -> None:
    """Open a channel of these hosts, whose tree is at hand."""
    j = state.totals[0]
    state.root[j], state.links[j] = root, len(hosts) + count - 1
    state.bits[j] = 0
    for here in s.found[:count]:
        state.used[here] += 1
        set_bit(state.bits[j], here)
    start = state.starts[j]
    state.members[start : start + len(hosts)] = hosts
    state.starts[j + 1] = start + len(hosts)
    for host in hosts:
        enlist(state, host, j)
    state.totals[0] += 1


@compiled
def enlist(state: State, host: int, channel: int) -> None:
    last = state.block[host]
    if last < 0 or state.filled[last] == BLOCK:
        new = state.totals[2]
        state.before[new], state.filled[new], state.block[host] = last, 0, new
        state.totals[2] += 1
        last = new
    state.lists[last * BLOCK + state.filled[last]] = channel
    state.filled[last] += 1


# ---- the best channel of a row


@compiled
def best_channel(
    net: NetRows, state: State, row: Position, stamp: int, s: Scratch
) -> tuple[int, float]:
    """The channel on which a message of the row crosses the fewest links, and how many.

    ``stamp`` must be another one at each call.
    """
    source, met = net.source[row], 0
    for k in range(net.starts[row], net.starts[row + 1]):
        host = net.hosts[k]
        worth = net.beside[row] * net.copies[k] * path(net, source, host)
        last = state.block[host]
        while last >= 0:
            for j in state.lists[last * BLOCK : last * BLOCK + state.filled[last]]:
                if s.met[j] != stamp:
                    s.met[j], s.saved[j], s.touched[met] = stamp, 0.0, j
                    met += 1
                s.saved[j] += worth
            last = state.before[last]
    last = state.block[source]
    while last >= 0:
        for j in state.lists[last * BLOCK : last * BLOCK + state.filled[last]]:
            s.own[j] = stamp
        last = state.before[last]
    alone = net.beside[row] * unicast_links(net, row)
    best, fewest = NONE, alone
    for j in s.touched[:met]:
        links = state.links[j] + alone - s.saved[j]
        if links < fewest and s.own[j] != stamp:
            links += 1 + to_tree(net, state.bits[j], net.at[source])
        if links < fewest or (links == fewest and best != NONE and j < best):
            best, fewest = j, links
    return best, fewest


@compiled
def to_tree(net: NetRows, tree: Words, switch: int) -> int:
    """Links from a switch to the nearest one of a tree."""
    if has_bit(tree, switch):
        return 0
    nearest = len(net.limit)
    for other in range(len(net.limit)):
        if has_bit(tree, other):
            nearest = min(nearest, net.depth[switch, other])
    return nearest


@compiled(parallel=True)
def settle(net: NetRows, state: State) -> tuple[Ints, Floats]:
    """The best channel of every row, and the links that a message of it crosses."""
    size = len(net.messages)
    choice, links = np.empty(size, np.int32), np.empty(size)
    for chunk in numba.prange(CHUNKS):
        s = make_scratch(net, state.totals[0] + 1)
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            choice[row], links[row] = best_channel(net, state, row, row, s)
    return choice, links


# ---- opening channels


@compiled
def open_channels(
    net: NetRows, state: State, key: Floats, least: Floats, turn: Ints, most: int
) -> None:
    """Open channels for single rows, that which saves most per entry first.

    ``least`` is what a row costs on its best tree, its entries included.
    """
    s = make_scratch(net, len(state.root))
    heap = [(-key[row], np.int64(row)) for row in range(len(key)) if key[row] > 0]
    heapq.heapify(heap)
    looks, stamp = np.zeros(len(key), np.int8), 0
    while heap and state.totals[0] < min(most, len(state.root)):
        _, row = heapq.heappop(heap)
        stamp += 1
        hosts = net.hosts[net.starts[row] : net.starts[row + 1]]
        if state.starts[state.totals[0]] + len(hosts) > len(state.members):
            continue
        _, links = best_channel(net, state, row, stamp, s)
        if net.messages[row] * links <= least[row]:
            continue
        root, kept, count = fit(net, state, hosts, turn[row], s)
        if root < 0:
            continue
        saved = net.messages[row] * (links - own_links(net, row, s.kept[:kept], s, count))
        found = s.found[:count]
        worth = (saved - others_loss(net, state, found)) / tree_price(net, state, found)
        if not worth > 0:
            continue
        if heap and worth < -heap[0][0]:
            looks[row] += 1
            if looks[row] < LOOKS:
                heapq.heappush(heap, (-worth, row))
            continue
        add_channel(state, root, s.kept[:kept].copy(), s, count)


@compiled
def own_links(net: NetRows, row: Position, kept: Ints, s: Scratch, count: int) -> float:
    """Links that a message of a row crosses on the tree at hand, with unicast to all others."""
    source, at, inside = net.source[row], 0, False
    links = float(len(kept) + count - 1)
    for k in range(net.starts[row], net.starts[row + 1]):
        host = net.hosts[k]
        if at < len(kept) and kept[at] == host:
            at += 1
            inside |= host == source
        else:
            links += net.beside[row] * net.copies[k] * path(net, source, host)
    if not inside:
        nearest = len(net.limit)
        for other in s.found[:count]:
            nearest = min(nearest, net.depth[net.at[source], other])
        links += 1 + nearest
    return links


@compiled
def first_come(net: NetRows, state: State, turn: Ints) -> Ints:
    """A tree for each row in turn that has room for all of it."""
    s = make_scratch(net, len(state.root))
    choice = np.full(len(turn), NONE, np.int32)
    for row in turn:
        hosts = net.hosts[net.starts[row] : net.starts[row + 1]]
        if len(hosts) < LEAST or state.totals[0] == len(state.root):
            continue
        if (state.used[net.at[hosts]] >= net.limit[net.at[hosts]]).any():
            continue
        root, count = fit_all(net, state, hosts, turn[row], s)
        if root >= 0:
            choice[row] = state.totals[0]
            add_channel(state, root, hosts, s, count)
    return choice


# ---- shaping channels


def mold(
    net: NetRows, state: State, choice: Ints, saved: Floats, turn: Ints, channels: int
) -> State:
    """The channels anew, each of the hosts that pay for the rows settled on it.

    Those that ``saved`` least for their entries are closed: what is opened next may save more.
    """
    new, count = no_channels(net, channels), int(state.totals[0])
    new.used[:] = state.used
    worth = np.bincount(choice + 1, saved, count + 1)[1:] / channel_prices(net, state)
    closed = worth <= (np.quantile(worth, CLOSED) if count else 0.0)
    starts, rows = listed_by(choice + 1, count + 1)
    mold_all(net, state, new, starts, rows, turn, closed)
    return new


@compiled
def channel_prices(net: NetRows, state: State) -> Floats:
    """What the entries of each channel are worth."""
    prices = np.zeros(state.totals[0])
    for j in range(len(prices)):
        for here in range(len(net.limit)):
            if has_bit(state.bits[j], here):
                prices[j] += entry_price(net, state, here)
    return prices


@compiled
def entry_price(net: NetRows, state: State, switch: int) -> float:
    """The dearer, the fuller the table is: what is scarce goes to who saves most with it."""
    return float(2.0 ** (DEAR * state.used[switch] / max(net.limit[switch], 1)))


@compiled
def tree_price(net: NetRows, state: State, switches: Ints) -> float:
    total = 0.0
    for here in switches:
        total += entry_price(net, state, here)
    return total


@compiled
def others_loss(net: NetRows, state: State, switches: Ints) -> float:
    """What entries of these switches are worth to others."""
    total = 0.0
    for here in switches:
        total += net.price[here, min(STEPS - 1, STEPS * state.used[here] // net.limit[here])]
    return total


@compiled
def mold_all(
    net: NetRows,
    state: State,
    new: State,
    starts: Longs,
    rows: Longs,
    turn: Ints,
    closed: Bools,
) -> None:
    s = make_scratch(net, len(state.root) + 1)
    worth, seen = np.zeros(len(net.at)), np.full(len(net.at), -1, np.int64)
    hosts, at_switch = np.empty(len(net.at), np.int32), np.zeros(len(net.limit))
    for j in range(state.totals[0]):
        old = state.members[state.starts[j] : state.starts[j + 1]]
        mine = rows[starts[j + 1] : starts[j + 2]]
        release(state.bits[j], new.used)
        if not len(mine) or closed[j]:
            continue
        rate, count = weigh_hosts(net, mine, worth, seen, j, hosts)
        wanted = paying(net, hosts[:count], worth, rate, at_switch)
        root, kept, switches = -1, 0, 0
        if len(wanted) >= LEAST:
            root, kept, switches = fit(net, new, wanted, turn[mine[0]], s)
        still = old[seen[old] == j]
        before = rows_cost(net, mine, old, state.links[j], state.bits[j], seen, j)
        if root >= 0:
            tree = np.zeros_like(state.bits[j])
            for here in s.found[:switches]:
                set_bit(tree, here)
            own = s.kept[:kept].copy()
            after = rows_cost(net, mine, own, kept + switches - 1, tree, seen, j)
            if after <= before:
                add_channel(new, root, own, s, switches)
                continue
        if len(still) >= LEAST:
            switches, _ = hang(net, state.root[j], still, s)
            add_channel(new, state.root[j], still, s, switches)


@compiled
def weigh_hosts(
    net: NetRows, rows: Longs, worth: Floats, seen: Longs, channel: int, hosts: Ints
) -> tuple[float, int]:
    """The traffic of rows, and the hosts that want them with what unicast to each would cost."""
    rate, count = 0.0, 0
    for row in rows:
        rate += net.messages[row]
        for k in range(net.starts[row], net.starts[row + 1]):
            host = net.hosts[k]
            if seen[host] != channel:
                seen[host], worth[host], hosts[count] = channel, 0.0, host
                count += 1
            length = net.beside[row] * path(net, net.source[row], host)
            worth[host] += net.messages[row] * net.copies[k] * length
    return rate, count


@compiled
def release(tree: Words, used: Longs) -> None:
    for here in range(len(used)):
        used[here] -= has_bit(tree, here)


@compiled
def paying(net: NetRows, hosts: Ints, worth: Floats, rate: float, at_switch: Floats) -> Ints:
    """Hosts that save more than their link costs, at switches that save more than theirs."""
    for host in hosts:
        at_switch[net.at[host]] = 0.0
    for host in hosts:
        at_switch[net.at[host]] += max(0.0, worth[host] - rate)
    pays = (worth[hosts] > rate) & (at_switch[net.at[hosts]] > rate + net.price[net.at[hosts], 0])
    return np.sort(hosts[pays])


@compiled
def rows_cost(
    net: NetRows,
    rows: Longs,
    members: Ints,
    links: int,
    tree: Words,
    seen: Longs,
    channel: int,
) -> float:
    """Messages times links of rows on a channel of these members. Leaves ``seen`` unusable."""
    stamp, total = -2 - channel, 0.0
    for host in members:
        seen[host] = stamp
    for row in rows:
        source, own = net.source[row], float(links)
        if seen[source] != stamp:
            own += 1 + to_tree(net, tree, net.at[source])
        for k in range(net.starts[row], net.starts[row + 1]):
            if seen[net.hosts[k]] != stamp:
                own += net.beside[row] * net.copies[k] * path(net, source, net.hosts[k])
        total += net.messages[row] * own
    for host in members:
        seen[host] = -1
    return total


def trimmed(net: NetRows, trees: Trees, choice: Ints) -> tuple[Trees, Ints]:
    """Trees of hosts that want something on them, numbered anew; too small ones are closed."""
    starts, rows = listed_by(choice + 1, len(trees.root) + 1)
    sizes, members = wanted_members(net, trees, starts, rows)
    kept = sizes >= LEAST
    number = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE).astype(np.int32)
    hosts = members[np.repeat(kept, sizes)]
    return Trees(trees.root[kept], starts_of(sizes[kept]), hosts), number[choice]


@compiled
def wanted_members(net: NetRows, trees: Trees, starts: Longs, rows: Longs) -> tuple[Longs, Ints]:
    """The members of each channel that want a row of it."""
    sizes, members = np.zeros(len(trees.root), np.int64), np.empty(len(trees.hosts), np.int32)
    wanted, at = np.full(len(net.at), -1, np.int64), 0
    for j in range(len(trees.root)):
        for row in rows[starts[j + 1] : starts[j + 2]]:
            for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
                wanted[host] = j
        for host in trees.hosts[trees.starts[j] : trees.starts[j + 1]]:
            if wanted[host] == j:
                members[at] = host
                at += 1
                sizes[j] += 1
    return sizes, members[:at]
