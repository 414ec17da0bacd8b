"""The section on the overlay: the drawn tree, loads and delays beside a random tree, brokers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from fanplan.plan.overlay.record import OverlayRecord
from fanplan.plan.stored import StoredPlan
from fanplan.reporting.charts import Frame, Line, chart, lines, shares
from fanplan.reporting.content import Listing, Picture, Section
from fanplan.reporting.material import NEEDS_DATASET, Planned, Told
from fanplan.reporting.network import Edge, Node, network
from fanplan.reporting.numbers import number, percent, ticks
from fanplan.reporting.overlay_spread import Spread, spreads
from fanplan.reporting.saving import Saving, Step

LEAD = (
    "Which brokers are linked. A message crosses the smallest part of the tree that joins where it "
    "enters with all brokers that want it; fewer messages on links and shorter ways are better."
)


def tell_overlay(planned: Planned) -> Told:
    plan, dataset = planned.plan, planned.material.dataset
    found = () if dataset is None else spreads(plan, dataset)
    pictures = [tree_picture(planned.name, plan)]
    pictures += spread_pictures(planned.name, found, plan.overlay.latency) if found else []
    missing = NEEDS_DATASET.format("loads and delays beside those of a random tree")
    section = Section(
        planned.name,
        planned.title,
        LEAD,
        facts(plan.overlay),
        pictures,
        [broker_listing(planned.name, plan), link_listing(planned.name, plan)],
        () if found else (missing,),
    )
    return Told(saving_of(planned, plan.overlay, found[1] if found else None), section)


def saving_of(planned: Planned, record: OverlayRecord, random: Spread | None) -> Saving:
    """From flooding over routing on a random tree, where it is known, to the plan."""
    flooded = record.ledger["publications"] * max(record.brokers - 1, 0)
    by_chance = (Step(random.words, random.ledger.link_messages),) if random else ()
    routed = "saved by routing on interest"
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
        gains=(routed, "saved by this tree") if random else (routed,),
        least=Step("what no overlay undercuts", record.bound),
    )


def facts(record: OverlayRecord) -> list[tuple[str, Any]]:
    ledger = record.ledger
    told: list[tuple[str, Any]] = [
        ("tree", record.method),
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
        told += [("ranking of clients", record.allocation.method)]
        told += [("no allocation has fewer brokers than", record.allocation.bound)]
    return told


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def broker_rows(plan: StoredPlan) -> list[dict[str, Any]]:
    """The plan's brokers with their links and clients counted, busiest first."""
    brokers = plan.read("brokers", ("broker", "capacity", "load")).to_pylist()
    links = plan.read("links", ("a", "b"))
    degree = Counter(links["a"].to_pylist()) + Counter(links["b"].to_pylist())
    clients = Counter(plan.read("clients", ("broker",))["broker"].to_pylist())
    for row in brokers:
        row |= {"links": degree[row["broker"]], "clients": clients[row["broker"]]}
    return sorted(brokers, key=lambda row: (-row["load"], row["broker"]))


def broker_listing(name: str, plan: StoredPlan) -> Listing:
    rows = [
        (r["broker"], r["load"], r["capacity"], used(r), r["links"], r["clients"])
        for r in broker_rows(plan)
    ]
    header = ("broker", "load, messages/s", "capacity, messages/s", "used %", "links", "clients")
    return Listing(f"{name}-brokers", "Brokers", header, rows)


def used(row: dict[str, Any]) -> float | None:
    return round(100 * row["load"] / row["capacity"], 1) if row["capacity"] else None


def link_listing(name: str, plan: StoredPlan) -> Listing:
    rows = plan.read("links", ("a", "b", "rate", "weight")).sort_by([("rate", "descending")])
    header = ("broker", "broker", "messages/s", "similarity")
    return Listing(f"{name}-links", "Links", header, [tuple(r.values()) for r in rows.to_pylist()])


def tree_picture(name: str, plan: StoredPlan) -> Picture:
    rows = sorted(broker_rows(plan), key=lambda row: row["broker"])
    at = {row["broker"]: i for i, row in enumerate(rows)}
    links = plan.read("links", ("a", "b", "rate"))
    content = network(
        f"{len(rows)} brokers and {len(links)} links",
        [Node(row["broker"], row["load"], broker_tip(row), overloaded(row)) for row in rows],
        [edge(at, link) for link in links.to_pylist()],
    )
    return Picture(
        f"{name}-tree",
        "The tree" if plan.overlay.trees == 1 else f"The links of {plan.overlay.trees} trees",
        content,
        "Brokers are as large as their load, links as wide as their traffic. Hover for figures.",
        [("broker", "broker"), ("broker over", "over its capacity"), ("link", "link")],
        zoom=True,
        wide=True,
    )


def edge(at: dict[str, int], link: dict[str, Any]) -> Edge:
    tip = f"{link['a']} – {link['b']}\n{number(link['rate'])} messages/s"
    return Edge(at[link["a"]], at[link["b"]], link["rate"], tip)


def broker_tip(row: dict[str, Any]) -> str:
    limit = f" of {number(row['capacity'])}" if row["capacity"] else ""
    told = f"load {number(row['load'])}{limit} messages/s"
    return f"{row['broker']}\n{told}\n{row['links']} links, {number(row['clients'])} clients"


def overloaded(row: dict[str, Any]) -> str:
    return "over" if row["capacity"] and row["load"] > row["capacity"] * (1 + 1e-9) else ""


def spread_pictures(name: str, found: tuple[Spread, ...], unit: str) -> list[Picture]:
    """Load of brokers and delay of arrivals, each as the share that lies below a value."""
    loads = [(one.load, np.ones(len(one.load))) for one in found]
    delays = [(one.delay, one.arrivals) for one in found]
    return [
        below(f"{name}-load", "Load of brokers", "load, messages/s", "brokers", loads),
        below(f"{name}-delay", "Delay of arrivals", f"delay, {unit}", "arrivals", delays),
    ]


def below(
    name: str, title: str, x_title: str, what: str, known: list[tuple[np.ndarray, np.ndarray]]
) -> Picture:
    most = max(float(values.max(initial=0.0)) for values, _ in known)
    marks = ticks(most)
    frame = Frame(lambda x: x / marks[-1], marks, x_title, ticks(100), f"% of {what} at or below")
    drawn = [
        Line([(x, 100 * y) for x, y in shares(values, weights)], class_)
        for (values, weights), class_ in zip(known, ("planned", "naive"), strict=True)
        if weights.sum()
    ]
    return Picture(
        name,
        title,
        chart(frame, title, *lines(frame, drawn[::-1])),
        "The further to the left, the better.",
        [("planned", "this plan"), ("naive", "a random tree")],
    )
