"""The overlay as a drawing: brokers by load and site, links by traffic."""

from __future__ import annotations

from typing import Any

from fanplan.plan.stored import StoredPlan
from fanplan.reporting.content import Picture
from fanplan.reporting.network import Edge, Node, network
from fanplan.reporting.numbers import number

COLOURS = 8
"""Sites that are told apart; with more, colours come again."""

CAPTION = "Brokers are as large as their load, links as wide as their traffic. Hover for figures."
LEFT = "Load and traffic are what channels leave to brokers. "


def tree_picture(
    name: str, plan: StoredPlan, brokers: list[dict[str, Any]], links: list[dict[str, Any]]
) -> Picture:
    """The network of brokers and links, as `broker_rows` and `link_rows` tell them."""
    rows = sorted(brokers, key=lambda row: row["broker"])
    at = {row["broker"]: i for i, row in enumerate(rows)}
    sites = sorted({row["site"] for row in rows if row.get("site")})
    content = network(
        f"{len(rows)} brokers and {len(links)} links",
        [Node(row["broker"], drawn_load(row), tip(row), class_of(row, sites)) for row in rows],
        [edge(at, link) for link in links],
    )
    over = [("broker over", "over its capacity")] if any(map(overloaded, rows)) else []
    return Picture(
        f"{name}-tree",
        "The tree" if plan.overlay.trees == 1 else f"The links of {plan.overlay.trees} trees",
        content,
        f"{LEFT if plan.record.delivery and 'left' in rows[0] else ''}{CAPTION}",
        [*(legend(sites) or [("broker", "broker")]), *over, ("link", "link")],
        zoom=True,
        wide=True,
    )


def legend(sites: list[str]) -> list[tuple[str, str]]:
    """The colours of sites, or that they are too many."""
    if len(sites) > COLOURS:
        return [("broker", f"brokers of {len(sites)} sites; colours come again")]
    return [(f"broker site{i}", site) for i, site in enumerate(sites)]


def class_of(row: dict[str, Any], sites: list[str]) -> str:
    site = f"site{sites.index(row['site']) % COLOURS}" if row.get("site") else ""
    return f"{site} {'over' if overloaded(row) else ''}".strip()


def overloaded(row: dict[str, Any]) -> bool:
    return bool(row["capacity"] and drawn_load(row) > row["capacity"] * (1 + 1e-9))


def drawn_load(row: dict[str, Any]) -> float:
    """What channels leave, where that is known."""
    load: float = row.get("left", row["load"])
    return load


def tip(row: dict[str, Any]) -> str:
    limit = f" of {number(row['capacity'])}" if row["capacity"] else ""
    lines = [row["broker"] + (f", {row['site']}" if row.get("site") else "")]
    lines.append(f"load {number(drawn_load(row))}{limit} messages/s")
    if "left" in row:
        lines.append(f"without channels {number(row['load'])} messages/s")
    return "\n".join([*lines, f"{row['links']} links, {number(row['clients'])} clients"])


def edge(at: dict[str, int], link: dict[str, Any]) -> Edge:
    carried = link.get("left", link["rate"])
    more = f"\nwithout channels {number(link['rate'])} messages/s" if "left" in link else ""
    told = f"{link['a']} – {link['b']}\n{number(carried)} messages/s{more}"
    return Edge(at[link["a"]], at[link["b"]], carried, told)
