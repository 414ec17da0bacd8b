"""Greedy merge: the link that joins most parts of topics comes first (Chockler et al. 2007).

A pair of nodes gains one for each common topic in which the two are still apart. Gains only fall
as links are added. So pairs wait in lists by the gain that was last counted, the list of the
greatest gain is gone through, and a pair that gains less by now goes to a lower list. That is the
same choice, link by link, as looking at all pairs before each link.

Pairs are many, so lists are made for one range of gains at a time, by the gains of that moment.
Where no pair gains more than one, links that join two parts are all alike, and none is listed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Ints, Longs
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.mesh.problem import Wants

LISTED = 10_000_000
"""Pairs that are listed at a time, at most, unless more of them gain the same."""


class Parts(NamedTuple):
    """Which wants are connected: ``part`` of each member of each topic, ``after`` the next member
    of the same part, round and round, ``size`` by part. ``degree`` counts the links of nodes.
    """

    part: Longs
    after: Longs
    size: Longs
    degree: Ints


def apart(wants: Wants) -> Parts:
    """Nobody is linked."""
    alone = np.arange(len(wants.node))
    nodes = len(wants.at) - 1
    return Parts(alone, alone.copy(), np.ones(len(alone), np.int64), np.zeros(nodes, np.int32))


def greedy_merge(wants: Wants, seed: int, stop: Stop) -> Longs:
    """Links as pairs u · nodes + v, u < v, in the order in which they were chosen.

    O(Σ members² of topics · ranges of gains + pairs · their falls · topics of a node).
    """
    return merge_from(wants, len(wants.at), seed, stop)


def flat_merge(wants: Wants, seed: int, stop: Stop) -> Longs:
    """Lowest degrees first: greedy merge among pairs that keep the greatest degree where it is.

    The greatest degree is raised by one when there is no such pair (Onus and Richa 2009).
    """
    return merge_from(wants, 1, seed, stop)


def merge_from(wants: Wants, most: int, seed: int, stop: Stop) -> Longs:
    """Greedy merge with at most this many links a node, or as many more as it comes to need."""
    parts = apart(wants)
    links = [merge_parts(wants, parts, most, seed, stop)]
    while not connected(wants, parts):
        most += 1
        links.append(merge_parts(wants, parts, most, seed, stop))
    return np.concatenate(links)


def degrees_of(links: Longs, nodes: int) -> Longs:
    """How many links each node has."""
    return np.bincount(np.concatenate((links // nodes, links % nodes)), minlength=nodes)


def merge_parts(wants: Wants, parts: Parts, most: int, seed: int, stop: Stop) -> Longs:
    """Join parts until none can be joined between nodes of fewer than ``most`` links.

    Told to stop, it no longer asks which link gains most.
    """
    made, gains = list[Longs](), gains_of_pairs(wants, parts, most)
    while (top := len(gains) - 1) > 1 and not stop(float(sum(map(len, made)))):
        above = np.cumsum(gains[::-1])[::-1]
        low = max(2, int(np.argmax(above <= max(LISTED, gains[top]))))
        made += merge_range(wants, parts, (low, top), most, seed)
        gains = gains_of_pairs(wants, parts, most) if low > 2 else gains[:1]
    while len(last := merge_singles(wants, parts, most)):
        made.append(last)
    return np.concatenate([np.empty(0, np.int64), *made])


def merge_range(
    wants: Wants, parts: Parts, gains: tuple[int, int], most: int, seed: int
) -> list[Longs]:
    """All links that gain between two numbers, from above."""
    low, top = gains
    lists: list[list[Longs]] = [[] for _ in range(top + 1)]
    pairs, gain = pairs_gaining(wants, parts, low, most)
    made = []
    sort_to(lists, pairs, gain, low)
    for now in range(top, low - 1, -1):
        if not lists[now]:
            continue
        pairs = in_drawn_order(np.concatenate(lists[now]), seed)
        lists[now] = []
        gain = np.empty(len(pairs), np.int32)
        links = go_through(wants, parts, pairs, gain, now, most)
        made.append(pairs[links])
        sort_to(lists, pairs, gain, low)
    return made


def sort_to(lists: list[list[Longs]], pairs: Longs, gain: Ints, low: int) -> None:
    """Put pairs to the lists of their gains, if these are not too low."""
    order = np.argsort(gain, kind="stable")
    pairs, gain = pairs[order], gain[order]
    for now in range(low, len(lists)):
        some = pairs[np.searchsorted(gain, now) : np.searchsorted(gain, now, "right")]
        if len(some):
            lists[now].append(some)


def in_drawn_order(pairs: Longs, seed: int) -> Longs:
    """Equal gains are drawn: by position the first nodes would get all links."""
    return pairs[np.argsort(drawn_ranks(pairs, np.uint64(seed)), kind="stable")]


@compiled
def drawn_ranks(pairs: Longs, seed: np.uint64) -> np.ndarray:
    """A number for each pair, the same in every run of a seed."""
    found = np.empty(len(pairs), np.uint64)
    start = mix(seed + np.uint64(1))
    for i in range(len(pairs)):
        found[i] = mix(start ^ np.uint64(pairs[i]))
    return found


# ---- kernels


@compiled
def go_through(
    wants: Wants, parts: Parts, pairs: Longs, gain: Ints, now: int, most: int
) -> np.ndarray:
    """Link the pairs that still gain ``now``; of the others write what they gain."""
    nodes = len(parts.degree)
    linked = np.zeros(len(pairs), np.bool_)
    for i in range(len(pairs)):
        u, v = pairs[i] // nodes, pairs[i] % nodes
        gain[i] = 0
        if parts.degree[u] >= most or parts.degree[v] >= most:
            continue
        gain[i] = gain_of(wants, parts, u, v)
        if gain[i] == now:
            gain[i] = 0
            linked[i] = True
            link(wants, parts, u, v)
    return linked


@compiled
def gain_of(wants: Wants, parts: Parts, u: int, v: int) -> int:
    """Common topics in which two nodes are in different parts."""
    i, j, last, end = wants.at[u], wants.at[v], wants.at[u + 1], wants.at[v + 1]
    gain = 0
    while i < last and j < end:
        if wants.topic[i] == wants.topic[j]:
            gain += parts.part[wants.seat[i]] != parts.part[wants.seat[j]]
            i += 1
            j += 1
        elif wants.topic[i] < wants.topic[j]:
            i += 1
        else:
            j += 1
    return gain


@compiled
def link(wants: Wants, parts: Parts, u: int, v: int) -> None:
    """Join the parts of two nodes in all their common topics."""
    parts.degree[u] += 1
    parts.degree[v] += 1
    i, j, last, end = wants.at[u], wants.at[v], wants.at[u + 1], wants.at[v + 1]
    while i < last and j < end:
        if wants.topic[i] == wants.topic[j]:
            join_parts(parts, wants.seat[i], wants.seat[j])
            i += 1
            j += 1
        elif wants.topic[i] < wants.topic[j]:
            i += 1
        else:
            j += 1


@compiled
def join_parts(parts: Parts, one: int, other: int) -> None:
    """Make two parts one; members of the smaller one are renamed."""
    if parts.part[one] == parts.part[other]:
        return
    if parts.size[parts.part[one]] < parts.size[parts.part[other]]:
        one, other = other, one
    kept, gone = parts.part[one], parts.part[other]
    at = other
    while parts.part[at] != kept:
        parts.part[at] = kept
        at = parts.after[at]
    parts.size[kept] += parts.size[gone]
    parts.after[one], parts.after[other] = parts.after[other], parts.after[one]


@compiled
def add_gains(wants: Wants, parts: Parts, u: int, gain: Ints) -> None:
    """Count what links of a node to later ones gain."""
    for k in range(wants.at[u], wants.at[u + 1]):
        seat, topic = wants.seat[k], wants.topic[k]
        own = parts.part[seat]
        for other in range(seat + 1, wants.first[topic + 1]):
            gain[wants.node[other]] += parts.part[other] != own


@compiled
def gains_of_pairs(wants: Wants, parts: Parts, most: int) -> Longs:
    """How many pairs of nodes with fewer than ``most`` links gain 0, 1, 2, …"""
    nodes = len(parts.degree)
    counts = np.zeros(int(np.diff(wants.at).max()) + 1 if nodes else 1, np.int64)
    gain = np.zeros(nodes, np.int32)
    for u in range(nodes):
        if parts.degree[u] >= most:
            continue
        gain[u:] = 0
        add_gains(wants, parts, u, gain)
        for v in range(u + 1, nodes):
            if gain[v] > 0 and parts.degree[v] < most:
                counts[gain[v]] += 1
    last = len(counts) - 1
    while last > 0 and counts[last] == 0:
        last -= 1
    return counts[: last + 1]


@compiled
def pairs_gaining(wants: Wants, parts: Parts, low: int, most: int) -> tuple[Longs, Ints]:
    """Pairs of nodes with fewer than ``most`` links that gain ``low`` or more, and the gains."""
    nodes = len(parts.degree)
    pairs, gains = np.empty(1024, np.int64), np.empty(1024, np.int32)
    count, gain = 0, np.zeros(nodes, np.int32)
    for u in range(nodes):
        if parts.degree[u] >= most:
            continue
        gain[u:] = 0
        add_gains(wants, parts, u, gain)
        if count + nodes > len(pairs):
            pairs = np.append(pairs, np.empty(len(pairs) + nodes, np.int64))
            gains = np.append(gains, np.empty(len(gains) + nodes, np.int32))
        for v in range(u + 1, nodes):
            if gain[v] >= low and parts.degree[v] < most:
                pairs[count], gains[count] = u * nodes + v, gain[v]
                count += 1
    return pairs[:count], gains[:count]


@compiled
def merge_singles(wants: Wants, parts: Parts, most: int) -> Longs:
    """Join parts, topic by topic, where no link gains more than one; once through all topics."""
    nodes, count = len(parts.degree), 0
    pairs = np.empty(len(wants.node), np.int64)
    for topic in range(len(wants.first) - 1):
        here = -1
        for seat in range(wants.first[topic], wants.first[topic + 1]):
            if parts.degree[wants.node[seat]] >= most:
                continue
            if here >= 0 and parts.degree[wants.node[here]] >= most:
                here = -1
            if here >= 0 and parts.part[here] != parts.part[seat]:
                u, v = wants.node[here], wants.node[seat]
                pairs[count] = min(u, v) * nodes + max(u, v)
                count += 1
                link(wants, parts, u, v)
            here = seat
    return pairs[:count]


@compiled
def connected(wants: Wants, parts: Parts) -> bool:
    """Whether each topic is one part."""
    for topic in range(len(wants.first) - 1):
        start, end = wants.first[topic], wants.first[topic + 1]
        if start < end and parts.size[parts.part[start]] != end - start:
            return False
    return True
