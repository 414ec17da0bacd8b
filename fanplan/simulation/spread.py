"""Where messages go: for every route, the brokers it visits and the copies each of them sends.

Content-based routing follows the reverse paths of subscriptions. On a tree that is the smallest
subtree that holds the source and all destinations: one copy per link, parted only where paths part.
The event loop knows nothing but these tables, so another way of routing is another table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.network.brokers import Rooted, Routes
from fanplan.network.trees import hang_tree


@dataclass(frozen=True, eq=False)
class SimulatedNetwork:
    """Brokers and the links that messages may take, in both directions.

    ``links`` has a row of two positions per link. ``latency_ms`` delays a message;
    ``transmission_ms`` keeps one direction of the link busy, 0 if bandwidth is not limited.
    ``assumed`` says which latencies are not known, nothing if all are.
    """

    brokers: int
    links: Ints
    latency_ms: Floats
    transmission_ms: Floats
    assumed: Bools | None = None


@dataclass(frozen=True, eq=False)
class RouteTree:
    """Links, as positions in a network, that form a tree of some or all brokers.

    ``matched_once``: messages are matched where they enter, and not again at every broker. A
    group's own tree is such a one; its links may be shortcuts that bypass brokers.
    """

    links: Longs
    matched_once: bool = False


# One record per visit, so that an event finds all it needs in one place of memory.
VISIT = np.dtype(
    [
        ("first", np.int64),
        ("broker", np.int32),
        ("link", np.int32),
        ("copies", np.int32),
        ("load", np.int32),
        ("arrives", np.uint8),
        ("matched", np.uint8),
        ("serves", np.uint8),
    ],
    align=True,
)


class RouteVisits(NamedTuple):
    """The visits of all routes. Visit ``starts[r]`` of route r is its source.

    The copies that a visit causes are the visits ``first`` to ``first + copies - 1``. ``link`` is
    the link by which a visit comes: 2·l from the first end of link l, 2·l + 1 from its second, -1
    at the source. ``arrives``: a subscriber there wants it; ``matched``: it is matched there;
    ``serves``: it goes on from there to subscribers, which takes no part in the run. ``load`` is
    what a message counts for in the load of the broker.
    """

    starts: Longs
    visits: np.ndarray


def spread_routes(
    network: SimulatedNetwork,
    routes: Routes,
    trees: Sequence[RouteTree],
    tree_of: Longs | None = None,
) -> RouteVisits:
    """Tables of visits; route r takes ``trees[tree_of[r]]``, or the first tree.

    Time and memory O(routes × brokers they visit).
    """
    chosen = np.zeros(len(routes), np.int64) if tree_of is None else tree_of
    hung = [hang_route(network, tree) for tree in trees]
    ends = RouteEnds(routes.source, routes.starts, routes.brokers)
    sizes = np.zeros(len(routes) + 1, np.int64)
    for number, tree in enumerate(hung):
        mine = np.flatnonzero(chosen == number)
        require_reached(tree, routes, mine)
        sizes[mine + 1] = count_visits(tree, mine, ends)
    starts = np.cumsum(sizes)
    ways = RouteVisits(starts, np.zeros(starts[-1], VISIT))
    for number, tree in enumerate(hung):
        mine = np.flatnonzero(chosen == number)
        fill_visits(ways, tree, network.links, mine, ends, trees[number].matched_once)
    return ways


def load_by_matches(ways: RouteVisits, routes: Routes, matches: Longs) -> None:
    """Let a message from elsewhere count once for each subscriber that it matches at a broker.

    Tajuddin (2011), Eq. 6.2, where a message that is published locally counts once. ``matches`` is
    in the order of the destinations of the routes.
    """
    size = int(routes.brokers.max(initial=0)) + 1
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    known = row * size + routes.brokers
    at = np.flatnonzero(ways.visits["arrives"] & (ways.visits["link"] >= 0))
    route = np.searchsorted(ways.starts, at, side="right") - 1
    asked = route * size + ways.visits["broker"][at]
    ways.visits["load"][at] = matches[np.searchsorted(known, asked)]


def hang_route(network: SimulatedNetwork, tree: RouteTree) -> Rooted:
    """The tree from one of its ends, its links as positions in the network."""
    links = np.asarray(tree.links, np.int64)
    root = int(network.links[links[0], 0]) if len(links) else 0
    hung = hang_tree(network.links[links], root, network.brokers)
    hung.link[hung.order[1:]] = links[hung.link[hung.order[1:]]]
    return hung


def require_reached(tree: Rooted, routes: Routes, mine: Longs) -> None:
    """An error if a route of a tree has an end outside of it."""
    outside = tree.depth < 0
    if not outside.any():
        return
    for route in mine:
        ends = np.append(routes.destinations(route), routes.source[route])
        if outside[ends].any():
            missing = ends[outside[ends]][0]
            what = f"broker {missing} of route {route} is not in the route's tree"
            raise InputError(Problem("tree", what, "Give a tree that has all ends of its routes"))


class RouteEnds(NamedTuple):
    """Routes as compiled code takes them: from ``source[r]`` to ``brokers[starts[r]:…]``."""

    source: Ints
    starts: Longs
    brokers: Ints


class RouteRoom(NamedTuple):
    """Room for one route at a time.

    ``above`` marks the brokers from the source to the root, ``seen`` those the route visits below,
    ``wanted`` its destinations: each by the route's number. The copies that leave broker b are a
    list: the first is ``head[b]``, the one after copy c is ``after[c]``; copy c goes to ``to[c]``.
    """

    above: Longs
    seen: Longs
    wanted: Longs
    head: Longs
    after: Longs
    to: Ints


@compiled
def route_room(brokers: int) -> RouteRoom:
    above, seen, wanted, head, after = np.full((5, brokers), -1, np.int64)
    return RouteRoom(above, seen, wanted, head, after, np.zeros(brokers, np.int32))


@compiled
def count_visits(tree: Rooted, mine: Longs, routes: RouteEnds) -> Longs:
    """How many brokers each of the routes visits."""
    room = route_room(len(tree.parent))
    sizes = np.empty(len(mine), np.int64)
    for i in range(len(mine)):
        sizes[i] = collect_copies(room, tree, mine[i], routes) + 1
    return sizes


@compiled
def collect_copies(room: RouteRoom, tree: Rooted, route: int, routes: RouteEnds) -> int:
    """Find the copies of a route: from destinations up to the path from source to root, and up
    that path as far as one of them meets it. The number of copies.
    """
    parent, depth = tree.parent, tree.depth
    source = routes.source[route]
    here = source
    while here >= 0:
        room.above[here] = route
        here = parent[here]
    copies = 0
    top = source
    for end in routes.brokers[routes.starts[route] : routes.starts[route + 1]]:
        room.wanted[end] = route
        here = end
        while room.above[here] != route and room.seen[here] != route:
            room.seen[here] = route
            add_copy(room, copies, parent[here], here)
            copies += 1
            here = parent[here]
        if room.above[here] == route and depth[here] < depth[top]:
            top = here
    here = source
    while here != top:
        add_copy(room, copies, here, parent[here])
        copies += 1
        here = parent[here]
    return copies


@compiled
def add_copy(room: RouteRoom, copy: int, sender: int, receiver: int) -> None:
    room.to[copy] = receiver
    room.after[copy] = room.head[sender]
    room.head[sender] = copy


@compiled
def fill_visits(
    ways: RouteVisits, tree: Rooted, links: Ints, mine: Longs, routes: RouteEnds, matched_once: bool
) -> None:
    """Write the visits of some routes, breadth first, so that the copies of a visit adjoin."""
    room = route_room(len(tree.parent))
    for route in mine:
        collect_copies(room, tree, route, routes)
        begin = ways.starts[route]
        ways.visits[begin].broker, ways.visits[begin].link = routes.source[route], -1
        free = begin + 1
        for at in range(begin, ways.starts[route + 1]):
            visit = ways.visits[at]
            here = visit.broker
            visit.first = free
            visit.arrives = room.wanted[here] == route
            visit.matched = at == begin or not matched_once
            visit.load = 1
            copy = room.head[here]
            while copy >= 0:
                there = room.to[copy]
                link = tree.link[there] if tree.parent[there] == here else tree.link[here]
                ways.visits[free].broker = there
                ways.visits[free].link = 2 * link + (links[link, 0] != here)
                free += 1
                copy = room.after[copy]
            visit.copies = free - visit.first
            room.head[here] = -1


@compiled
def idle_delays(ways: RouteVisits, latency_ms: Floats) -> Floats:
    """When each visit is where nothing but the latency of links takes time, from entry on."""
    delays = np.zeros(len(ways.visits))
    for at in range(len(ways.visits)):
        visit = ways.visits[at]
        for copy in range(visit.first, visit.first + visit.copies):
            delays[copy] = delays[at] + latency_ms[ways.visits[copy].link >> 1]
    return delays
