"""What opens on a click on a channel, a flow or a subscriber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from fanplan.core.arrays import NONE, Bools, Floats, Longs, listed_by, starts_of, values_at
from fanplan.core.prices import Weights
from fanplan.data.described import ranges_at
from fanplan.data.interest import take_audiences
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions
from fanplan.layers.channels.explain import UNICAST
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.page.details import Fact, Related, Shelf
from fanplan.page.material import Now

CHANNEL, FLOW, SUBSCRIBER = "channel", "flow", "subscriber"
MOST_FLOWS = 3000
"""Flows on a page: those with most messages."""


MOST_NAMED = 8
"""Channels that an action names."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """Every (channel, member) pair with the messages per second that the member wants of it.

    A second copy is not wanted: with several channels per flow the first that brings it counts.
    """

    channel: Longs
    person: Longs
    rate: Floats


@dataclass(frozen=True, eq=False)
class NextBest:
    """Of (flow, channel) pairs the cheapest other place, with all members as they are.

    ``place`` is a channel, or NONE for unicast. ``here`` and ``there`` are costs per second;
    ``there`` is not a number where there is no other place.
    """

    place: Longs
    here: Floats
    there: Floats


@dataclass(frozen=True, eq=False)
class ChannelThings:
    """What a plan's channels are, held against a dataset; ``sites`` has the domain of each."""

    dataset: Path
    record: ChannelsRecord
    truth: ChannelTruth
    decisions: Decisions
    wanted: Wanted
    sites: Mapping[int, str] | None

    @property
    def channels(self) -> int:
        return len(self.decisions.members.starts) - 1

    @property
    def names(self) -> list[str]:
        return [str(channel) for channel in range(self.channels)]

    @property
    def people(self) -> list[str]:
        names: list[str] = self.truth.subscribers.to_pylist()
        return names

    @cached_property
    def rates(self) -> Floats:
        """Messages per second of each flow."""
        return self.truth.messages / self.truth.manifest.seconds

    @cached_property
    def sent(self) -> Floats:
        """Messages per second on each channel."""
        flows = self.decisions.channels.sides()
        return np.bincount(flows.right, self.rates[flows.left], self.channels).astype(np.float64)

    @cached_property
    def told(self) -> Longs:
        """The flows that the page tells of, ascending."""
        order = np.lexsort((np.arange(len(self.rates)), -self.rates))
        return np.sort(order[:MOST_FLOWS])

    @cached_property
    def flow_names(self) -> list[str]:
        names: list[str] = self.truth.names.take(self.told).to_pylist()
        return names

    @cached_property
    def audience(self) -> sparse.csr_array:
        """Told flows × subscribers."""
        classes = self.truth.classes[self.told]
        sizes = np.diff(self.truth.audience_starts)[classes]
        people = take_audiences(self.truth.audience_starts, self.truth.audience, classes)
        shape = (len(self.told), len(self.truth.subscribers))
        return sparse.csr_array((np.ones(len(people)), people, starts_of(sizes)), shape=shape)

    # ---- shelves

    def shelves(self) -> list[Shelf]:
        return [self.channel_shelf(), self.flow_shelf(), self.subscriber_shelf()]

    def channel_shelf(self) -> Shelf:
        sizes = np.diff(self.decisions.members.starts)
        flows = self.decisions.channels.sides()
        wanted = np.bincount(self.wanted.channel, self.wanted.rate, self.channels)
        in_vain = np.maximum(self.sent * sizes - wanted, 0.0)
        received = np.maximum(self.sent * sizes, 1e-300)
        domain = [Fact("multicast domain", list(self.sites.values()))] if self.sites else []
        carried = self.carried_flows()
        return Shelf(
            CHANNEL,
            self.names,
            [
                *domain,
                Fact("sent", self.sent.tolist(), "rate"),
                Fact("flows", np.bincount(flows.right, minlength=self.channels).tolist()),
                Fact("members", sizes.tolist()),
                Fact("wanted by members", wanted.tolist(), "rate"),
                Fact("unwanted", in_vain.tolist(), "rate"),
                Fact("unwanted, of what members receive", (in_vain / received).tolist(), "percent"),
                self.without(carried),
            ],
            [carried, self.members()],
        )

    def carried_flows(self) -> Related:
        """The told flows of each channel with their next best place, busiest first."""
        place = np.full(len(self.truth.names), NONE)
        place[self.told] = np.arange(len(self.told))
        pairs = self.decisions.channels.sides()
        own = place[pairs.left] >= 0
        flow, channel = place[pairs.left[own]], pairs.right[own]
        order = np.lexsort((flow, -self.rates[self.told[flow]], channel))
        flow, channel = flow[order], channel[order]
        members = self.member_matrix
        counts = (self.audience @ members.T).tocsr()
        wanting = values_at(counts, flow, channel)
        best = self.next_best(flow, channel, counts)
        there = [None if np.isnan(cost) else cost for cost in best.there.tolist()]
        return Related(
            "Flows on it",
            FLOW,
            self.flow_names,
            np.searchsorted(channel, np.arange(self.channels + 1)),
            flow,
            [
                Fact("rate", self.rates[self.told[flow]].tolist(), "rate"),
                Fact("members who want it", wanting.astype(np.int64).tolist()),
                Fact("cost here, a second", best.here.tolist()),
                Fact("next best place", list(map(place_words, best.place.tolist(), there))),
                Fact("cost there", there),
            ],
            "On channels",
            np.bincount(pairs.right, minlength=self.channels).tolist(),
            "The next best place is the cheapest one for the flow alone, with all members as they "
            "are; a cost counts what the channel sends, what members receive, and unicast to whom "
            "only this channel serves.",
        )

    def without(self, carried: Related) -> Fact:
        """What it would cost more if every flow of a channel went to its next best place."""
        _, _, here, _, there = (fact.values for fact in carried.columns)
        more = np.array([0.0 if t is None else t - h for h, t in zip(here, there, strict=True)])
        of = np.repeat(np.arange(self.channels), np.diff(carried.starts))
        found = np.bincount(of, more, self.channels)
        return Fact("extra cost a second, if flows went to their next best places", found.tolist())

    @cached_property
    def member_matrix(self) -> sparse.csr_array:
        """Channels × subscribers."""
        members = self.decisions.members
        shape = (self.channels, len(self.truth.subscribers))
        return sparse.csr_array((np.ones(len(members.right)), members.right, members.starts), shape)

    def next_best(self, flow: Longs, channel: Longs, counts: sparse.csr_array) -> NextBest:
        """Other channels of the same domain, or unicast to those who want it on this one.

        Who is not served by a channel is sent it by unicast, so that costs of two channels differ
        by those who want it and are members of one of them.
        """
        weights, sizes = self.record.weights, np.diff(self.decisions.members.starts)
        domain = np.unique(list(self.sites.values()), return_inverse=True)[1] if self.sites else 0
        domains = np.broadcast_to(domain, self.channels)
        unicast = self.record.params.unicast_limit != 0
        place, here, there = np.empty(len(flow), np.int64), np.empty(len(flow)), np.empty(len(flow))
        base = weights.w2 + weights.w1 * sizes
        for i, (f, c) in enumerate(zip(flow.tolist(), channel.tolist(), strict=True)):
            wanting = np.zeros(self.channels)
            part = slice(counts.indptr[f], counts.indptr[f + 1])
            wanting[counts.indices[part]] = counts.data[part]
            costs = base + weights.unicast * (wanting[c] - wanting)
            able = (sizes > 0) & (domains == domains[c])
            able[c] = False
            if not unicast:
                able &= wanting >= wanting[c]
            place[i], here[i], there[i] = cheapest(costs, able, c, unicast, wanting[c], weights)
        rate = self.rates[self.told[flow]]
        return NextBest(place, here * rate, there * rate)

    def members(self) -> Related:
        """Who joins each channel, with what of it is wanted; who gets most in vain comes first."""
        pair = self.wanted
        vain = np.maximum(self.sent[pair.channel] - pair.rate, 0.0)
        order = np.lexsort((pair.person, -vain, pair.channel))
        return Related(
            "Members",
            SUBSCRIBER,
            self.people,
            np.searchsorted(pair.channel, np.arange(self.channels + 1)),
            pair.person[order],
            [
                Fact("wanted", pair.rate[order].tolist(), "rate"),
                Fact("unwanted", vain[order].tolist(), "rate"),
            ],
            "Channels joined",
        )

    def flow_shelf(self) -> Shelf:
        flows, truth = self.truth.flows.take(self.told), self.truth
        sizes = np.diff(truth.audience_starts)[truth.classes[self.told]]
        alone = np.diff(self.decisions.unicast.starts)[self.told]
        wanting = Related(
            "Who wants it",
            SUBSCRIBER,
            self.people,
            self.audience.indptr.astype(np.int64),
            self.audience.indices.astype(np.int64),
        )
        return Shelf(
            FLOW,
            self.flow_names,
            [
                Fact("what it is", ranges_at(self.dataset, self.told), "words"),
                Fact("topic", flows["topic"].to_pylist()),
                Fact("sent", self.rates[self.told].tolist(), "rate"),
                Fact("subscribers who want it", sizes.tolist()),
                Fact("of these by unicast", alone.tolist()),
            ],
            [wanting, self.by_unicast()],
        )

    def by_unicast(self) -> Related:
        """Who is sent a told flow alone."""
        unicast = self.decisions.unicast
        sizes = np.diff(unicast.starts)[self.told]
        people = take_audiences(unicast.starts, unicast.right, self.told).astype(np.int64)
        about = ("By unicast to", SUBSCRIBER, self.people, starts_of(sizes), people)
        return Related(*about, back="By unicast")

    def subscriber_shelf(self) -> Shelf:
        received = self.received()
        return Shelf(
            SUBSCRIBER,
            self.people,
            [Fact(words, values.tolist(), "rate") for words, values in received.items()],
        )

    def now(self) -> Now:
        """What subscribers receive, and what they join for it."""
        joined = listed_by(self.wanted.person, len(self.people))
        alone = np.bincount(self.decisions.unicast.right, minlength=len(self.people)).tolist()
        actions = []
        for person, flows in enumerate(alone):
            own = self.wanted.channel[joined[1][joined[0][person] : joined[0][person + 1]]]
            actions.append("; ".join(filter(None, (join_words(own.tolist()), sent_alone(flows)))))
        rates = np.sum(list(self.received().values()), axis=0)
        return Now(SUBSCRIBER, self.people, rates.tolist(), float(self.rates.sum()), actions)

    def received(self) -> dict[str, Floats]:
        """Messages per second that each subscriber gets, by what they are."""
        count, unicast = len(self.truth.subscribers), self.decisions.unicast.sides()
        pair = self.wanted
        by_channel = np.bincount(pair.person, pair.rate, count)
        in_all = np.bincount(pair.person, self.sent[pair.channel], count)
        return {
            "wanted, by channels": by_channel,
            "wanted, by unicast": np.bincount(unicast.right, self.rates[unicast.left], count),
            "unwanted": np.maximum(in_all - by_channel, 0.0),
        }


def join_words(channels: list[int]) -> str:
    """What to join, in words; not all of very many."""
    named = ", ".join(map(str, channels[:MOST_NAMED]))
    more = f" and {len(channels) - MOST_NAMED} more" if len(channels) > MOST_NAMED else ""
    return f"join channel{'s' * (len(channels) > 1)} {named}{more}" if channels else ""


def sent_alone(flows: int) -> str:
    return f"{flows:,} flow{'s' * (flows > 1)} by unicast" if flows else ""


def cheapest(
    costs: Floats, able: Bools, here: int, unicast: bool, wanting: float, weights: Weights
) -> tuple[int, float, float]:
    """The cheapest other place, the cost of this one, and of that one; per message."""
    best, least = NONE, weights.unicast * wanting if unicast else np.nan
    if able.any():
        other = int(np.argmin(np.where(able, costs, np.inf)))
        if not unicast or costs[other] <= least:
            best, least = other, float(costs[other])
    return best, float(costs[here]), least


def place_words(place: int, cost: float | None) -> str:
    return "none" if cost is None else UNICAST if place == NONE else f"channel {place}"
