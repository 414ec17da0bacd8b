"""The section on channels: cost, curve, interest matrix, and a table of all channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, places_among
from fanplan.core.ledger import Ledger, unicast_cost
from fanplan.data.described import titled
from fanplan.layers.channels.bound import ChannelsBound
from fanplan.layers.channels.check.evidence import (
    ChannelTruth,
    Decisions,
    read_channel_truth,
    read_decisions,
)
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.report.curve import CurveWords, Level, curve_picture
from fanplan.layers.channels.report.matrix import audience_pairs, matrix_pictures
from fanplan.layers.channels.report.things import ChannelThings, Wanted
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.details import Shelf
from fanplan.page.material import NEEDS_DATASET, CurvePoint, Now, Told, ToldLayer
from fanplan.page.numbers import percent
from fanplan.page.saving import Saving, Step
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan

HEAVIEST = 2
"""Flows of a channel that are told in words."""
LEAD = (
    "Which flows share which multicast groups, and what is sent point to point. Every subscriber "
    "gets all it wants; what else comes over a channel is unwanted and costs as much."
)


def tell_channels(planned: ToldLayer, bound: ChannelsBound | None) -> Told:
    record, dataset = planned.plan.section(ChannelsRecord), planned.material.dataset
    pictures, notes = curve_pictures(planned, record, bound)
    sites, shelves, now = bound.sites() if bound else None, list[Shelf](), list[Now]()
    if dataset is None:
        listing = plain_listing(planned.name, planned.plan)
        notes.append(NEEDS_DATASET.format("the interest matrix, and what is wanted on channels"))
    else:
        truth = read_channel_truth(dataset)
        decisions = read_decisions(planned.plan, truth, Findings())
        pictures += matrix_pictures(planned.name, truth, decisions)
        listing = channel_listing(planned.name, truth, decisions)
        rates = truth.messages / truth.manifest.seconds
        wanted = wanted_pairs(truth, decisions, rates)
        things = ChannelThings(dataset, record, truth, decisions, wanted, sites)
        shelves, now = things.shelves(), [things.now()]
    listing = with_heaviest(listing, planned.plan)
    if sites is not None:
        listing = with_sites(listing, sites)
    section = Section(
        planned.name,
        planned.title,
        LEAD,
        channel_facts(record, bound is not None),
        pictures,
        [listing],
        tuple(notes),
    )
    return Told(channel_saving(planned, record), section, shelves=shelves, now=now)


def channel_saving(planned: ToldLayer, record: ChannelsRecord) -> Saving:
    return Saving(
        name=planned.name,
        layer="Channels",
        plan=planned.folder,
        unit="cost of messages",
        steps=(
            Step("sending all by unicast", all_unicast_cost(record)),
            Step("this plan", record.cost),
        ),
        gains=("multicast",),
        least=Step("perfect multicast", record.perfect),
    )


def all_unicast_cost(record: ChannelsRecord) -> float:
    """What everything costs by unicast."""
    return unicast_cost(Ledger(**record.ledger), record.weights)


def channel_facts(record: ChannelsRecord, bound: bool) -> list[tuple[str, Any]]:
    """What was decided; a layer that binds channels has one cost for all, and tells that."""
    ledger = Ledger(**record.ledger)
    in_vain = ledger.received_unwanted / ledger.received if ledger.received else 0.0
    costs = [
        ("cost", record.cost),
        ("above perfect multicast", percent(record.excess_percent / 100)),
        ("lower bound, above perfect", percent(record.bound_percent / 100)),
        ("lower bound, one channel per flow", percent(record.single_bound_percent / 100)),
    ]
    network = [] if record.traffic is None else traffic_facts(record.traffic)
    return [
        ("method", record.method),
        ("channels", record.channels),
        ("flows", record.flows),
        ("different audiences", record.audience_classes),
        *([] if bound else costs),
        ("sent by unicast", percent(record.unicast_fraction)),
        ("received in vain", percent(in_vain)),
        ("missed", ledger.missed),
        *network,
    ]


def traffic_facts(traffic: Mapping[str, float]) -> list[tuple[str, Any]]:
    """What crosses links, beside what would without limits to the tables of switches."""
    ideal = traffic["ideal"] or 1.0
    return [
        ("messages × links", traffic["planned"]),
        ("above ideal multicast on links", percent(traffic["planned"] / ideal - 1)),
        ("all by unicast, above ideal", percent(traffic["unicast"] / ideal - 1)),
        ("lower bound, above ideal", percent(traffic["bound"] / ideal - 1)),
    ]


def curve_pictures(
    planned: ToldLayer, record: ChannelsRecord, bound: ChannelsBound | None
) -> tuple[list[Picture], list[str]]:
    """The picture of the curve if there is one, else how to get it."""
    points = planned.material.curves.get(planned.plan.folder, ())
    if points and bound:
        return [bound.curve(planned.name, points)], []
    if not points:
        how = "the cost with other numbers of channels, which takes a plan for each"
        return [], [NEEDS_DATASET.format(how)] if planned.material.dataset is None else []
    chosen = CurvePoint(record.params.channels, record.cost, (record.bound, record.single_bound))
    return [curve_picture(f"{planned.name}-curve", points, chosen, curve_words(record))], []


def curve_words(record: ChannelsRecord) -> CurveWords:
    return CurveWords(
        x_title="number of channels",
        y_title="cost (weighted messages)",
        caption="No plan can be below the dashed line, and none with one channel per flow below "
        "the dotted one.",
        beside=(
            ("bound", "lower bound"),
            ("single bound", "lower bound, one channel per flow"),
        ),
        levels=(
            Level(all_unicast_cost(record), "all by unicast", "right"),
            Level(record.perfect, "perfect multicast", "left"),
        ),
    )


def with_sites(listing: Listing, site: Mapping[int, str]) -> Listing:
    """The same with the site of each channel beside its number."""
    rows = [(row[0], site[row[0]], *row[1:]) for row in listing.rows]
    first, *others = listing.header
    return replace(listing, header=(first, "multicast domain", *others), rows=rows)


def with_heaviest(listing: Listing, plan: StoredPlan) -> Listing:
    """The same with what most of the traffic of each channel is, in words."""
    flows = plan.read("flows", ("flow", "topic", "rate", "description"))
    carried = plan.read("channel_flows", ("channel", "flow"))
    flow = Axis("flow", whole(flows["flow"])).positions(carried["flow"])
    channel = carried["channel"].to_numpy()
    order = np.lexsort((flow, -flows["rate"].to_numpy()[flow], channel))
    rank = np.arange(len(order)) - np.searchsorted(channel[order], channel[order])
    few = order[rank < HEAVIEST]
    words = flows.select(("topic", "description")).take(pa.array(flow[few])).to_pylist()
    told: dict[int, list[str]] = {}
    for number, one in zip(channel[few].tolist(), words, strict=True):
        told.setdefault(number, []).append(titled(one["topic"], one["description"].split("; ")[0]))
    rows = [(*row, " · ".join(told.get(row[0], ()))) for row in listing.rows]
    return replace(listing, header=(*listing.header, "heaviest flows"), rows=rows)


def plain_listing(name: str, plan: StoredPlan) -> Listing:
    """What the plan's tables tell by themselves."""
    channels = plan.section(ChannelsRecord).channels
    flows = plan.read("flows", ("flow", "rate"))
    carried = plan.read("channel_flows", ("channel", "flow"))
    number = carried["channel"].to_numpy()
    rate = flows["rate"].to_numpy()[Axis("flow", whole(flows["flow"])).positions(carried["flow"])]
    joined = plan.read("channel_subscribers", ("channel",))["channel"].to_numpy()
    columns = (
        np.bincount(number, minlength=channels),
        np.bincount(joined, minlength=channels),
        np.bincount(number, rate, channels),
    )
    rows = zip(range(channels), *(column.tolist() for column in columns), strict=True)
    return Listing(
        f"{name}-channels",
        "Channels",
        ("channel", "flows", "members", "sent, messages/s"),
        sorted(rows, key=lambda row: -row[3]),
        opens={"channel": "channel"},
    )


