"""The demand that channels are searched for: rows of traffic with a price for each unserved pair.

With members U, a channel saves a row with audience A, per message, what unicast to A would cost
less what the channel costs:

    gain = price · |A ∩ U| − w1 · |U| − w2

The total cost is that of all unicast less the gains, so a row takes the channel with the largest
positive gain, and subscriber h joins the channel iff the price-weighted demand of h on it exceeds
w1 times the channel's traffic. The price is cu = w3(w1 + w2), more for a row that must not go by
unicast.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import bits_of_lists, no_bits
from fanplan.core.kernels import compiled, inlined
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem, take_audiences

Array = TypeVar("Array", bound=NDArray[Any])


class Demand(NamedTuple):
    """Rows with audiences, both ways round, as arrays that kernels take as they are."""

    indptr: Longs
    audience: Ints
    rate: Floats
    """Messages over the window."""
    price: Floats
    """What a message costs for each of the row's audience that no channel serves."""
    user_indptr: Longs
    user_rows: Ints
    """The rows that user h wants: ``user_rows[user_indptr[h]:user_indptr[h + 1]]``, ascending."""
    bits: Words
    """The audiences as rows of bits; no rows if lists are quicker."""
    w1: float
    w2: float

    def with_price(self, price: Floats) -> Demand:
        return self._replace(price=read_only(price))

    def with_audiences(self, rows: Ints, users: Ints) -> Demand:
        """The same rows with other audiences: ascending pairs of row and user."""
        indptr = starts_of(np.bincount(rows, minlength=self.size))
        return demand_of(indptr, users, self.rate, self.price, self.users, self.w1, self.w2)

    @property
    def size(self) -> int:
        return len(self.rate)

    @property
    def users(self) -> int:
        return len(self.user_indptr) - 1

    @property
    def audience_sizes(self) -> Longs:
        return np.diff(self.indptr)

    @property
    def perfect(self) -> float:
        """What perfect multicast costs over the window: a scale for gains, whatever the prices."""
        return float(np.dot(self.rate, self.w2 + self.w1 * self.audience_sizes))

    @property
    def ideal_gain(self) -> Floats:
        """The gain per message of a channel of its own, or of unicast where that is better."""
        return np.maximum(0.0, (self.price - self.w1) * self.audience_sizes - self.w2)


def make_demand(problem: InterestProblem, weights: Weights, price: Floats) -> Demand:
    users = len(problem.subscribers)
    return demand_of(
        problem.indptr, problem.audience, problem.messages, price, users, weights.w1, weights.w2
    )


def demand_of(
    indptr: Longs, audience: Ints, rate: Floats, price: Floats, users: int, w1: float, w2: float
) -> Demand:
    """Demand with its audiences in all the ways that kernels need them."""
    indptr, audience = read_only(indptr), read_only(audience)
    of_users, user_rows = transpose(indptr, audience, users)
    of_users, user_rows = read_only(of_users), read_only(user_rows)
    bits = read_only(audience_bits(indptr, audience, users))
    rate, price = read_only(rate), read_only(price)
    return Demand(indptr, audience, rate, price, of_users, user_rows, bits, w1, w2)


def audience_bits(indptr: Longs, audience: Ints, users: int) -> Words:
    """One row of bits per audience, or none at all if that would take more than the audiences.

    A count then costs a row ``users / 64`` steps; by the users' lists it costs a step per pair.
    """
    none = no_bits(0, users)
    if (len(indptr) - 1) * none.shape[1] > len(audience):
        return none
    return bits_of_lists(indptr, audience, users)


def read_only(array: Array) -> Array:
    """The same numbers, not to be written: to numba that is a type, and one is compiled faster."""
    view = array.view()
    view.setflags(write=False)
    return view


def heaviest_demand(demand: Demand, fraction: float, least: int) -> Demand:
    """The part of the rows with the most traffic times audience, in their order; at least some."""
    count = max(int(fraction * demand.size), least)
    if count >= demand.size:
        return demand
    weight = demand.rate * demand.audience_sizes
    rows = np.sort(np.argsort(-weight, kind="stable")[:count])
    indptr = starts_of(demand.audience_sizes[rows])
    audience = take_audiences(demand.indptr, demand.audience, rows)
    rate, price = demand.rate[rows], demand.price[rows]
    return demand_of(indptr, audience, rate, price, demand.users, demand.w1, demand.w2)


@compiled
def transpose(starts: Longs, items: Ints, size: int) -> tuple[Longs, Ints]:
    """Lists of items the other way round: the rows of each item, ascending, by counting."""
    ends = np.zeros(size + 1, dtype=np.int64)
    for item in items:
        ends[item + 1] += 1
    ends = np.cumsum(ends)
    place = ends[:-1].copy()
    rows = np.empty(len(items), dtype=np.int32)
    for row in range(len(starts) - 1):
        for item in items[starts[row] : starts[row + 1]]:
            rows[place[item]] = row
            place[item] += 1
    return ends, rows


@inlined
def row_audience(demand: Demand, row: int) -> Ints:
    return demand.audience[demand.indptr[row] : demand.indptr[row + 1]]


@inlined
def wanted_rows(demand: Demand, user: int) -> Ints:
    return demand.user_rows[demand.user_indptr[user] : demand.user_indptr[user + 1]]
