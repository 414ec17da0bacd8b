"""A tree that a search changes link by link: it hangs from a broker, and can be hung elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.search.judge import Offers, offer_positions
from fanplan.network.trees import Tree


class Movable(NamedTuple):
    """Per broker its parent, the link to it, and its children: ``first``, and from one to the next
    and back by ``after`` and ``before``. Per link its ends, its delay, and where it stands among
    the offers (NONE if it is none of them). ``room`` is how many more links a broker may have.
    """

    parent: Ints
    link: Ints
    first: Ints
    after: Ints
    before: Ints
    room: Longs
    a: Ints
    b: Ints
    length: Floats
    offer: Longs


def movable_of(tree: Tree, offers: Offers, degree: Longs) -> Movable:
    """A tree for a search, under the degree limit of each broker."""
    parent, link, first, after, before = np.full((5, tree.size), NONE, dtype=np.int32)
    offer = offer_positions(offers, tree)
    length = np.ones(len(tree.a))
    length[offer != NONE] = offers.latency[offer[offer != NONE]]
    hung = Movable(parent, link, first, after, before, degree.copy(), tree.a.copy(), tree.b.copy(),
                length, offer)  # fmt: skip
    attach_all(hung, offers)
    return hung


@compiled
def attach_all(hung: Movable, offers: Offers) -> None:
    """Attach the links one after another, whichever part an end is in. O(brokers · depth)."""
    for link in range(len(hung.a)):
        attach(hung, offers, link, hung.a[link], hung.b[link], hung.offer[link])


@compiled
def attach(hung: Movable, offers: Offers, link: int, x: int, y: int, offer: int) -> None:
    """Join the parts of x and y by a link: y and all of its part come to hang below x."""
    turn(hung, y)
    hung.a[link], hung.b[link], hung.offer[link] = min(x, y), max(x, y), offer
    hung.length[link] = 1.0 if offer == NONE else offers.latency[offer]
    put_below(hung, x, y, link)
    take_room(hung, offers, link, 1)


@compiled
def detach(hung: Movable, offers: Offers, link: int) -> tuple[int, int]:
    """Take a link away; its ends, from which their parts then hang."""
    u, v = hung.a[link], hung.b[link]
    turn(hung, u)
    take_off(hung, v)
    take_room(hung, offers, link, -1)
    return u, v


@compiled
def take_room(hung: Movable, offers: Offers, link: int, count: int) -> None:
    """A link takes room at both ends, unless it is there anyway for another tree."""
    if hung.offer[link] == NONE or not offers.shared[hung.offer[link]]:
        hung.room[hung.a[link]] -= count
        hung.room[hung.b[link]] -= count


@compiled
def turn(hung: Movable, root: int) -> None:
    """Hang the part of a broker from that broker: the links on its way up turn round."""
    below, link, here = NONE, NONE, root
    while here != NONE:
        above, above_link = hung.parent[here], hung.link[here]
        if above != NONE:
            take_off(hung, here)
        if below != NONE:
            put_below(hung, below, here, link)
        below, link, here = here, above_link, above


@compiled
def put_below(hung: Movable, above: int, broker: int, link: int) -> None:
    """Make a broker the first child of another."""
    following = hung.first[above]
    hung.parent[broker], hung.link[broker] = above, link
    hung.after[broker], hung.before[broker] = following, NONE
    if following != NONE:
        hung.before[following] = broker
    hung.first[above] = broker


@compiled
def take_off(hung: Movable, broker: int) -> None:
    """Take a broker from the children of its parent."""
    before, after = hung.before[broker], hung.after[broker]
    if before == NONE:
        hung.first[hung.parent[broker]] = after
    else:
        hung.after[before] = after
    if after != NONE:
        hung.before[after] = before
    hung.parent[broker], hung.link[broker] = NONE, NONE


@compiled
def following(hung: Movable, here: int, root: int) -> int:
    """The next broker below a root, parents first; NONE after the last."""
    below: int = hung.first[here]
    if below != NONE:
        return below
    while here != root:
        after: int = hung.after[here]
        if after != NONE:
            return after
        here = hung.parent[here]
    return NONE


@compiled
def smaller_part(hung: Movable, u: int, v: int) -> Longs:
    """The brokers of the smaller of the parts that hang from u and v. O(these brokers)."""
    one, other, count = u, v, 0
    # In step, so that the walk ends with the smaller part and never sees the rest of the larger.
    while one != NONE and other != NONE:
        one, other = following(hung, one, u), following(hung, other, v)
        count += 1
    root = u if one == NONE else v
    part = np.empty(count, dtype=np.int64)
    here = root
    for i in range(count):
        part[i] = here
        here = following(hung, here, root)
    return part
