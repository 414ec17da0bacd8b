"""The section on the overlay: the drawn tree, loads and delays beside a random tree, brokers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE
from fanplan.layers.overlay.bound import OverlayBound
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.report.spread import Spread, Spreads, spreads
from fanplan.layers.overlay.report.tree import drawn_load, tree_picture
from fanplan.network.dataset import sites_of
from fanplan.page.charts import ChartLine, Frame, chart, chart_lines, share_steps
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.material import NEEDS_DATASET, Planned, Told
from fanplan.page.numbers import percent, ticks
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan

LEAD = (
    "Which brokers are linked. A message crosses the smallest part of the tree that joins where it "
    "enters with all brokers that want it; fewer messages on links and shorter ways are better."
)
ALL_TRAFFIC = (
    "Figures of this section are of all traffic on the tree alone, unless they are said to be with "
    "channels: then of what channels and direct unicast leave to brokers. Shortcuts of groups are "
    "not counted. The delay of a delivery is that of its way from broker to broker: up to where "
    "the subscriber is, or where a channel of its site begins. Direct unicast passes no brokers."
)


def tell_overlay(planned: Planned, bound: OverlayBound | None) -> Told:
    plan, dataset, name = planned.plan, planned.material.dataset, planned.name
    record = plan.section(OverlayRecord)
    found = None if dataset is None else spreads(plan, dataset, bound)
    brokers, links = broker_rows(plan, dataset, found), link_rows(plan, found)
    section = Section(
        name,
        planned.title,
        LEAD,
        facts(record),
        [tree_picture(name, plan, brokers, links, bound), *spread_pictures(planned, found)],
        [broker_listing(name, brokers), link_listing(name, links)],
        notes(found, bound),
    )
    return Told(saving_of(planned, record, found.random if found else None), section)


def notes(found: Spreads | None, bound: OverlayBound | None) -> tuple[str, ...]:
    if found is None:
        return (NEEDS_DATASET.format("loads and delays beside those of a random tree"),)
    return (ALL_TRAFFIC,) if bound else ()


def saving_of(planned: Planned, record: OverlayRecord, random: Spread | None) -> Saving:
    """From flooding over routing on a random tree, where it is known, to the plan."""
    flooded = record.ledger["publications"] * max(record.brokers - 1, 0)
    by_chance = (Step(random.words, random.ledger.link_messages),) if random else ()
    routed = "routing on interest"
    return Saving(
        name=planned.name,
        layer="Overlay",
        plan=planned.folder,
        unit="messages on links",
        steps=(
            Step("flooding every broker", flooded),
            *by_chance,
            Step("this plan", record.ledger["link_messages"]),
        ),
        gains=(routed, "this tree") if random else (routed,),
        least=Step("what no overlay undercuts", record.bound),
    )


def facts(record: OverlayRecord) -> list[tuple[str, Any]]:
    ledger = record.ledger
    told: list[tuple[str, Any]] = [
        ("tree", record.params.metric),
        ("brokers", record.brokers),
        ("links", record.links),
        ("trees", record.trees),
        ("clients", "where the workload has them" if record.clients == "given" else "allocated"),
        ("messages on links", ledger["link_messages"]),
        ("per publication", ratio(ledger["link_messages"], ledger["publications"])),
        (f"mean delay, {record.latency}", ratio(ledger["delay"], ledger["arrivals"])),
        ("processed only to forward", percent(ratio(ledger["forwarded"], ledger["processed"]))),
    ]
    if record.allocation:
        told += [("ranking of clients", record.allocating.ranking)]
        told += [("no allocation has fewer brokers than", record.allocation.bound)]
    return told


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def broker_rows(
    plan: StoredPlan, dataset: Path | None, found: Spreads | None
) -> list[dict[str, Any]]:
    """The plan's brokers with their links and clients counted, busiest first.

    ``site`` is there where the dataset knows one, ``left`` where channels leave less than all.
    """
    brokers: list[dict[str, Any]] = plan.read("brokers", ("broker", "capacity", "load")).to_pylist()
    links = plan.read("links", ("a", "b"))
    degree = Counter(links["a"].to_pylist()) + Counter(links["b"].to_pylist())
    clients = Counter(plan.read("clients", ("broker",))["broker"].to_pylist())
    sites = {} if dataset is None else sites_by_name(dataset, [row["broker"] for row in brokers])
    left = {}
    if found and found.left:
        left = dict(zip(found.brokers.to_pylist(), found.left.load.tolist(), strict=True))
    for row in brokers:
        name = row["broker"]
        row |= {"links": degree[name], "clients": clients[name]}
        row |= {"site": sites[name]} if name in sites else {}
        row |= {"left": left[name]} if left else {}
    return sorted(brokers, key=lambda row: (-row["load"], row["broker"]))


def sites_by_name(dataset: Path, brokers: list[str]) -> dict[str, str]:
    """The site of each broker that has one."""
    site, names = sites_of(dataset, pa.array(brokers, pa.string()))
    return {b: names[i].as_py() for b, i in zip(brokers, site.tolist(), strict=True) if i != NONE}


def link_rows(plan: StoredPlan, found: Spreads | None) -> list[dict[str, Any]]:
    """The plan's links, busiest first; ``left`` is there where channels leave less than all."""
    links: list[dict[str, Any]] = plan.read("links", ("a", "b", "rate", "weight")).to_pylist()
    if found and found.left:
        names = found.brokers.to_pylist()
        ends = [frozenset((names[a], names[b])) for a, b in found.links.tolist()]
        left = Counter[frozenset[str]]()
        for pair, rate in zip(ends, found.left.rates.tolist(), strict=True):
            left[pair] += rate
        links = [link | {"left": left[frozenset((link["a"], link["b"]))]} for link in links]
    return sorted(links, key=lambda link: -link["rate"])


