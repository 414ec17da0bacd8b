"""Why a row or a subscriber is where it is: what it costs there, and the next best place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.core.prices import Weights
from fanplan.data.dataset import Dataset
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, ChannelsSection
from fanplan.layers.channels.names import FlowNames
from fanplan.layers.channels.record import subscriber_names

UNICAST = "unicast"


@dataclass(frozen=True)
class CarryingChannel:
    """One channel that carries a row. Rates are messages per second."""

    channel: int
    members: int
    wanting: int
    """members who want the row"""
    unwanted_rate: float
    """what its other members receive of the row in vain"""


@dataclass(frozen=True)
class RowExplanation:
    """Where a row goes. Costs are per second, in the units of the plan's cost."""

    rate: float
    audience: int
    channels: tuple[CarryingChannel, ...]
    unicast: int
    """subscribers who get it by unicast"""
    cost: float
    perfect: float
    """its cost if it had a channel of its own"""
    runner_up: str
    """the cheapest other place, with all members as they are: `channel 7`, `unicast` or `none`"""
    runner_up_cost: float


def explain_row(
    problem: InterestProblem, map: ChannelMap, weights: Weights, row: int, unicast: bool = True
) -> RowExplanation:
    """Explain one row; without ``unicast`` the other places are channels that serve all of it.

    The other places are each channel alone, the rest of the audience by unicast, and unicast alone.
    Time is linear in the members of all channels.
    """
    rate = float(problem.rates[row])
    audience = problem.audience[problem.indptr[row] : problem.indptr[row + 1]]
    sizes, wanting = member_counts(map, audience)
    mine = map.assigned.right[map.assigned.left == row]
    direct = int((map.unicast.left == row).sum())
    cost = rate * (float((weights.w2 + weights.w1 * sizes[mine]).sum()) + weights.unicast * direct)
    places = other_places(sizes, wanting, len(audience), weights, unicast)
    places.pop(place_name(mine), None)
    best = min(places, key=lambda name: places[name], default="none")
    return RowExplanation(
        rate=rate,
        audience=len(audience),
        channels=tuple(
            CarryingChannel(
                int(j), int(sizes[j]), int(wanting[j]), rate * int(sizes[j] - wanting[j])
            )
            for j in mine
        ),
        unicast=direct,
        cost=cost,
        perfect=rate * (weights.w2 + weights.w1 * len(audience)),
        runner_up=best,
        runner_up_cost=rate * places[best] if best in places else float("nan"),
    )


def member_counts(map: ChannelMap, audience: Ints) -> tuple[Longs, Longs]:
    """Per channel, its members and those of them in the audience."""
    inside = map.members.left[np.isin(map.members.right, audience)]
    return map.members.counts(map.channels), np.bincount(inside, minlength=map.channels)


def other_places(
    sizes: Longs, wanting: Longs, audience: int, weights: Weights, unicast: bool
) -> dict[str, float]:
    """Cost per message at each place a row could be."""
    alone = weights.w2 + weights.w1 * sizes + weights.unicast * (audience - wanting)
    able = sizes > 0 if unicast else wanting == audience
    places = {place_name(np.array([j])): float(alone[j]) for j in np.flatnonzero(able)}
    return places | ({UNICAST: weights.unicast * audience} if unicast else {})


def place_name(channels: Ints | Longs) -> str:
    """The name of a place: a channel, several, or unicast."""
    if len(channels) == 0:
        return UNICAST
    numbers = ", ".join(str(int(j)) for j in channels)
    return f"channel {numbers}" if len(channels) == 1 else f"channels {numbers}"


@dataclass(frozen=True)
class Joined:
    """One channel that a subscriber joins, or could. Rates are messages per second."""

    channel: int
    rate: float
    wanted_rate: float
    only_here: float
    """what the subscriber wants there and gets from no other channel"""
    saves: float
    """cost per second saved by joining: unicast of ``only_here`` less receiving the channel"""

    @property
    def unwanted_rate(self) -> float:
        return self.rate - self.wanted_rate


@dataclass(frozen=True)
class SubscriberExplanation:
    """Where a subscriber gets what it wants from."""

    wanted_rate: float
    joined: tuple[Joined, ...]
    unicast_rate: float
    unicast_rows: int
    cost: float
    """of receiving, per second; sending to channels is not a subscriber's cost"""
    runner_up: Joined | None
    """the channel not joined that would come nearest to paying, if any carries something wanted"""


def explain_subscriber(
    problem: InterestProblem, map: ChannelMap, weights: Weights, subscriber: int
) -> SubscriberExplanation:
    """Explain one subscriber; linear in the audiences and in the map."""
    rates = problem.rates
    rows = (
        np.searchsorted(
            problem.indptr, np.flatnonzero(problem.audience == subscriber), side="right"
        )
        - 1
    )
    wants = np.zeros(problem.size, dtype=bool)
    wants[rows] = True
    joined = map.members.left[map.members.right == subscriber]
    direct = map.unicast.left[map.unicast.right == subscriber]
    options = channel_options(map, rates, wants, joined, weights)
    mine = tuple(options[int(j)] for j in joined)
    others = [o for j, o in options.items() if j not in set(joined.tolist()) and o.wanted_rate > 0]
    unicast_rate = float(rates[direct].sum())
    return SubscriberExplanation(
        wanted_rate=float(rates[rows].sum()),
        joined=mine,
        unicast_rate=unicast_rate,
        unicast_rows=len(direct),
        cost=weights.w1 * sum(o.rate for o in mine) + weights.unicast * unicast_rate,
        runner_up=max(others, key=lambda option: option.saves, default=None),
    )


