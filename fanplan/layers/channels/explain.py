"""Why a row or a subscriber is where it is: what it costs there, and the next best place.

Rates are messages per second. Costs are per second, in the units of the plan's cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.core.prices import Weights
from fanplan.data.dataset import Dataset
from fanplan.data.described import words_at
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, ChannelsSection
from fanplan.layers.channels.names import FlowNames
from fanplan.layers.channels.record import subscriber_names
from fanplan.plan.made import Row

UNICAST = "unicast"
MOST_FLOWS = 20
"""Flows of one topic that are explained."""


def explain_row(
    problem: InterestProblem, map: ChannelMap, weights: Weights, row: int, unicast: bool = True
) -> Row:
    """Where a row goes; without ``unicast`` the other places are channels that serve all of it.

    ``unicast`` counts who gets it by unicast, ``perfect`` is its cost if it had a channel of its
    own, ``runner_up`` the cheapest other place with all members as they are: each channel alone,
    the rest of the audience by unicast, or unicast alone. Time is linear in the members of all
    channels.
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
    return {
        "rate": rate,
        "audience": len(audience),
        "channels": [carrying(int(j), int(sizes[j]), int(wanting[j]), rate) for j in mine],
        "unicast": direct,
        "cost": cost,
        "perfect": rate * (weights.w2 + weights.w1 * len(audience)),
        "runner_up": best,
        "runner_up_cost": rate * places[best] if best in places else None,
    }


NOWHERE, ALONE = -2, -1
"""Places of `next_best` that are no channel: none at all, and unicast."""
BLOCK = 1 << 22
"""Pairs of a row and a channel that are looked at together."""


