"""How alike brokers or clients are (Tajuddin 2011, chapter 4), from the boxes they ask for.

Every function takes all extents of the owners that it is about, and returns ``(i, j, value)`` for
the pairs of owners that have something in common. So the owners may be dealt out to tasks: a pair
of owners belongs to one of them.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.boxes.covering import cover_sums, covered_extents, coverers
from fanplan.boxes.extents import Extents, OwnerPairs
from fanplan.boxes.intersections import arrays, meeting_cover, meeting_sums
from fanplan.network.brokers import Similarity


def owner_overlap(left: Extents, right: Extents) -> OwnerPairs:
    """Overlap of owners (Eq. 4.2): the sum of α²/(A_x A_y) over all pairs of their extents."""
    return _sums(left, right, True)


def owner_interest(advertisements: Extents, subscriptions: Extents) -> OwnerPairs:
    """Interest of owners (Eq. 4.7): the sum of α/A_x over advertisements x and subscriptions."""
    return _sums(advertisements, subscriptions, False)


def _sums(left: Extents, right: Extents, both: bool) -> OwnerPairs:
    tiles, owners = left.tiles, len(right.owners)
    found = meeting_sums(arrays(left), tiles, arrays(right), right.index, owners, both)
    return _with_owners(found, left, right)


def owner_cover(left: Extents, right: Extents) -> OwnerPairs:
    """Covering of owners (Eq. 4.5): how far extents of i cover those of j.

    Extents of one box, which most are, are looked up in tables; the others are compared with
    those that they meet.
    """
    found = cover_sums(coverers(left), covered_extents(right), len(left.owners), right.sizes)
    several = np.flatnonzero(np.diff(left.starts) > 1)
    if len(several):
        more = meeting_cover(arrays(left), several, arrays(right), right.index, right.sizes)
        found = _added(found, more, (len(left.owners), len(right.owners)))
    return _with_owners(found, left, right)


def covered_interest(advertisements: Extents, subscriptions: Extents) -> OwnerPairs:
    """Interest by covering (section 5.3.2): how far subscriptions of j cover advertisements of i.

    What is advertised inside a subscription surely matches it; what only overlaps does not count.
    """
    j, i, value = owner_cover(subscriptions, advertisements)
    return i, j, value


def _added(first: OwnerPairs, second: OwnerPairs, shape: tuple[int, int]) -> OwnerPairs:
    """The sums of two tables of pairs."""
    total = (owner_matrix(first, shape) + owner_matrix(second, shape)).tocoo()
    return total.row.astype(np.int64), total.col.astype(np.int64), total.data


def _with_owners(found: OwnerPairs, left: Extents, right: Extents) -> OwnerPairs:
    i, j, value = found
    return left.owners[i], right.owners[j], value


def broker_similarity(subscriptions: Extents, advertisements: Extents, brokers: int) -> Similarity:
    """All three metrics between brokers, whose numbers are the owners."""
    shape = (brokers, brokers)
    return Similarity(
        overlap=owner_matrix(both_ways(owner_overlap(subscriptions, subscriptions)), shape),
        cover=owner_matrix(different_owners(owner_cover(subscriptions, subscriptions)), shape),
        interest=owner_matrix(
            different_owners(owner_interest(advertisements, subscriptions)), shape
        ),
    )


def client_similarity(
    subscriptions: Extents, advertisements: Extents, subscribers: int, publishers: int
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Interest of publishers in subscribers, and overlap between subscribers.

    Owners are subscribers and publishers. With weights of advertisements that are a publisher's
    shares of its rate, interest is the expected share of its messages that a subscriber wants.
    """
    shares = owner_matrix(owner_interest(advertisements, subscriptions), (publishers, subscribers))
    common = both_ways(owner_overlap(subscriptions, subscriptions))
    return shares, owner_matrix(common, (subscribers, subscribers))


def owner_matrix(pairs: OwnerPairs, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    i, j, value = pairs
    return scipy.sparse.coo_array((value, (i, j)), shape=shape).tocsr()


def different_owners(pairs: OwnerPairs) -> OwnerPairs:
    """Pairs of different owners."""
    i, j, value = pairs
    return i[i != j], j[i != j], value[i != j]


def both_ways(pairs: OwnerPairs) -> OwnerPairs:
    """Pairs of different owners with one value for both orders, which rounding could tell apart."""
    i, j, value = pairs
    i, j, value = i[i < j], j[i < j], value[i < j]
    return np.append(i, j), np.append(j, i), np.append(value, value)
