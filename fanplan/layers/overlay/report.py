"""The section on the overlay: the drawn tree, loads and delays beside a random tree, brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fanplan.core.arrays import NONE, Floats, Longs, listed_by
from fanplan.data.links import HOP
from fanplan.layers.overlay.bound import OverlayBound, Passages, arriving
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.simulated import read_overlay
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger, ratio, trees_ledger
from fanplan.network.dataset import broker_spots, multicast_domains
from fanplan.network.latency import Timing
from fanplan.network.trees import Trees, breadth_first, distances, near_of, one_tree
from fanplan.page.charts import ChartLine, Frame, chart, chart_lines, share_steps
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.details import Fact, Related, Shelf
from fanplan.page.map import ground_of
from fanplan.page.material import NEEDS_DATASET, Now, Told, ToldLayer
from fanplan.page.network import DrawnBroker, DrawnLink, Ground, link_name, network_drawing
from fanplan.page.numbers import TIMES, number, percent, rate, rate_time, ticks
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.legs import DelayCounts, delay_counts

LEAD = (
    "Which brokers are linked. A message crosses the smallest part of the tree that joins where it "
    "enters with all brokers that want it; fewer messages on links and shorter ways are better."
)


ALL_TRAFFIC = (
    "Figures of this section are of all traffic on the tree alone, unless they are said to be with "
    "channels: then of what channels and direct unicast leave to brokers. Shortcuts of groups are "
    "not counted in loads and traffic. The delay of a delivery is that of its own way from broker "
    "to broker, up to where the subscriber is. Shortcuts, messages on channels and direct ones "
    "take the shortest way over links."
)


COLUMNS = {
    "broker": "broker",
    "site": "multicast domain",
    "load": "load, messages/s",
    "left": "with channels, messages/s",
    "capacity": "capacity, messages/s",
    "used": "used %",
    "links": "links",
    "clients": "clients",
}
"""Columns of the table of brokers; those that no broker has are left out."""


MOST_NAMED = 6
"""Neighbours that an action names."""


COLOURS = 8
"""Sites that are told apart; with more, colours come again."""


CAPTION = "Brokers are as large as their load, links as wide as their traffic. Click for more."


LEFT = "Load and traffic are what channels leave to brokers. "


def tell_overlay(planned: ToldLayer, bound: OverlayBound | None) -> Told:
    plan, dataset, name = planned.plan, planned.material.dataset, planned.name
    record = plan.section(OverlayRecord)
    found = None if dataset is None else spreads(plan, dataset, bound)
    brokers, links = broker_rows(plan, dataset, found), link_rows(plan, found)
    section = Section(
        name,
        planned.title,
        LEAD,
        overlay_facts(record),
        [
            tree_picture(name, plan, brokers, links, bound),
            *map_pictures(planned, brokers, links, bound),
            *spread_pictures(planned, found),
        ],
        [broker_listing(name, brokers), link_listing(name, links)],
        section_notes(found, bound),
    )
    saving = overlay_saving(planned, record, found.random if found else None)
    now = brokers_now(record, brokers, links, plan.record.input.seconds)
    return Told(saving, section, shelves=overlay_shelves(plan, brokers, links), now=[now])


def brokers_now(
    record: OverlayRecord,
    brokers: list[dict[str, Any]],
    links: list[dict[str, Any]],
    seconds: float,
) -> Now:
    """What brokers process, and what each is linked with."""
    near: dict[str, list[str]] = {}
    for link in links:
        near.setdefault(link["a"], []).append(link["b"])
        near.setdefault(link["b"], []).append(link["a"])
    names, actions = [row["broker"] for row in brokers], []
    for row in brokers:
        others = sorted(near.get(row["broker"], ()))
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        linked = f"link to {', '.join(others[:MOST_NAMED])}{more}" if others else ""
        clients = f"serve {number(row['clients'])} clients" if row["clients"] else ""
        actions.append("; ".join(filter(None, (linked, clients))))
    everything = record.ledger["publications"] / seconds
    return Now("broker", names, [drawn_load(row) for row in brokers], everything, actions)


def overlay_shelves(
    plan: StoredPlan, brokers: list[dict[str, Any]], links: list[dict[str, Any]]
) -> list[Shelf]:
    """Brokers with their links and clients, and links."""
    names = [row["broker"] for row in brokers]
    linked = [link_name(link["a"], link["b"]) for link in links]
    ends = [(link[end], i) for i, link in enumerate(links) for end in ("a", "b")]
    clients = plan.read("clients", ("client", "role", "broker")).sort_by("client").to_pylist()
    at = {role: [row for row in clients if row["role"] == role] for role in CLIENTS}
    related = [Related("Links", "link", linked, *grouped_by_name(names, ends), back="Between")]
    for role, title in CLIENTS.items():
        known = list(dict.fromkeys(row["client"] for row in at[role]))
        number = {name: i for i, name in enumerate(known)}
        own = grouped_by_name(names, [(row["broker"], number[row["client"]]) for row in at[role]])
        related.append(Related(title, role, known, *own, back="At broker"))
    rates = {"left": "load", "load": "load without channels"}
    rates = rates if any("left" in row for row in brokers) else {"load": "load"}
    facts = [
        Fact("multicast domain", [row.get("site") for row in brokers]),
        *(Fact(words, [row[key] for row in brokers], "rate") for key, words in rates.items()),
        Fact("capacity", [row["capacity"] for row in brokers], "rate"),
        Fact("links", [row["links"] for row in brokers]),
        Fact("clients", [row["clients"] for row in brokers]),
    ]
    carried = {"left": "carries", "rate": "without channels"}
    carried = carried if any("left" in link for link in links) else {"rate": "carries"}
    about = [Fact(words, [x[key] for x in links], "rate") for key, words in carried.items()]
    return [Shelf("broker", names, facts, related), Shelf("link", linked, about)]


def grouped_by_name(names: list[str], pairs: list[tuple[str, int]]) -> tuple[Longs, Longs]:
    """Numbers by the name that they are paired with: where those of each name start, and all."""
    at = {name: i for i, name in enumerate(names)}
    known = [(at[name], number) for name, number in pairs if name in at]
    key, numbers = np.array(known, np.int64).reshape(-1, 2).T
    starts, order = listed_by(key, len(names))
    return starts, numbers[order]


CLIENTS = {"subscriber": "Subscribers here", "publisher": "Publishers here"}
"""Roles of clients, and what a broker calls them."""


def section_notes(found: Spreads | None, bound: OverlayBound | None) -> tuple[str, ...]:
    if found is None:
        return (NEEDS_DATASET.format("loads and delays beside those of a random tree"),)
    return (*((ALL_TRAFFIC,) if bound else ()), *found.unknown)


def overlay_saving(planned: ToldLayer, record: OverlayRecord, random: Spread | None) -> Saving:
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


def overlay_facts(record: OverlayRecord) -> list[tuple[str, Any]]:
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


def broker_rows(
    plan: StoredPlan, dataset: Path | None, found: Spreads | None
) -> list[dict[str, Any]]:
    """The plan's brokers with their links and clients counted, busiest first.

    ``site``, a multicast domain, is there where the dataset knows one, ``left`` where channels
    leave less than all.
    """
    brokers: list[dict[str, Any]] = plan.read("brokers", ("broker", "capacity", "load")).to_pylist()
    links = plan.read("links", ("a", "b"))
    degree = Counter(links["a"].to_pylist()) + Counter(links["b"].to_pylist())
    clients = Counter(plan.read("clients", ("broker",))["broker"].to_pylist())
    sites, left = {}, {}
    if dataset is not None:
        own = pa.array([row["broker"] for row in brokers], pa.string())
        site, names = multicast_domains(dataset, own)
        places = zip(brokers, site.tolist(), strict=True)
        sites = {row["broker"]: names[i].as_py() for row, i in places if i != NONE}
    if found and found.left:
        left = dict(zip(found.brokers.to_pylist(), found.left.load.tolist(), strict=True))
    for row in brokers:
        name = row["broker"]
        row |= {"links": degree[name], "clients": clients[name]}
        row |= {"site": sites[name]} if name in sites else {}
        row |= {"left": left[name]} if left else {}
    return sorted(brokers, key=lambda row: (-row["load"], row["broker"]))


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


def broker_listing(name: str, brokers: list[dict[str, Any]]) -> Listing:
    rows = [row | {"used": used(row)} for row in brokers]
    known = [key for key in COLUMNS if any(key in row for row in rows)]
    return Listing(
        f"{name}-brokers",
        "Brokers",
        [COLUMNS[key] for key in known],
        [tuple(row.get(key) for key in known) for row in rows],
        opens={"broker": "broker"},
    )


def used(row: dict[str, Any]) -> float | None:
    return round(100 * drawn_load(row) / row["capacity"], 1) if row["capacity"] else None


def link_listing(name: str, links: list[dict[str, Any]]) -> Listing:
    known = {"link": "link", "rate": "messages/s"}
    known |= {"left": COLUMNS["left"]} if any("left" in link for link in links) else {}
    known |= {"weight": "similarity"}
    named = [link | {"link": link_name(link["a"], link["b"])} for link in links]
    rows = [tuple(link[key] for key in known) for link in named]
    header, opens = list(known.values()), {"link": "link"}
    return Listing(f"{name}-links", "Links", header, rows, opens=opens)


def spread_pictures(planned: ToldLayer, found: Spreads | None) -> list[Picture]:
    """Load of brokers and delay of arrivals, each as the share that lies below a value."""
    if found is None:
        return []
    name, unit = planned.name, planned.plan.section(OverlayRecord).latency
    if found.left:
        own = replace(found.own, words="this tree without channels")
        known = {"planned": found.left, "alone": own, "naive": found.random}
    else:
        known = {"planned": replace(found.own, words="this plan"), "naive": found.random}
    time = rate_time(found.own.load.tolist())
    loads = {
        class_: (one.load * TIMES[time], np.ones(len(one.load))) for class_, one in known.items()
    }
    delays = {class_: (one.delay, one.arrivals) for class_, one in known.items()}
    legend = [(class_, one.words) for class_, one in known.items()]
    what = "deliveries" if found.left else "arrivals"
    return [
        shares_chart(
            f"{name}-load", "Load of brokers", f"load, messages/{time}", "brokers", loads, legend
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


def tree_picture(
    name: str,
    plan: StoredPlan,
    brokers: list[dict[str, Any]],
    links: list[dict[str, Any]],
    bound: OverlayBound | None,
) -> Picture:
    """The network of brokers and links, as `broker_rows` and `link_rows` tell them."""
    trees = plan.section(OverlayRecord).trees
    title = "The tree" if trees == 1 else f"The links of {trees} trees"
    return drawn_brokers(f"{name}-tree", title, brokers, links, bound)


def map_pictures(
    planned: ToldLayer,
    brokers: list[dict[str, Any]],
    links: list[dict[str, Any]],
    bound: OverlayBound | None,
) -> list[Picture]:
    """The brokers where they are, and the links between them; nothing if no two places are known.

    Brokers without a place are not on the map.
    """
    dataset = planned.material.dataset
    spots = {} if dataset is None else broker_spots(dataset)
    there = [row for row in brokers if row["broker"] in spots]
    if len({spots[row["broker"]] for row in there}) < 2:
        return []
    rows = sorted(there, key=lambda row: row["broker"])
    ground = ground_of(*zip(*(spots[row["broker"]] for row in rows), strict=True))
    between = [link for link in links if link["a"] in spots and link["b"] in spots]
    picture = drawn_brokers(f"{planned.name}-map", "The map", rows, between, bound, ground)
    lost = len(brokers) - len(there)
    missing = f" {lost} of {len(brokers)} brokers have no place." if lost else ""
    return [replace(picture, caption=f"{picture.caption} Outlines of land are coarse.{missing}")]


def drawn_brokers(
    name: str,
    title: str,
    brokers: list[dict[str, Any]],
    links: list[dict[str, Any]],
    bound: OverlayBound | None,
    ground: Ground | None = None,
) -> Picture:
    """Brokers by name; with a ground, which has their places in that order."""
    rows = sorted(brokers, key=lambda row: row["broker"])
    at = {row["broker"]: i for i, row in enumerate(rows)}
    sites = sorted({row["site"] for row in rows if row.get("site")})
    site = {row["broker"]: site_class(row.get("site"), sites) for row in rows}
    inside = bound.channels_inside() if bound else {}
    content = network_drawing(
        f"{title}: {len(rows)} brokers and {len(links)} links",
        [DrawnBroker(r["broker"], drawn_load(r), tip(r, inside), class_of(r, site)) for r in rows],
        [drawn_link(at, link, site) for link in links],
        ground,
    )
    over = [("broker over", "over its capacity")] if any(map(overloaded, rows)) else []
    return Picture(
        name,
        title,
        content,
        f"{LEFT if bound and 'left' in rows[0] else ''}{CAPTION}",
        [
            *(legend(sites, inside) or [("broker", "broker")]),
            *over,
            ("link", "link between multicast domains" if sites else "link"),
        ],
        zoom=True,
        wide=True,
    )


def legend(sites: list[str], inside: Mapping[str, int]) -> list[tuple[str, str]]:
    """The colours of sites with the channels inside, or that they are too many."""
    if len(sites) > COLOURS:
        return [("broker", f"brokers of {len(sites)} multicast domains; colours come again")]
    told = [f"{site}, {inside[site]} channels inside" if inside else site for site in sites]
    return [(f"broker site{i}", words) for i, words in enumerate(told)]


def site_class(site: str | None, sites: list[str]) -> str:
    return f"site{sites.index(site) % COLOURS}" if site else ""


def class_of(row: dict[str, Any], site: dict[str, str]) -> str:
    return f"{site[row['broker']]} {'over' if overloaded(row) else ''}".strip()


def overloaded(row: dict[str, Any]) -> bool:
    return bool(row["capacity"] and drawn_load(row) > row["capacity"] * (1 + 1e-9))


def drawn_load(row: dict[str, Any]) -> float:
    """What channels leave, where that is known."""
    load: float = row.get("left", row["load"])
    return load


def tip(row: dict[str, Any], inside: Mapping[str, int]) -> str:
    limit = f" of {rate(row['capacity'])}" if row["capacity"] else ""
    lines = [row["broker"] + (f", {row['site']}" if row.get("site") else "")]
    lines.append(f"load {rate(drawn_load(row))}{limit}")
    if "left" in row:
        lines.append(f"without channels {rate(row['load'])}")
    lines.append(f"{row['links']} links, {number(row['clients'])} clients")
    if row.get("site") in inside:
        lines.append(f"{inside[row['site']]} multicast channels inside {row['site']}")
    return "\n".join(lines)


def drawn_link(at: dict[str, int], link: dict[str, Any], site: dict[str, str]) -> DrawnLink:
    """A link inside a site has its colour."""
    start, end = link["a"], link["b"]
    class_ = site[start] if site[start] == site[end] else ""
    carried = link.get("left", link["rate"])
    more = f"\nwithout channels {rate(link['rate'])}" if "left" in link else ""
    told = f"{start} – {end}\n{rate(carried)}{more}"
    return DrawnLink(at[start], at[end], carried, told, class_)


# ---- how trees spread load and delay: the plan's own beside a random one, and what channels leave


@dataclass(frozen=True)
class Spread:
    """The ledger of trees, and the delays of arrivals: so many ``arrivals`` take each ``delay``."""

    words: str
    ledger: OverlayLedger
    load: Floats
    """messages per second of each broker"""
    rates: Floats
    """messages per second on each link, both ways"""
    delay: Floats
    arrivals: Floats


@dataclass(frozen=True)
class Spreads:
    """The plan's trees and a random tree for the same traffic; and the plan's with what is left.

    ``left`` is what channels and direct unicast leave to brokers, without shortcuts of groups, but
    with the delays of all deliveries on their own ways; None if they leave all. ``brokers`` and
    ``links`` say what the numbers in the spreads mean, ``unknown`` what was assumed of latencies.
    """

    brokers: pa.Array
    links: NDArray[np.int32]
    own: Spread
    random: Spread
    left: Spread | None = None
    unknown: tuple[str, ...] = ()


def spreads(plan: StoredPlan, dataset: Path, bound: OverlayBound | None = None) -> Spreads:
    """Count the plan's trees and a random tree, which is drawn with the plan's seed.

    Arrivals are those at brokers, or in a plan of all layers deliveries to subscribers.
    """
    stored = read_overlay(plan, dataset)
    problem, trees = stored.problem, stored.trees
    chance = one_tree(random_tree(problem, plan.record.seed))
    if bound is None:
        passing, left = arriving(problem.routes), None
    else:
        passing, taken, less = bound.left(dataset, problem)
        left = spread_of("this plan", less, trees, taken)
    own = spread_of("this tree", problem, trees, delays(problem, trees, passing))
    random = spread_of("a random tree", problem, chance, delays(problem, chance, passing))
    return Spreads(problem.brokers, trees.links, own, random, left, unknown(problem, trees))


def unknown(problem: OverlayProblem, trees: Trees) -> tuple[str, ...]:
    """For how many links of the trees a latency was assumed, if others have one."""
    timing = Timing(problem.size, problem.links, HOP)
    assumed = int(timing.over_links(trees.links).assumed.sum()) if problem.timed else 0
    if not assumed:
        return ()
    told = f"{assumed} of {len(trees.links)} links of this plan have no latency in the input"
    return (f"{told}: {timing.assumed_ms:g} ms is assumed for each, the median of the others.",)


def spread_of(words: str, problem: OverlayProblem, trees: Trees, taken: DelayCounts) -> Spread:
    ledger = trees_ledger(problem, trees)
    load, rates = ledger.processed / problem.seconds, ledger.link.sum(axis=1) / problem.seconds
    return Spread(words, ledger, load, rates, taken.ms, taken.count)


def delays(problem: OverlayProblem, trees: Trees, passing: Passages) -> DelayCounts:
    """How long arrivals take on an idle network, on the trees alone."""
    source, target = passing.source, passing.target
    latency, taken = problem.latencies(trees.links), np.zeros(len(source))
    near = [near_of(trees.links[member], problem.size) for member in trees.members]
    order = np.argsort(source, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(source[order])) + 1):
        for root in source[rows[:1]]:
            number = trees.of[root]
            far = distances(breadth_first(near[number], root), latency[trees.members[number]])
            taken[rows] = far[target[rows]]
    return delay_counts(taken, passing.arrivals)
