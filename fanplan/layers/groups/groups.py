"""Groups in the simulator: which routes take the tree of a group, and who matches."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints, Longs
from fanplan.data.build import take_audiences
from fanplan.layers.groups.problem.groups import Bools, GroupsProblem
from fanplan.layers.groups.problem.subtrees import shortcuts_of
from fanplan.network.brokers import Routes
from fanplan.simulation.spread import Network, Spread, Tree, spread


def group_ways(
    problem: GroupsProblem, selected: Bools, shortcuts: bool = True, hop_ms: float = 1.0
) -> tuple[Network, Spread]:
    """The network, shortcuts included, and the visits of all routes of a problem.

    A route of a group that is set up goes to all its members, on the group's own tree, and is
    matched where it enters. The others take default routing and are matched by all but the ends of
    the tree (Zhang & Hu 2005, section 5.2.1). Every link takes ``hop_ms``, a shortcut too.
    """
    carrier = carriers(problem, selected)
    trees = [below(parent) for parent in problem.trees.parent]
    once, tree_of = len(trees), problem.tree.astype(np.int64)
    tree_of[carrier >= 0] += once
    trees += trees
    if shortcuts:
        own, groups = shortened(problem, selected)
        number = np.full(problem.size, -1, np.int64)
        number[groups] = len(trees) + np.arange(len(groups))
        mine = np.flatnonzero(carrier >= 0)
        mine = mine[number[carrier[mine]] >= 0]
        tree_of[mine] = number[carrier[mine]]
        trees += own
    ends = np.sort(np.concatenate([*trees, np.empty((0, 2), np.int32)]), axis=1)
    links, place = np.unique(ends, axis=0, return_inverse=True)
    parts = np.split(place.ravel(), np.cumsum([len(tree) for tree in trees]))[:-1]
    network = Network(len(problem.brokers), links, np.full(len(links), hop_ms), 0.0 * links[:, 0])
    chosen = [Tree(part, matched_once=i >= once) for i, part in enumerate(parts)]
    ways = spread(network, sent_to(problem, carrier), chosen, tree_of)
    mind_ends(ways, problem, carrier)
    return network, ways


def carriers(problem: GroupsProblem, selected: Bools) -> Ints:
    """The group that carries each route, −1 for default routing."""
    taken = np.append(selected, False)
    return np.where(taken[problem.group], problem.group, -1).astype(np.int32)


def below(parent: Ints) -> Ints:
    """The links of a tree, as pairs of brokers."""
    child = np.flatnonzero(parent >= 0)
    return np.stack((parent[child], child), axis=1).astype(np.int32)


def shortened(problem: GroupsProblem, selected: Bools) -> tuple[list[Ints], Longs]:
    """The trees with shortcuts of groups that are set up, but for those of a root alone."""
    short = shortcuts_of(problem)
    groups = np.flatnonzero(selected & (np.diff(short.starts) > 0))
    ends = np.stack((short.tail, short.head), axis=1)
    return [ends[short.starts[group] : short.starts[group + 1]] for group in groups], groups


def sent_to(problem: GroupsProblem, carrier: Ints) -> Routes:
    """Routes with the brokers they are sent to: all members of the group that carries them."""
    routes, count = problem.routes, len(problem.routes)
    starts = np.concatenate((routes.starts, routes.starts[-1] + problem.starts[1:]))
    ends = np.concatenate((routes.brokers, problem.members))
    rows = np.where(carrier >= 0, count + carrier, np.arange(count)).astype(np.int64)
    sizes = np.diff(starts)[rows]
    return Routes(
        routes.source,
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        take_audiences(starts, ends, rows),
        routes.messages,
        routes.deliveries,
    )


def mind_ends(ways: Spread, problem: GroupsProblem, carrier: Ints) -> None:
    """Ends of a tree match nothing, and only what is wanted arrives."""
    visits, size = ways.visits, len(problem.brokers)
    route = np.repeat(np.arange(len(carrier)), np.diff(ways.starts))
    inner = problem.trees.inner[problem.tree[route], visits["broker"]]
    visits["matched"] &= inner | (visits["link"] < 0)
    wanted = np.repeat(np.arange(len(carrier)), np.diff(problem.routes.starts))
    key = wanted * size + problem.routes.brokers
    visits["arrives"] = np.isin(route * size + visits["broker"], key)