def channel_options(
    map: ChannelMap, rates: Floats, wants: np.ndarray, joined: Ints, weights: Weights
) -> Mapping[int, Joined]:
    """For each channel, what it would bring to the subscriber beside the joined ones."""
    rows, channels = map.assigned.left, map.assigned.right
    is_joined = np.zeros(map.channels, dtype=bool)
    is_joined[joined] = True
    brought = np.bincount(rows[is_joined[channels]], minlength=len(rates))
    elsewhere = (brought[rows] - is_joined[channels]) > 0
    load = rates[rows]
    total = np.bincount(channels, load, map.channels)
    wanted = np.bincount(channels, load * wants[rows], map.channels)
    only = np.bincount(channels, load * (wants[rows] & ~elsewhere), map.channels)
    saves = weights.unicast * only - weights.w1 * total
    return {
        j: Joined(j, float(total[j]), float(wanted[j]), float(only[j]), float(saves[j]))
        for j in range(map.channels)
    }


MOST_FLOWS = 20
"""Flows of one topic that are explained."""


@dataclass(frozen=True)
class Found:
    """What a name means in a dataset: wanted flows by position, and a subscriber or −1."""

    flows: FlowNames
    numbers: Longs
    subscriber: int


def find_named(dataset: Dataset, name: str) -> Found:
    """The flow or the flows of the topic of that name, and the subscriber; an error if neither."""
    flows, names = FlowNames(dataset.path), subscriber_names(dataset.path)
    found = Found(flows, flows.rows(name), pc.index(names, name).as_py())
    if not len(found.numbers) and found.subscriber < 0:
        raise InputError(unknown_name(name, flows, names))
    return found


def explain_name(plan: ChannelsSection, dataset: Dataset, name: str) -> list[dict[str, Any]]:
    """All that the name means: the subscriber, and the flow or the first flows of the topic."""
    found, problem = find_named(dataset, name), dataset.interest(plan.rows)
    explained = []
    if found.subscriber >= 0:
        explained.append(explained_subscriber(plan, problem, found.subscriber, name))
    for number in map(int, found.numbers[:MOST_FLOWS]):
        row = number if plan.rows == "flow" else int(found.flows.classes[number])
        flow = found.flows.wanted.slice(number, 1).to_pylist()[0]
        rate = flow["messages"] / problem.seconds
        explained.append(explained_flow(plan, problem, row, flow, rate))
    return explained


def unknown_name(name: str, flows: FlowNames, subscribers: pa.Array) -> Problem:
    told = flows.unknown(name, "explain")
    if "nobody wants" in told.what:
        return told
    what = f"there is no flow, topic or subscriber {name!r}"
    close = similar(name, subscribers.to_pylist()) or told.remedy
    return Problem("explain", what, close)


def explained_flow(
    plan: ChannelsSection, problem: InterestProblem, row: int, flow: dict[str, Any], rate: float
) -> dict[str, Any]:
    """One flow; a row is its audience class or itself, so its share of the row's rate is told."""
    because = asked_for(plan, flow)
    by_unicast = plan.params.unicast_limit != 0 and because != "pinned"
    told = explain_row(problem, plan.map, plan.weights, row, by_unicast)
    if because == "off multicast":
        told = replace(told, runner_up="none", runner_up_cost=math.nan)
    share = rate / told.rate if told.rate else 0.0
    result = asdict(told) | {
        "rate": rate,
        "channels": [asdict(c) | {"unwanted_rate": c.unwanted_rate * share} for c in told.channels],
        **{key: getattr(told, key) * share for key in ("cost", "perfect")},
        "runner_up_cost": no_nan(told.runner_up_cost * share),
    }
    return {"flow": flow["flow"], "asked_for": because, **result}


def asked_for(plan: ChannelsSection, flow: dict[str, Any]) -> str | None:
    """Whether the user wanted the flow on channels or off them."""
    for option, word in (("pinned", "pinned"), ("off_multicast", "off multicast")):
        if {flow["flow"], flow["topic"]} & set(getattr(plan.params, option)):
            return word
    return None


def explained_subscriber(
    plan: ChannelsSection, problem: InterestProblem, who: int, name: str
) -> dict[str, Any]:
    told = explain_subscriber(problem, plan.map, plan.weights, who)
    runner_up = None if told.runner_up is None else joined_record(told.runner_up)
    result = asdict(told) | {
        "joined": [joined_record(j) for j in told.joined],
        "runner_up": runner_up,
    }
    return {"subscriber": name, **result}


def joined_record(option: Joined) -> dict[str, Any]:
    return asdict(option) | {"unwanted_rate": option.unwanted_rate}


def no_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
