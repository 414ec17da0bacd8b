"""The section on the marking: links drawn by what travels on them, and all of them as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fanplan.data.reader import read_stage
from fanplan.layers.marking.record import MarkingRecord
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.details import Fact, Shelf
from fanplan.page.material import Told, ToldLayer
from fanplan.page.network import DrawnBroker, DrawnLink, link_name, network_drawing
from fanplan.page.numbers import number
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan

LEAD = (
    "Where publishers and subscribers are matched: on p-links advertisements travel downstream, on "
    "s-links subscriptions travel upstream. Each descriptor that is sent and kept costs."
)
WORDS = {"p": "advertisements travel", "s": "subscriptions travel"}


def tell_marking(planned: ToldLayer) -> Told:
    record, marks = planned.plan.section(MarkingRecord), rows_of_marks(planned.plan)
    section = Section(
        planned.name,
        planned.title,
        LEAD,
        marking_facts(record),
        [network_picture(planned.name, marks, planned.material.dataset, record.params.raw)],
        [mark_listing(planned.name, marks)],
    )
    return Told(marking_saving(planned, record), section, shelves=[mark_shelf(marks)])


def mark_shelf(marks: list[dict[str, Any]]) -> Shelf:
    """What travels on each link, in either direction."""
    told: dict[str, list[str]] = {}
    for row in marks:
        about = f"{WORDS[row['mark']]}, {number(row['descriptors'])} descriptors"
        words = f"{row['from_node']} → {row['to_node']}: {about}"
        told.setdefault(link_name(row["from_node"], row["to_node"]), []).append(words)
    return Shelf("link", list(told), [Fact("marks", ["\n".join(lines) for lines in told.values()])])


def marking_saving(planned: ToldLayer, record: MarkingRecord) -> Saving:
    counted = record.params.control_by == "one" and not record.params.prices.stored
    return Saving(
        name=planned.name,
        layer="Marking",
        plan=planned.folder,
        unit="descriptors sent" if counted else "price of descriptors",
        steps=(
            Step("subscriptions everywhere", record.sub_everywhere),
            Step("this plan", record.cost),
        ),
        gains=("marking links",),
        beside=(Step("publications everywhere", record.pub_everywhere),),
    )


def marking_facts(record: MarkingRecord) -> list[tuple[str, Any]]:
    return [
        ("trees", record.params.trees),
        ("nodes", record.nodes),
        ("nodes that publish", record.publishers),
        ("nodes that subscribe", record.subscribers),
        ("descriptors of publishers", record.published),
        ("descriptors of subscribers", record.subscribed),
        ("directed links in trees", record.links),
        ("p-links", record.p_links),
        ("s-links", record.s_links),
        ("cost", record.cost),
        ("with subscriptions everywhere", record.sub_everywhere),
        ("with advertisements everywhere", record.pub_everywhere),
    ]


def rows_of_marks(plan: StoredPlan) -> list[dict[str, Any]]:
    """Directed links with what their mark costs."""
    columns = ("from_node", "to_node", "mark", "sigma", "tau", "price")
    rows: list[dict[str, Any]] = plan.read("marks", columns).to_pylist()
    for row in rows:
        row["descriptors"] = row["sigma"] if row["mark"] == "p" else row["tau"]
        row["cost"] = row["descriptors"] * row["price"]
    return rows


def mark_listing(name: str, marks: list[dict[str, Any]]) -> Listing:
    columns = ("from_node", "to_node", "mark", "descriptors", "sigma", "tau", "cost")
    header = ("from", "to", "mark", "descriptors", "as p-link", "as s-link", "cost")
    rows = [tuple(row[column] for column in columns) for row in marks]
    rows, opens = sorted(rows, key=lambda row: -row[6]), dict.fromkeys(("from", "to"), "broker")
    return Listing(f"{name}-marks", "Links", header, rows, opens=opens)


def network_picture(
    name: str, marks: list[dict[str, Any]], dataset: Path | None, raw: bool
) -> Picture:
    names = sorted({row[end] for row in marks for end in ("from_node", "to_node")})
    at = {node: i for i, node in enumerate(names)}
    own = {} if dataset is None else node_descriptors(dataset, raw)
    content = network_drawing(
        f"{len(names)} nodes and {len(marks)} directed links",
        [node_of(node, own) for node in names],
        [mark_edge(at, row) for row in marks],
    )
    return Picture(
        f"{name}-network",
        "The marked network",
        content,
        "Each direction of a link is marked on its own; arrows point downstream. "
        "Wider links carry more descriptors. Click for more.",
        [
            ("link p", "p-link: advertisements"),
            ("link s", "s-link: subscriptions"),
            *([("broker", "has descriptors"), ("passing", "only passes on")] if own else []),
        ],
        zoom=True,
        wide=True,
    )


def node_descriptors(dataset: Path, raw: bool) -> dict[str, tuple[int, int]]:
    """How many each node has as publisher and as subscriber."""
    prefix = "raw_" if raw else ""
    columns = ("broker", f"{prefix}published", f"{prefix}subscribed")
    table = read_stage(dataset, "descriptors", columns)
    node, *counts = (table[name].to_pylist() for name in columns)
    return dict(zip(node, zip(*counts, strict=True), strict=True))


def node_of(node: str, own: dict[str, tuple[int, int]]) -> DrawnBroker:
    published, subscribed = own.get(node, (0, 0))
    told = f"\npublishes {number(published)}, subscribes to {number(subscribed)}" if own else ""
    kind = "" if published + subscribed or not own else "passing"
    return DrawnBroker(node, published + subscribed, node + told, kind)


def mark_edge(at: dict[str, int], row: dict[str, Any]) -> DrawnLink:
    told = f"{WORDS[row['mark']]}: {number(row['descriptors'])} descriptors"
    tip = f"{row['from_node']} → {row['to_node']}, {row['mark']}-link\n{told}"
    start, end = at[row["from_node"]], at[row["to_node"]]
    return DrawnLink(start, end, row["descriptors"], tip, row["mark"], bent=True)
