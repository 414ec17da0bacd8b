"""What chosen groups cost and save: the metrics of Zhang & Hu (2005), section 5.1, per broker.

Traffic is counted route by route, without the figures that groups were chosen by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.subtrees import (
    Hanging,
    Sent,
    collect_ways,
    does_more,
    hanging_of,
    sent_groups,
    sent_routes,
    set_up,
    subtree_room,
)
from fanplan.network.carried import ratio


@dataclass(frozen=True, eq=False)
class GroupsLedger:
    """Totals over the window; arrays have an entry per broker.

    ``received`` are messages that come by a link, ``matched`` those of them that are matched
    against subscriptions; each message is matched once more where it enters. ``arrived`` are
    wanted, ``unwanted`` are not and come only of groups that reach too far. ``delay`` adds up over
    arrivals. ``inner`` are the brokers that are neither root nor end of some tree.

    ``control`` are messages that set groups up, ``entries`` those of their forwarding tables,
    ``bypassed`` the brokers that shortcuts spare, times messages.
    """

    publications: float
    received: Floats
    matched: Floats
    arrived: Floats
    unwanted: Floats
    delay: Floats
    inner: Bools
    control: int
    entries: int
    bypassed: float

    @property
    def delay_mean(self) -> float:
        """Table 1: mean delay of a message at a broker that wants it."""
        return ratio(float(self.delay.sum()), float(self.arrived.sum()))

    @property
    def messages_share(self) -> float:
        """Table 2: the share of all messages that an inner broker receives, on average."""
        return self._share(self.received)

    @property
    def matches_share(self) -> float:
        """Table 3: the share of all messages that an inner broker matches, on average."""
        return self._share(self.matched)

    @property
    def matches(self) -> float:
        """All matches, those at entry included."""
        return self.publications + float(self.matched.sum())

    def _share(self, counts: Floats) -> float:
        return ratio(float(counts[self.inner].sum()), self.publications * int(self.inner.sum()))

    def summary(self) -> dict[str, float]:
        """All figures that are one number, by the names that the command shows."""
        return {
            "publications": self.publications,
            "delay": self.delay_mean,
            "messages": self.messages_share,
            "matches": self.matches_share,
            "overhead": self.control,
            "saving": self.bypassed,
            "entries": self.entries,
            "link_messages": float(self.received.sum()),
            "matches_total": self.matches,
            "unwanted": float(self.unwanted.sum()),
        }


def groups_ledger(
    problem: GroupsProblem,
    selected: Bools,
    shortcuts: bool = True,
    hop: float = 1.0,
    match: float = 1.0,
) -> GroupsLedger:
    """The ledger of some of the groups; all else takes default routing.

    A message takes ``hop`` on each link or shortcut and ``match`` at each broker that matches it:
    by default all it visits but ends of the tree, in a group the root alone. O(ends of all
    routes × depth).
    """
    trees, routes = hanging_of(problem.trees), problem.routes
    # A route without a group has the position -1, which is that of the last entry.
    covered = np.append(selected, False)[problem.group]
    carrier = np.where(covered, problem.group, -1).astype(np.int32)
    sent, groups = sent_routes(problem), sent_groups(problem)
    pace = Pace(shortcuts, hop, match)
    counts = account_routes(trees, sent, groups, carrier, routes.messages, pace)
    taken = set_up(problem, shortcuts)
    # A message for each broker that it spares, one by one: in another order sums round otherwise.
    spared = np.repeat(problem.messages[selected], taken.bypassed[selected])
    bypassed = float(np.append(0.0, spared).cumsum()[-1])
    control, entries = (int(many[selected].sum()) for many in (taken.control, taken.entries))
    inner = trees.inner
    inner[np.arange(len(trees.root)), trees.root] = False
    middle = np.asarray(inner.any(axis=0))
    total = float(routes.messages.sum())
    return GroupsLedger(total, *counts, middle, control, entries, bypassed)


class Pace(NamedTuple):
    """Whether groups take shortcuts, and how long a hop and a match take."""

    shortcuts: bool
    hop: float
    match: float


@compiled
def account_routes(
    trees: Hanging, sent: Sent, groups: Sent, carrier: Ints, messages: Floats, pace: Pace
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Follow every route to its ends, counting each broker on the way once."""
    size = trees.parent.shape[1]
    received, matched, arrived, unwanted, delay = np.zeros((5, size))
    room, told = subtree_room(size), np.full(size, -1, np.int64)
    for i in range(len(sent.tree)):
        t, g, count = sent.tree[i], carrier[i], messages[i]
        root, parent = trees.root[t], trees.parent[t]
        wanted = sent.ends[sent.starts[i] : sent.starts[i + 1]]
        ends = wanted if g < 0 else groups.ends[groups.starts[g] : groups.starts[g + 1]]
        collect_ways(room, i, root, parent, ends)
        for end in ends:
            here, time = end, pace.match
            while here != root:
                if g < 0 or not pace.shortcuts or does_more(room, i, here):
                    matching = g < 0 and trees.inner[t, here]
                    time += pace.hop + (pace.match if matching else 0.0)
                    if told[here] != i:
                        told[here] = i
                        received[here] += count
                        matched[here] += count * matching
                here = parent[here]
            at = np.searchsorted(wanted, end)
            if at < len(wanted) and wanted[at] == end:
                arrived[end] += count
                delay[end] += count * time
            else:
                unwanted[end] += count
    return received, matched, arrived, unwanted, delay
