"""What no mesh can undercut: links in all, and links of the node that needs most.

Let m(v, t) be the most topics that v has in common with another node that wants t. Hang up a tree
of each topic's links at a root. Then every other node that wants t has a link to its parent,
and a link between u and v is that of as many (node, topic) as u and v have topics in common, at
most. So the links are at least the sum over (v, t), roots left out, of 1 / m(v, t). For each topic
the root that saves most is left out.

A node has a link in each of its topics, so it has at least the sum of its 1 / m(v, t), rounded up;
and all links are at least half of these numbers together. And a set of nodes whose topics chain
them together is connected by at least as many links as it has nodes, less one. Somebody has at
least the mean of so many links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.mesh.problem import Wants

SLACK = 1e-6
"""What rounding may add to a sum of fractions."""


class MeshBound(NamedTuple):
    """No mesh has fewer links, and none a lower greatest degree."""

    links: int
    degree: int


def mesh_bound(wants: Wants) -> MeshBound:
    """O(Σ members² of topics)."""
    need, saved = needs_of_nodes(wants)
    whole = np.ceil(need - SLACK)
    hung = np.ceil(need.sum() - saved.sum() - SLACK)
    half = np.ceil(whole.sum() / 2)
    links = int(max(hung, half, links_of_one_part(wants)))
    nodes = int((np.diff(wants.at) > 0).sum())
    return MeshBound(links, max(int(whole.max(initial=0)), -(-2 * links // max(nodes, 1))))


def links_of_one_part(wants: Wants) -> int:
    """Nodes that want something, less the sets of them that have no topic in common."""
    nodes, topics = len(wants.at) - 1, len(wants.first) - 1
    size = nodes + topics
    rows = np.repeat(np.arange(nodes), np.diff(wants.at))
    ends = (np.ones(len(rows)), (rows, wants.topic + nodes))
    sets, _ = connected_components(scipy.sparse.coo_array(ends, (size, size)), directed=False)
    idle = int((np.diff(wants.at) == 0).sum() + (np.diff(wants.first) == 0).sum())
    return int((np.diff(wants.at) > 0).sum()) - (int(sets) - idle)


@compiled
def needs_of_nodes(wants: Wants) -> tuple[Floats, Floats]:
    """The sum of 1 / m(v, t) of each node, and the greatest of each topic."""
    nodes, topics = len(wants.at) - 1, len(wants.first) - 1
    need, saved = np.zeros(nodes), np.zeros(topics)
    common: Longs = np.zeros(nodes, np.int64)
    for v in range(nodes):
        for k in range(wants.at[v], wants.at[v + 1]):
            for seat in range(wants.first[wants.topic[k]], wants.first[wants.topic[k] + 1]):
                common[wants.node[seat]] += 1
        for k in range(wants.at[v], wants.at[v + 1]):
            topic, most = wants.topic[k], 0
            for seat in range(wants.first[topic], wants.first[topic + 1]):
                if wants.node[seat] != v:
                    most = max(most, common[wants.node[seat]])
            if most:
                need[v] += 1 / most
                saved[topic] = max(saved[topic], 1 / most)
        for k in range(wants.at[v], wants.at[v + 1]):
            for seat in range(wants.first[wants.topic[k]], wants.first[wants.topic[k] + 1]):
                common[wants.node[seat]] = 0
    return need, saved