def next_best(
    problem: InterestProblem,
    map: ChannelMap,
    weights: Weights,
    unicast: bool = True,
    most: float | None = None,
) -> tuple[Floats, Floats, Longs]:
    """Of every row its cost now, and the cost and place of its runner-up, as `explain_row` has it.

    ``most`` is the rate that a channel may have: one that would have more is no place.
    """
    sizes = map.members.counts(map.channels)
    mine, direct = map.assigned, map.unicast
    paid = np.bincount(mine.left, (weights.w2 + weights.w1 * sizes)[mine.right], problem.size)
    now = problem.rates * (
        paid + weights.unicast * np.bincount(direct.left, minlength=problem.size)
    )
    load = np.bincount(mine.right, problem.rates[mine.left], map.channels)
    held = np.bincount(mine.left, minlength=problem.size)
    only = np.full(problem.size, NOWHERE)
    only[mine.left] = mine.right
    shape = (
        problem.size,
        int(max(map.members.right.max(initial=0), problem.audience.max(initial=0))) + 1,
    )
    wants = csr_array((np.ones(len(problem.audience)), problem.audience, problem.indptr), shape)
    joined = csr_array(
        (np.ones(len(map.members.left)), (map.members.right, map.members.left)),
        (shape[1], map.channels),
    )
    cost, place = np.full(problem.size, np.inf), np.full(problem.size, NOWHERE)
    step = max(1, BLOCK // max(map.channels, 1))
    for start in range(0, problem.size, step):
        rows = np.arange(start, min(start + step, problem.size))
        wanting = (wants[rows] @ joined).toarray()
        audience = problem.audience_sizes[rows][:, None]
        alone = weights.w2 + weights.w1 * sizes + weights.unicast * (audience - wanting)
        able = np.broadcast_to(sizes > 0, alone.shape) if unicast else wanting == audience
        if most is not None:
            able = able & (load + problem.rates[rows][:, None] <= most)
        alone = np.where(able, alone, np.inf)
        single = held[rows] == 1
        alone[single, only[rows][single]] = np.inf
        alone = np.column_stack((alone, np.full(len(rows), np.inf)))
        if unicast:
            alone[held[rows] > 0, -1] = weights.unicast * audience[held[rows] > 0, 0]
        best = alone.argmin(axis=1)
        found = alone[np.arange(len(rows)), best]
        cost[rows] = problem.rates[rows] * found
        named = np.where(best == map.channels, ALONE, best)
        place[rows] = np.where(np.isfinite(found), named, NOWHERE)
    return now, cost, place


def carrying(channel: int, members: int, wanting: int, rate: float) -> Row:
    """One channel that carries a row: members who want it, and what others receive in vain."""
    return {
        "channel": channel,
        "members": members,
        "wanting": wanting,
        "unwanted_rate": rate * (members - wanting),
    }


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


def explain_subscriber(
    problem: InterestProblem, map: ChannelMap, weights: Weights, subscriber: int
) -> Row:
    """Where a subscriber gets what it wants from; linear in the audiences and in the map.

    ``cost`` is that of receiving; sending to channels is not a subscriber's cost. ``runner_up`` is
    the channel not joined that would come nearest to paying, if any carries something wanted.
    """
    rates = problem.rates
    wanted = np.flatnonzero(problem.audience == subscriber)
    rows = np.searchsorted(problem.indptr, wanted, side="right") - 1
    wants = np.zeros(problem.size, dtype=bool)
    wants[rows] = True
    joined = map.members.left[map.members.right == subscriber]
    direct = map.unicast.left[map.unicast.right == subscriber]
    options = channel_options(map, rates, wants, joined, weights)
    mine = [options[j] for j in joined]
    others = [o for o in options if o["channel"] not in joined and o["wanted_rate"] > 0]
    unicast_rate = float(rates[direct].sum())
    return {
        "wanted_rate": float(rates[rows].sum()),
        "joined": mine,
        "unicast_rate": unicast_rate,
        "unicast_rows": len(direct),
        "cost": weights.w1 * sum(o["rate"] for o in mine) + weights.unicast * unicast_rate,
        "runner_up": max(others, key=lambda option: option["saves"], default=None),
    }


def channel_options(
    map: ChannelMap, rates: Floats, wants: np.ndarray, joined: Ints, weights: Weights
) -> list[Row]:
    """What each channel would bring to the subscriber beside the joined ones.

    ``only_here`` is what the subscriber wants there and gets from no other channel. Joining
    ``saves`` unicast of that, less receiving the channel.
    """
    rows, channels = map.assigned.left, map.assigned.right
    is_joined = np.zeros(map.channels, dtype=bool)
    is_joined[joined] = True
    brought = np.bincount(rows[is_joined[channels]], minlength=len(rates))
    elsewhere = (brought[rows] - is_joined[channels]) > 0
    load = rates[rows]
    total = np.bincount(channels, load, map.channels)
    wanted = np.bincount(channels, load * wants[rows], map.channels)
    only = np.bincount(channels, load * (wants[rows] & ~elsewhere), map.channels)
    columns = {
        "channel": np.arange(map.channels),
        "rate": total,
        "wanted_rate": wanted,
        "only_here": only,
        "saves": weights.unicast * only - weights.w1 * total,
        "unwanted_rate": total - wanted,
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


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


def explain_name(plan: ChannelsSection, dataset: Dataset, name: str) -> list[Row]:
    """All that the name means: the subscriber, and the flow or the first flows of the topic."""
    found, problem = find_named(dataset, name), dataset.interest(plan.rows)
    explained = []
    if found.subscriber >= 0:
        told = explain_subscriber(problem, plan.map, plan.weights, found.subscriber)
        explained.append({"subscriber": name, **told})
    numbers = found.numbers[:MOST_FLOWS]
    words = words_at(dataset.path, numbers) if len(numbers) else []
    for number, described in zip(numbers.tolist(), words, strict=True):
        row = number if plan.rows == "flow" else int(found.flows.classes[number])
        flow = found.flows.wanted.slice(number, 1).to_pylist()[0] | {"description": described}
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
    plan: ChannelsSection, problem: InterestProblem, row: int, flow: Row, rate: float
) -> Row:
    """One flow; a row is its audience class or itself, so its share of the row's rate is told."""
    because = asked_for(plan, flow)
    alone = problem.audience_sizes[row] == 1
    by_unicast = (alone or plan.params.unicast_limit != 0) and because != "pinned"
    told = explain_row(problem, plan.map, plan.weights, row, by_unicast)
    if because == "off multicast":
        told |= {"runner_up": "none", "runner_up_cost": None}
    share = rate / told["rate"] if told["rate"] else 0.0
    for key in ("cost", "perfect", "runner_up_cost"):
        told[key] = None if told[key] is None else told[key] * share
    for carried in told["channels"]:
        carried["unwanted_rate"] *= share
    named = {name: flow[name] for name in ("flow", "topic", "description")}
    return {**named, "asked_for": because, **told, "rate": rate}


def asked_for(plan: ChannelsSection, flow: dict[str, Any]) -> str | None:
    """Whether the user wanted the flow on channels or off them."""
    for option, word in (("pinned", "pinned"), ("off_multicast", "off multicast")):
        if {flow["flow"], flow["topic"]} & set(getattr(plan.params, option)):
            return word
    return None
