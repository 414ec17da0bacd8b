"""Channels at one switch each: an entry in its table, and none elsewhere.

A row takes any number of them beside its tree: one copy for several hosts instead of one for each.
Rows of all senders share them, so the table of a switch is a book of sets of its hosts, and what a
row wants there is put together from it. *Cover*: of the sets that are left, the one that saves most
comes next. *Learn*: rows are covered; every set then takes the hosts that pay for themselves among
the rows that chose it; sets that save least give way to others, of hosts that are still served one
by one. Hosts of a switch are bits of words: of more than 64 there are several *corners*.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import NONE, Bytes, Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import lowest_bit, mix, popcount
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.traffic import STEPS, Carried, NetRows, Trees

BITS = 64
GLANCE, STUDY = (4096, 6), (16_384, 12)
"""Most rows at a corner that sets are learned from, and in how many rounds: to find out what
entries are worth, and for good."""
FRESH = 4
"""One set in so many is a new one in each round."""
PICKS = 32
"""Most sets that a row is covered with at a corner."""
MOST = 1 << 14
"""Sets of a corner: no table is larger than that for them."""


class Corners(NamedTuple):
    """Of each host its corner and its place there; of each corner its switch and its hosts."""

    of: Ints
    place: Ints
    switch: Ints
    hosts: Ints


class Wants(NamedTuple):
    """Rows that want several hosts of corner c: from ``starts[c]`` on, with the hosts as bits."""

    starts: Longs
    row: Ints
    hosts: Words


class Book(NamedTuple):
    """Sets of hosts of corner c: ``sets[starts[c]:starts[c + 1]]``, and what they save."""

    starts: Longs
    sets: Words
    saved: Floats


def corners_of(net: NetRows) -> Corners:
    """Hosts of a switch in their order, so many at a time."""
    order = np.argsort(net.at, kind="stable")
    first = np.searchsorted(net.at[order], net.at[order])
    inside = np.arange(len(order)) - first
    new = inside % BITS == 0
    of, place = np.empty((2, len(order)), np.int32)
    of[order], place[order] = np.cumsum(new) - 1, inside % BITS
    hosts = np.full((int(new.sum()), BITS), NONE, np.int32)
    hosts[of, place] = np.arange(len(order))
    return Corners(of, place, net.at[order][new], hosts)


def wants_of(net: NetRows, corners: Corners, trees: Trees, channel: Ints) -> Wants:
    """What rows want beside their trees; rows with the channel -2 are left out."""
    size = len(corners.switch)
    count = np.zeros(size + 1, np.int64)
    nothing = Wants(count, np.empty(0, np.int32), np.empty(0, np.uint64))
    list_wants(net, corners, trees, channel, nothing, count[1:])
    starts = np.cumsum(count)
    wants = Wants(starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint64))
    list_wants(net, corners, trees, channel, wants, starts[:-1].copy())
    return wants


@compiled
def list_wants(
    net: NetRows, corners: Corners, trees: Trees, channel: Ints, wants: Wants, place: Longs
) -> None:
    """Counts the rows at each corner, or writes them down where there is room."""
    member = np.full(len(net.at), NONE, np.int64)
    hosts, met = np.zeros(len(corners.switch), np.uint64), np.empty(len(net.at), np.int32)
    for row in range(len(net.messages)):
        if channel[row] < NONE:
            continue
        if channel[row] >= 0:
            for host in trees.hosts[trees.starts[channel[row]] : trees.starts[channel[row] + 1]]:
                member[host] = row
        for corner in met[: hosts_left(net, corners, row, member, hosts, met)]:
            if popcount(hosts[corner]) > 1:
                if len(wants.row):
                    wants.row[place[corner]] = row
                    wants.hosts[place[corner]] = hosts[corner]
                place[corner] += 1
            hosts[corner] = 0


@compiled
def hosts_left(
    net: NetRows, corners: Corners, row: int, member: Longs, hosts: Words, met: Ints
) -> int:
    """How many corners a row has hosts at that are no members of its tree; ``met`` has them."""
    count = 0
    for host in net.hosts[net.starts[row] : net.starts[row + 1]]:
        if member[host] != row and host != net.source[row]:
            corner = corners.of[host]
            if hosts[corner] == 0:
                met[count] = corner
                count += 1
            hosts[corner] |= np.uint64(1) << np.uint64(corners.place[host])
    return count


# ---- covering


class Desk(NamedTuple):
    """Room to work in: sets that may save something, and those chosen."""

    able: Ints
    picked: Ints


@compiled
def cover(
    sets: Words, wanted: np.uint64, sent: int, own: np.uint64, desk: Desk
) -> tuple[int, int, np.uint64]:
    """Sets that save most, one after the other: (how many, links saved, hosts left).

    A copy crosses ``sent`` links to the switch; the sender, if it is here, is ``own``. No host that
    wants the row gets it twice.
    """
    able, best, most = 0, 0, 0
    for i in range(len(sets)):
        gain = gain_of(sets[i], wanted, sent, own)
        if gain > 0:
            desk.able[able] = i
            able += 1
            if gain > most:
                best, most = i, gain
    rest, total, picked = wanted, 0, 0
    while most > 0:
        desk.picked[picked] = best
        picked, total, rest = picked + 1, total + most, rest & ~sets[best]
        if picked == len(desk.picked):
            break
        left, most = 0, 0
        for i in desk.able[:able]:
            gain = gain_of(sets[i], rest, sent, own)
            if gain > 0 and sets[i] & wanted & ~rest == 0:
                desk.able[left] = i
                left += 1
                if gain > most:
                    best, most = i, gain
        able = left
    return picked, total, rest


@compiled
def gain_of(hosts: np.uint64, wanted: np.uint64, sent: int, own: np.uint64) -> int:
    """Links that one copy for these hosts saves."""
    served, all = np.int64(popcount(hosts & wanted)), np.int64(popcount(hosts))
    return int((sent + 1) * served - sent - all + (1 if hosts & own else 0))


@compiled
def sender(net: NetRows, corners: Corners, row: int, corner: int) -> tuple[int, np.uint64]:
    """Links from the source of a row to the switch of a corner, and the source's bit there."""
    source = net.source[row]
    sent = 1 + net.depth[net.at[source], corners.switch[corner]]
    if corners.of[source] != corner:
        return sent, np.uint64(0)
    return sent, np.uint64(1) << np.uint64(corners.place[source])