def channel_listing(name: str, truth: ChannelTruth, decisions: Decisions) -> Listing:
    """A row per channel with what it brings that is wanted, and what is not."""
    channels = len(decisions.members.starts) - 1
    flows = decisions.channels.sides()
    rates = truth.messages / truth.manifest.seconds
    count = np.bincount(flows.right, minlength=channels)
    sent = np.bincount(flows.right, rates[flows.left], channels)
    members = np.diff(decisions.members.starts)
    pairs = wanted_pairs(truth, decisions, rates)
    wanted = np.bincount(pairs.channel, pairs.rate, channels)
    unwanted = np.maximum(sent * members - wanted, 0.0)
    received = np.maximum(sent * members, 1e-300)
    columns = (count, members, sent, wanted, unwanted, np.round(100 * unwanted / received, 1))
    rows = zip(range(channels), *(column.tolist() for column in columns), strict=True)
    return Listing(
        f"{name}-channels",
        "Channels",
        (
            *("channel", "flows", "members", "sent, messages/s"),
            *("wanted, messages/s", "unwanted, messages/s", "unwanted %"),
        ),
        sorted(rows, key=lambda row: -row[3]),
        "Sent counts a message once; wanted and unwanted count it at each member.",
        opens={"channel": "channel"},
    )


def wanted_pairs(truth: ChannelTruth, decisions: Decisions, rates: Floats) -> Wanted:
    """What each member wants of each of its channels."""
    people = max(len(truth.subscribers), 1)
    members = decisions.members.sides()
    joined = members.left * people + members.right
    pairs = audience_pairs(truth)
    served = np.zeros(len(pairs.left), bool)
    total = np.zeros(len(joined))
    starts = decisions.channels.starts
    for turn in range(int(np.diff(starts).max(initial=0))):
        has = starts[:-1][pairs.left] + turn < starts[1:][pairs.left]
        left = np.flatnonzero(has & ~served)
        channel = decisions.channels.right[starts[pairs.left[left]] + turn].astype(np.int64)
        at = places_among(joined, channel * people + pairs.right[left])
        brought, at = left[at >= 0], at[at >= 0]
        served[brought] = True
        total += np.bincount(at, rates[pairs.left[brought]], len(joined))
    return Wanted(members.left, members.right, total)