COLUMNS = {
    "broker": "broker",
    "site": "site",
    "load": "load, messages/s",
    "left": "with channels, messages/s",
    "capacity": "capacity, messages/s",
    "used": "used %",
    "links": "links",
    "clients": "clients",
}
"""Columns of the table of brokers; those that no broker has are left out."""


def broker_listing(name: str, brokers: list[dict[str, Any]]) -> Listing:
    rows = [row | {"used": used(row)} for row in brokers]
    known = [key for key in COLUMNS if any(key in row for row in rows)]
    return Listing(
        f"{name}-brokers",
        "Brokers",
        [COLUMNS[key] for key in known],
        [tuple(row.get(key) for key in known) for row in rows],
    )


def used(row: dict[str, Any]) -> float | None:
    return round(100 * drawn_load(row) / row["capacity"], 1) if row["capacity"] else None


def link_listing(name: str, links: list[dict[str, Any]]) -> Listing:
    known = {"a": "broker", "b": "broker", "rate": "messages/s"}
    known |= {"left": COLUMNS["left"]} if any("left" in link for link in links) else {}
    known |= {"weight": "similarity"}
    rows = [tuple(link[key] for key in known) for link in links]
    return Listing(f"{name}-links", "Links", list(known.values()), rows)


def spread_pictures(planned: Planned, found: Spreads | None) -> list[Picture]:
    """Load of brokers and delay of arrivals, each as the share that lies below a value."""
    if found is None:
        return []
    name, unit = planned.name, planned.plan.section(OverlayRecord).latency
    if found.left:
        own = replace(found.own, words="this tree without channels")
        known = {"planned": found.left, "alone": own, "naive": found.random}
    else:
        known = {"planned": replace(found.own, words="this plan"), "naive": found.random}
    loads = {class_: (one.load, np.ones(len(one.load))) for class_, one in known.items()}
    delays = {class_: (one.delay, one.arrivals) for class_, one in known.items()}
    legend = [(class_, one.words) for class_, one in known.items()]
    what = "deliveries" if found.left else "arrivals"
    return [
        shares_chart(
            f"{name}-load", "Load of brokers", "load, messages/s", "brokers", loads, legend
        ),
        shares_chart(f"{name}-delay", f"Delay of {what}", f"delay, {unit}", what, delays, legend),
    ]


def shares_chart(
    name: str,
    title: str,
    x_title: str,
    what: str,
    known: dict[str, tuple[np.ndarray, np.ndarray]],
    legend: list[tuple[str, str]],
) -> Picture:
    """``known`` has values and weights by the class of their line, the most important first."""
    marks = ticks(max(float(values.max(initial=0.0)) for values, _ in known.values()))
    frame = Frame(lambda x: x / marks[-1], marks, x_title, ticks(100), f"% of {what} at or below")
    drawn = [
        ChartLine([(x, 100 * y) for x, y in share_steps(values, weights)], class_)
        for class_, (values, weights) in known.items()
        if weights.sum()
    ]
    content = chart(frame, title, *chart_lines(frame, drawn[::-1]))
    return Picture(name, title, content, "The further to the left, the better.", legend)
