"""Our mesh: greedy merge under a limit of links a node, and then without the links it can spare."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.stop import Stop
from fanplan.layers.mesh.problem import Wants
from fanplan.layers.mesh.published.merge import degrees_of, flat_merge, merge_from
from fanplan.layers.mesh.search.spare import without_spare


def fewest_links(wants: Wants, most: int | None, seed: int, stop: Stop) -> Longs:
    """Few links in all; nodes get more than ``most`` links only where that is needed."""
    nodes = len(wants.at) - 1
    return without_spare(wants, merge_from(wants, most or nodes, seed, stop))


def lowest_degree(wants: Wants, seed: int, stop: Stop) -> Longs:
    """The mesh of lowest greatest degree that is found, of equal ones that of fewest links.

    Where every node has few links from the first on, greedy merge has little to choose from. So
    limits below the degree that this leads to are tried as well: they are exceeded late, if at all.
    """
    nodes = len(wants.at) - 1
    best = without_spare(wants, flat_merge(wants, seed, stop))
    for most in range(int(degrees_of(best, nodes).max(initial=0)), 1, -1):
        if stop(float(len(best))):
            break
        other = without_spare(wants, merge_from(wants, most, seed, stop))
        best = min(best, other, key=lambda links: (degrees_of(links, nodes).max(), len(links)))
    return best


def separate_trees(wants: Wants) -> Longs:
    """Every topic by itself: its nodes in a row, each linked to the next."""
    nodes = len(wants.at) - 1
    last = np.zeros(len(wants.node), bool)
    last[wants.first[1:][np.diff(wants.first) > 0] - 1] = True
    pairs = wants.node.astype(np.int64)[:-1] * nodes + wants.node[1:]
    return np.unique(pairs[~last[:-1]])