# ---- learning


def learn(
    net: NetRows, corners: Corners, wants: Wants, room: Longs, effort: tuple[int, int]
) -> Book:
    """The sets of each corner; ``room`` is what is left in the tables of switches."""
    rows = np.diff(wants.starts)
    at_switch = np.bincount(corners.switch, rows, len(room))[corners.switch]
    room = np.minimum(room, MOST)[corners.switch]
    most = np.floor(room * rows / np.maximum(at_switch, 1)).astype(np.int64)
    sets = np.zeros((len(most), int(most.max(initial=0))), np.uint64)
    saved = np.zeros(sets.shape)
    learn_all(net, corners, wants, most, effort, sets, saved)
    kept = saved > 0
    return Book(starts_of(kept.sum(axis=1)), sets[kept], saved[kept])


@compiled(parallel=True)
def learn_all(
    net: NetRows,
    corners: Corners,
    wants: Wants,
    most: Longs,
    effort: tuple[int, int],
    sets: Words,
    saved: Floats,
) -> None:
    for corner in numba.prange(len(most)):
        if most[corner] > 0:
            found, gain = learn_corner(net, corners, wants, corner, most[corner], effort)
            sets[corner, : len(found)] = found
            saved[corner, : len(found)] = gain


@compiled
def learn_corner(
    net: NetRows, corners: Corners, wants: Wants, corner: int, most: int, effort: tuple[int, int]
) -> tuple[Words, Floats]:
    """Sets of hosts of a corner, and what each saves."""
    first, size = wants.starts[corner], wants.starts[corner + 1] - wants.starts[corner]
    count, rounds = min(size, effort[0]), effort[1]
    some = first + np.arange(count) * size // max(count, 1)
    rest = wants.hosts[some]
    sets, gain = fresh_sets(net, wants, some, rest, most, 0), np.zeros(0)
    for turn in range(rounds):
        gain, weight, credit = use_sets(net, corners, wants, corner, some, sets, rest)
        best = np.argsort(-gain)[:most]
        best = best[gain[best] > 0]
        if turn == rounds - 1:
            return sets[best], gain[best] * size / max(count, 1)
        shape(sets, weight, credit)
        more = fresh_sets(net, wants, some, rest, max(most // FRESH, 1), turn + 1)
        sets = np.append(sets[best], more)
    return sets, gain


@compiled
def use_sets(
    net: NetRows, corners: Corners, wants: Wants, corner: int, some: Longs, sets: Words, rest: Words
) -> tuple[Floats, Floats, Floats]:
    """Cover rows: what each set saves, of how many messages, and what its hosts would cost alone.

    Hosts that no set serves are left in ``rest``.
    """
    gain, weight, credit = np.zeros(len(sets)), np.zeros(len(sets)), np.zeros((len(sets), BITS))
    desk = Desk(np.empty(len(sets), np.int32), np.empty(PICKS, np.int32))
    for i in range(len(some)):
        row, wanted = wants.row[some[i]], wants.hosts[some[i]]
        sent, own = sender(net, corners, row, corner)
        picked, _, rest[i] = cover(sets, wanted, sent, own, desk)
        left = wanted
        for j in desk.picked[:picked]:
            gain[j] += net.messages[row] * gain_of(sets[j], left, sent, own)
            weight[j] += net.messages[row]
            hosts = rest[i] | (left & sets[j])
            left &= ~sets[j]
            while hosts:
                credit[j, lowest_bit(hosts)] += net.messages[row] * (sent + 1)
                hosts &= hosts - np.uint64(1)
    return gain, weight, credit


@compiled
def shape(sets: Words, weight: Floats, credit: Floats) -> None:
    """Every set takes the hosts that pay for their links."""
    for j in range(len(sets)):
        hosts = np.uint64(0)
        for place in range(BITS):
            if credit[j, place] > weight[j]:
                hosts |= np.uint64(1) << np.uint64(place)
        if popcount(hosts) > 1:
            sets[j] = hosts


@compiled
def fresh_sets(net: NetRows, wants: Wants, some: Longs, rest: Words, most: int, turn: int) -> Words:
    """Half of them the pairs that are wanted together most, half what some row still wants."""
    pairs = np.zeros(BITS * BITS)
    sets, found = np.empty(most, np.uint64), 0
    for i in range(len(some)):
        one = rest[i]
        while one:
            a, one = lowest_bit(one), one & (one - np.uint64(1))
            two = one
            while two:
                pairs[a * BITS + lowest_bit(two)] += net.messages[wants.row[some[i]]]
                two &= two - np.uint64(1)
    for draw in range(4 * most):
        if found < most // 2 and len(some):
            drawn = rest[mix(np.uint64(turn * 4 * most + draw)) % np.uint64(len(some))]
            if popcount(drawn) > 2:
                sets[found] = drawn
                found += 1
    for pair in np.argsort(-pairs)[: most - found]:
        if pairs[pair] > 0:
            a, b = np.uint64(pair // BITS), np.uint64(pair % BITS)
            sets[found] = (np.uint64(1) << a) | (np.uint64(1) << b)
            found += 1
    return sets[:found]


def entry_values(corners: Corners, book: Book, limit: Longs) -> Floats:
    """What entries of each switch are worth to its sets, the least first: who takes some of a table
    takes them from the weakest."""
    values, switch = np.zeros((len(limit), STEPS)), corners.switch[set_corners(corners, book)]
    order = np.lexsort((book.saved, switch))
    bounds = np.searchsorted(switch[order], np.arange(len(limit) + 1))
    for s in np.unique(switch):
        saved = book.saved[order[bounds[s] : bounds[s + 1]]]
        place = np.arange(STEPS) * min(limit[s], MOST) // STEPS - min(limit[s], MOST) + len(saved)
        values[s] = np.where(place >= 0, saved[np.maximum(place, 0)], 0.0)
    return values


def within(corners: Corners, book: Book, room: Longs) -> Book:
    """The best sets of each switch that fit what is left of its table."""
    switch = corners.switch[set_corners(corners, book)]
    order = np.lexsort((-book.saved, switch))
    rank = np.arange(len(order)) - np.searchsorted(switch[order], switch[order])
    return some_sets(book, np.sort(order[rank < room[switch[order]]]))


def best_sets(book: Book, most: int) -> Book:
    """At most so many sets, those that save most."""
    return some_sets(book, np.sort(np.argsort(-book.saved, kind="stable")[: max(most, 0)]))


def some_sets(book: Book, chosen: Longs) -> Book:
    return Book(np.searchsorted(chosen, book.starts), book.sets[chosen], book.saved[chosen])


def set_corners(corners: Corners, book: Book) -> Longs:
    return np.repeat(np.arange(len(corners.switch)), np.diff(book.starts))


# ---- what rows take of it


def row_savings(net: NetRows, corners: Corners, wants: Wants, book: Book) -> Floats:
    """Links that a message of each row saves."""
    saved, _ = local_links(net, corners, wants, book)
    return np.bincount(wants.row, saved, len(net.messages)).astype(np.float64)


@compiled(parallel=True)
def local_links(net: NetRows, corners: Corners, wants: Wants, book: Book) -> tuple[Ints, Bytes]:
    """Links that are saved where each row wants something, and how many sets it takes."""
    saved, count = np.zeros(len(wants.row), np.int32), np.zeros(len(wants.row), np.uint8)
    for corner in numba.prange(len(corners.switch)):
        sets = book.sets[book.starts[corner] : book.starts[corner + 1]]
        desk = Desk(np.empty(len(sets), np.int32), np.empty(PICKS, np.int32))
        for i in range(wants.starts[corner], wants.starts[corner + 1]):
            sent, own = sender(net, corners, wants.row[i], corner)
            count[i], saved[i], _ = cover(sets, wants.hosts[i], sent, own, desk)
    return saved, count


def placed(
    net: NetRows, corners: Corners, book: Book, trees: Trees, channel: Ints
) -> tuple[Trees, Carried]:
    """The trees and the sets that are in use, and the channels of each row."""
    wants = wants_of(net, corners, trees, channel)
    _, count = local_links(net, corners, wants, book)
    own = np.bincount(wants.row, count, len(channel)).astype(np.int64)
    starts = starts_of(own + (channel != NONE))
    channels, used = np.empty(starts[-1], np.int32), np.zeros(len(book.sets), np.uint64)
    place = starts[:-1].copy()
    channels[place[channel != NONE]] = channel[channel != NONE]
    place[channel != NONE] += 1
    take_sets(net, corners, wants, book, len(trees.root), place, channels, used)
    kept = used != 0
    number = np.append(np.arange(len(trees.root)), len(trees.root) + np.cumsum(kept) - 1)
    corner = set_corners(corners, book)[kept]
    sizes, hosts = set_hosts(corners, corner, used[kept])
    both = Trees(
        np.append(trees.root, corners.switch[corner]).astype(np.int32),
        starts_of(np.append(np.diff(trees.starts), sizes)),
        np.append(trees.hosts, hosts).astype(np.int32),
    )
    return both, Carried(starts, number[channels].astype(np.int32))


@compiled
def take_sets(
    net: NetRows,
    corners: Corners,
    wants: Wants,
    book: Book,
    first: int,
    place: Longs,
    channels: Ints,
    used: Words,
) -> None:
    """Write the sets of each row down, numbered from ``first`` on, and who wants them."""
    for corner in range(len(corners.switch)):
        start = book.starts[corner]
        sets = book.sets[start : book.starts[corner + 1]]
        desk = Desk(np.empty(len(sets), np.int32), np.empty(PICKS, np.int32))
        for i in range(wants.starts[corner], wants.starts[corner + 1]):
            row = wants.row[i]
            sent, own = sender(net, corners, row, corner)
            picked, _, _ = cover(sets, wants.hosts[i], sent, own, desk)
            for j in desk.picked[:picked]:
                channels[place[row]] = first + start + j
                place[row] += 1
                used[start + j] |= sets[j] & wants.hosts[i]


@compiled
def set_hosts(corners: Corners, corner: Longs, sets: Words) -> tuple[Longs, Ints]:
    """The hosts of sets, one after the other, and how many each has."""
    sizes = np.zeros(len(sets), np.int64)
    for j in range(len(sets)):
        sizes[j] = popcount(sets[j])
    hosts, at = np.empty(sizes.sum(), np.int32), 0
    for j in range(len(sets)):
        left = sets[j]
        while left:
            hosts[at] = corners.hosts[corner[j], lowest_bit(left)]
            left &= left - np.uint64(1)
            at += 1
    return sizes, hosts
