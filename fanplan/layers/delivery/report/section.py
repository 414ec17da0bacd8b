"""The section on delivery: how traffic reaches people, by site and by audience class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.data.described import titled
from fanplan.layers.delivery.record import ANY, DeliveryRecord, told_domain
from fanplan.layers.delivery.report.ways import (
    BETWEEN,
    CHANNEL,
    DIRECT,
    HOP,
    TO_PEOPLE,
    TrafficWays,
    count_ways,
)
from fanplan.layers.delivery.steps import SITES
from fanplan.layers.groups.record import GroupsRecord
from fanplan.page.bars import Stack, stacked
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.material import NEEDS_DATASET, Told, ToldLayer
from fanplan.page.numbers import number, percent
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan

LEAD = (
    "How every message reaches everybody who wants it. To people: on a channel of their multicast "
    "domain, or alone, by a last hop from a broker of it or directly from another. Between "
    "brokers: matched once where it enters if it is in a group, else at every broker on its way."
)


UNIT = "cost of messages, matches and state"


LEAST = "what no plan can undercut"


TOGETHER, MARKED = "all together", "marking"


SYSTEMS = {
    "planned tree": "content routing on the planned tree",
    SITES: "one broker for each site",
    "channels": "with multicast channels",
    "layer by layer": "layers planned one by one",
    TOGETHER: "layers planned together",
}
"""What the steps of a plan are called as systems, unless by their own name."""


GAINS = {
    "content routing on a random tree": "routing on interest",
    "planned tree": "the planned tree",
    SITES: "one broker for each site",
    "channels": "multicast channels",
    "unicast": "sending on interest",
    TOGETHER: "planning all together",
    MARKED: "marking links",
}
"""What each step is due to; short, as a figure stands beside it, also on a phone."""


DOMAINS = "Multicast domains"


MOST_CLASSES = 500
"""Audience classes in the table; a plan may have very many small ones."""


PARTS = {
    "multicast": "channel",
    "last hop": "hop",
    "direct unicast": "direct",
    "forwarding": "forwarding",
    "matching": "matching",
    "state": "state",
    "control": "control",
    "subscriptions": "subscriptions",
}
"""The colours of parts of the cost."""


PEOPLE = dict(zip(TO_PEOPLE, ("channel", "hop", "direct"), strict=True))


BROKERS = dict(zip(BETWEEN, ("group", "matching", "entry", "direct"), strict=True))


def tell_delivery(planned: ToldLayer) -> Told:
    plan, dataset = planned.plan, planned.material.dataset
    ways = None if dataset is None else count_ways(plan, dataset)
    steps = stacks_of(plan.section(DeliveryRecord))
    pictures, listings = [], [parts_listing(planned.name, steps)]
    notes = [*reach_notes(plan), *warnings(plan)]
    if ways is None:
        listings.append(known_domains(planned.name, plan.section(DeliveryRecord)))
        notes.append(NEEDS_DATASET.format("how traffic reaches people by domain and class"))
    else:
        pictures = way_pictures(planned, ways)
        listings += [domain_listing(planned.name, ways), class_listing(planned.name, ways, plan)]
    section = Section(
        planned.name,
        planned.title,
        LEAD,
        delivery_facts(plan.section(DeliveryRecord)),
        pictures,
        listings,
        notes,
    )
    return Told(delivery_saving(planned), section, (parts_picture(planned.name, steps),))


def warnings(plan: StoredPlan) -> tuple[str, ...]:
    return tuple(map(in_a_sentence, plan.section(DeliveryRecord).warnings))


def reach_notes(plan: StoredPlan) -> tuple[str, ...]:
    """What is taken for granted of multicast."""
    assumed = plan.section(DeliveryRecord).assumed
    return (in_a_sentence(assumed),) if assumed else ()


def in_a_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def delivery_facts(record: DeliveryRecord) -> list[tuple[str, Any]]:
    fixed = (
        [("as another plan has them", ", ".join(record.params.fixed))]
        if record.params.fixed
        else []
    )
    several = [name for name in record.domains if name]
    everybody = "for everybody" if record.domains else "without multicast"
    where = f"in each of {len(several)} multicast domains" if several else everybody
    return [
        ("total cost", record.total),
        *([("of it delivery", record.cost)] if record.total != record.cost else []),
        ("delivery, planned layer by layer (stated)", record.layered),
        (least_words(record), record.bound),
        ("channels allowed", f"{number(record.channels)} {where}"),
        (
            "forwarding entries allowed",
            "any number" if record.params.most_entries is None else record.params.most_entries,
        ),
        ("unicast allowed", limit(record)),
        ("audience classes", record.classes),
        ("of these sent directly", record.direct),
        ("messages sent to one alone", percent(record.unicast_fraction)),
        ("of all, those that others on the site want too", percent(record.unicast_counted)),
        *fixed,
    ]


def least_words(record: DeliveryRecord) -> str:
    """What the bound bounds: cells that are coarser than filters bind only plans of these cells."""
    return LEAST if record.bound_name == ANY else f"{LEAST} at these cells"


def limit(record: DeliveryRecord) -> str:
    share = record.params.unicast_limit
    told = "any amount"
    if share is not None:
        told = f"up to {percent(share)} of messages, of those that several on a site want"
    return told if record.params.direct else f"{told}, none directly"


def delivery_saving(planned: ToldLayer) -> Saving:
    """One cost for all layers, from flooding or broadcast to the plan."""
    record = planned.plan.section(DeliveryRecord)
    return Saving(
        name=planned.name,
        layer="All layers",
        plan=planned.folder,
        unit=UNIT,
        steps=tuple(
            Step(words, step.cost)
            for words, step in zip(words_of(record), record.steps, strict=True)
        ),
        gains=tuple(gain(step.name, planned.plan) for step in record.steps[1:]),
        least=Step(least_words(record), record.bound),
    )


def stacks_of(record: DeliveryRecord) -> list[Stack]:
    """What the cost consists of at every step."""
    named = zip(words_of(record), record.steps, strict=True)
    return [Stack(words, step.parts) for words, step in named]


def words_of(record: DeliveryRecord) -> list[str]:
    """The steps as systems; the last is the plan."""
    return [*(SYSTEMS.get(step.name, step.name) for step in record.steps[:-1]), "this plan"]


def gain(name: str, plan: StoredPlan) -> str:
    """Layer by layer is what groups add to channels, or channels where there are no brokers."""
    if name == "layer by layer":
        return "groups matched once" if plan.has(GroupsRecord) else "multicast channels"
    return GAINS.get(name, name)


# ---- what it costs


def parts_picture(name: str, steps: list[Stack]) -> Picture:
    caption = "Every step on the way to the plan, at the same prices. Touch a part for its figures."
    return stacked(f"{name}-parts", "What the cost consists of", UNIT, steps, PARTS, caption)


def parts_listing(name: str, steps: list[Stack]) -> Listing:
    """Every part of the cost at every step."""
    used = [part for part in PARTS if any(part in stack.parts for stack in steps)]
    rows = [
        (stack.words, *(stack.parts.get(part, 0.0) for part in used), stack.total)
        for stack in steps
    ]
    return Listing(f"{name}-costs", "Cost by parts", ("system", *used, "all"), rows)


# ---- how it travels


def way_pictures(planned: ToldLayer, ways: TrafficWays) -> list[Picture]:
    """Deliveries by where people are, and messages by where they enter."""
    name = planned.name
    to_people = [
        Stack(site, dict(zip(TO_PEOPLE, row, strict=True)))
        for site, row in zip(ways.names, ways.by_domain().tolist(), strict=True)
    ]
    people = "A message counts once for each subscriber who wants it, where that subscriber is."
    pictures = [
        stacked(f"{name}-people", "To people, by domain", "deliveries", to_people, PEOPLE, people)
    ]
    if planned.plan.find(GroupsRecord) is None:
        return pictures
    between = [
        Stack(f"entering at {site}", dict(zip(BETWEEN, row, strict=True)))
        for site, row in zip(ways.names, ways.by_entry().tolist(), strict=True)
        if sum(row)
    ]
    brokers = "A message counts once, where it enters. Sites where none enters are left out."
    title = "Between brokers, by where messages enter"
    return [*pictures, stacked(f"{name}-brokers", title, "messages", between, BROKERS, brokers)]


def known_domains(name: str, record: DeliveryRecord) -> Listing:
    """Who is in which multicast domain, by the plan alone."""
    rows = [(told_domain(own.domain), own.brokers, own.subscribers) for own in record.multicast]
    return Listing(f"{name}-domains", DOMAINS, ("domain", "brokers", "subscribers"), rows)


def domain_listing(name: str, ways: TrafficWays) -> Listing:
    """A row for each multicast domain, and one for brokers that are in none."""
    stored, names = ways.stored, ways.names
    problem, count = stored.problem, len(ways.names)
    messages = problem.interest.messages
    sent = np.bincount(stored.assigned.right, messages[stored.assigned.left], ways.channels)
    members = np.bincount(stored.members.left, minlength=ways.channels)
    joined = np.unique(stored.members.right)
    to_people = ways.by_domain()
    received = np.bincount(stored.domain, sent * members, count)
    columns = (
        np.bincount(ways.placed(problem.domain), minlength=count),
        np.bincount(ways.home, minlength=count),
        np.bincount(stored.domain, minlength=count),
        np.bincount(ways.home[joined], minlength=count),
        np.bincount(stored.domain, sent, count),
        to_people[:, CHANNEL],
        np.maximum(received - to_people[:, CHANNEL], 0.0),
        to_people[:, HOP],
        to_people[:, DIRECT],
    )
    header = (
        *("domain", "brokers", "subscribers", "channels", "on channels", "sent on channels"),
        *("wanted from channels", "unwanted", "last hop", "direct unicast"),
    )
    rows = list(zip(names, *(column.tolist() for column in columns), strict=True))
    caption = (
        "Messages in the window. On channels are subscribers; sent counts a message once for each "
        "channel, the others at each subscriber."
    )
    return Listing(f"{name}-domains", DOMAINS, header, rows, caption)


def class_listing(name: str, ways: TrafficWays, plan: StoredPlan) -> Listing:
    """The audience classes with most deliveries, and how each reaches its subscribers."""
    interest = ways.stored.problem.interest
    to_people, between = ways.by_class(), ways.class_between()
    order = np.argsort(-to_people.sum(axis=1), kind="stable")[:MOST_CLASSES].tolist()
    example = flow_of_class(plan)
    homes = sites_reached(ways)
    rows = [
        (
            *(c, example.get(c, ""), int(interest.flows[c]), int(interest.audience_sizes[c])),
            *(int(homes[c]), float(interest.messages[c]), *to_people[c].tolist()),
            " + ".join(BETWEEN[way] for way in np.flatnonzero(between[c])),
        )
        for c in order
    ]
    header = (
        *("class", "for example", "flows", "subscribers", "sites", "messages"),
        *("by channel", "by last hop", "directly", "between brokers"),
    )
    most = f"The {number(MOST_CLASSES)} of {number(interest.size)} classes with most deliveries. "
    caption = (
        f"{most if interest.size > MOST_CLASSES else ''}Flows with the same audience are a class. "
        "By channel, by last hop and directly count a message at each subscriber."
    )
    listing = Listing(f"{name}-classes", "Audience classes", header, rows, caption)
    return listing if len(ways.stored.problem.brokers) > 1 else without_last(listing)


def without_last(listing: Listing) -> Listing:
    """Where there are no brokers there is nothing between them."""
    rows = [row[:-1] for row in listing.rows]
    return Listing(listing.name, listing.title, listing.header[:-1], rows, listing.caption)


def sites_reached(ways: TrafficWays) -> np.ndarray:
    """Of each class the number of domains where somebody wants it."""
    count = len(ways.names)
    pairs = np.unique(ways.row * count + ways.home[ways.person])
    return np.bincount(pairs // count, minlength=ways.stored.problem.interest.size)


def flow_of_class(plan: StoredPlan) -> dict[int, str]:
    """The busiest flow of each class, in words."""
    flows = plan.read("flows", ("flow", "topic", "description", "audience_class", "rate"))
    order = pc.sort_indices(flows, [("rate", "descending"), ("flow", "ascending")]).to_numpy()
    classes, first = np.unique(flows["audience_class"].to_numpy()[order], return_index=True)
    busiest = flows.select(("topic", "description")).take(pa.array(order[first])).to_pylist()
    return {int(c): titled(**row) for c, row in zip(classes, busiest, strict=True)}
