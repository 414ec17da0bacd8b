"""What a planner decides (a channel map), and what is known about it afterwards (a plan)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bytes, Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import bits_of_pairs, no_bits, pairs_of_bits, set_bit
from fanplan.core.kernels import bare, compiled
from fanplan.core.ledger import Ledger, cost, excess_percent, unicast_fraction
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem, Rows
from fanplan.layers.channels.params import ChannelsParams


@dataclass(frozen=True, eq=False)
class MapPairs:
    """A relation between two numberings: ascending pairs, none twice. Made with ``pairs``."""

    left: Ints
    right: Ints

    def __post_init__(self) -> None:
        self.left.setflags(write=False)
        self.right.setflags(write=False)

    def __len__(self) -> int:
        return len(self.left)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MapPairs):
            return NotImplemented
        same = np.array_equal(self.left, other.left) and np.array_equal(self.right, other.right)
        return bool(same)

    def counts(self, size: int) -> Longs:
        """How many pairs each left number from 0 to ``size - 1`` has."""
        return np.bincount(self.left, minlength=size)

    def starts(self, size: int) -> Longs:
        """Where the pairs of each left number start, with the end appended."""
        return starts_of(self.counts(size))


def map_pairs(left: Any, right: Any) -> MapPairs:
    """Pairs from two equally long lists of numbers in any order; a pair given twice counts once.

    Linear if the pairs are in order already, else a sort.
    """
    left, right = np.array(left, dtype=np.int32), np.array(right, dtype=np.int32)
    keys = pair_numbers(left, right)
    if np.all(keys[1:] > keys[:-1]):
        return MapPairs(left, right)
    keys = np.unique(keys)
    return MapPairs((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))


def pair_numbers(left: Ints, right: Ints) -> Longs:
    """One number for each pair, in the order of pairs."""
    return (left.astype(np.int64) << 32) | right


NO_PAIRS = MapPairs(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class ChannelMap:
    """Which rows go to which channels, who joins them, and what goes by unicast.

    In the paper's letters: ``assigned`` is X, ``members`` is Y and ``unicast`` is T.
    """

    channels: int
    assigned: MapPairs
    """(row, channel)"""
    members: MapPairs
    """(channel, subscriber)"""
    unicast: MapPairs
    """(row, subscriber)"""

    @property
    def places(self) -> int:
        """Members and rows of channels: what a change adds one to or takes one from."""
        return len(self.assigned) + len(self.members)

    def member_bits(self, subscribers: int) -> Words:
        left, right = self.members.left, self.members.right
        return bits_of_pairs(left, right, self.channels, subscribers)


def one_channel_per_row(problem: InterestProblem, channel: Ints, channels: int) -> ChannelMap:
    """Row ``i`` goes to ``channel[i]``; everyone who wants something on a channel joins it."""
    assigned = map_pairs(np.arange(problem.size), channel)
    return ChannelMap(channels, assigned, interested_members(problem, assigned, channels), NO_PAIRS)


def interested_members(problem: InterestProblem, assigned: MapPairs, channels: int) -> MapPairs:
    """(channel, subscriber) for all who want at least one row on the channel.

    Time is linear in the audiences times the channels per row; memory is one bit per channel and
    subscriber.
    """
    bits = no_bits(channels, len(problem.subscribers))
    join(bits, problem.indptr, problem.audience, assigned.left, assigned.right)
    return map_pairs(*pairs_of_bits(bits))


@compiled
def join(bits: Words, indptr: Longs, audience: Ints, rows: Ints, channels: Ints) -> None:
    for i in range(len(rows)):
        for subscriber in audience[indptr[rows[i]] : indptr[rows[i] + 1]]:
            set_bit(bits[channels[i]], subscriber)


@bare
def count_overlaps(audience: Ints, members: Bytes, partial: Bytes, overlap: Ints) -> None:
    """How many of an audience each channel has, by adding the users' rows of bytes.

    Bytes are added 32 at a time by the machine; they hold sums up to 255, hence the rounds.
    """
    overlap[:] = 0
    for start in range(0, len(audience), 255):
        partial[:] = 0
        for user in audience[start : start + 255]:
            own = members[user]
            for channel in range(len(partial)):
                partial[channel] += own[channel]
        for channel in range(len(partial)):
            overlap[channel] += partial[channel]


@dataclass(frozen=True, order=True)
class Bound:
    """A cost that no plan of some kind undercuts, and the argument that proves it.

    A dual one is proved by its values, which are of some audience classes.
    """

    cost: float
    name: str
    classes: Ints | None = field(default=None, compare=False)
    values: Floats | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class SwitchTables:
    """The entries of switches, port by port, and messages times links: of the plan, of all by
    unicast, of ideal multicast, and the least that a plan within the tables can have."""

    entries: pa.Table
    traffic: Mapping[str, float]


@dataclass(frozen=True)
class ChannelsSection:
    """A channel map with its origin and its cost.

    The same input, parameters, seed and version give an equal plan: it holds no time and no host.
    ``rows`` says whether a row of the map is an audience class or a single flow; ``bound`` is a
    cost that no plan with as many channels can undercut, and ``single_bound`` one that no plan
    with one channel per flow can; ``counted`` is the share that a limit on unicast is on;
    ``seconds`` is the window of the ledger.
    """

    map: ChannelMap
    rows: Rows
    source: str
    params: ChannelsParams
    seed: int
    ledger: Ledger
    perfect: float
    bound: Bound
    single_bound: Bound
    flows: int
    audience_classes: int
    seconds: float
    version: str
    counted: float
    layer: Literal["channels"] = "channels"
    switches: SwitchTables | None = None
    """what lies in tables of switches, if these are limited"""

    @property
    def method(self) -> str:
        return self.params.full_method

    @property
    def weights(self) -> Weights:
        return self.params.prices.weights

    @property
    def cost(self) -> float:
        return cost(self.ledger, self.weights)

    @property
    def excess_percent(self) -> float:
        return excess_percent(self.cost, self.perfect)

    @property
    def bound_percent(self) -> float:
        """The bound's excess over perfect multicast, in percent."""
        return excess_percent(self.bound.cost, self.perfect)

    @property
    def single_bound_percent(self) -> float:
        return excess_percent(self.single_bound.cost, self.perfect)

    @property
    def unicast_fraction(self) -> float:
        return unicast_fraction(self.ledger)


class Changes(NamedTuple):
    """Pairs to add and to remove. Unicast follows from the rest and is not counted."""

    joins: int
    """(channel, subscriber) pairs that are new."""
    leaves: int
    """(channel, subscriber) pairs that are gone."""
    added: int
    """(row, channel) pairs that are new."""
    removed: int
    """(row, channel) pairs that are gone."""


def map_changes(old: ChannelMap, new: ChannelMap) -> Changes:
    """Count the changes from one map to another; channels are compared by number."""
    return Changes(
        joins=count_missing(new.members, old.members),
        leaves=count_missing(old.members, new.members),
        added=count_missing(new.assigned, old.assigned),
        removed=count_missing(old.assigned, new.assigned),
    )


def count_missing(pairs: MapPairs, others: MapPairs) -> int:
    """How many pairs are not among the others."""
    mine, theirs = (pair_numbers(side.left, side.right) for side in (pairs, others))
    return len(np.setdiff1d(mine, theirs, assume_unique=True))
