"""The overlay as a drawing: brokers by load and site, links by traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanplan.layers.overlay.bound import OverlayBound
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.page.content import Picture
from fanplan.page.network import DrawnBroker, DrawnLink, network
from fanplan.page.numbers import number
from fanplan.plan.stored import StoredPlan

COLOURS = 8
"""Sites that are told apart; with more, colours come again."""

CAPTION = "Brokers are as large as their load, links as wide as their traffic. Hover for figures."
LEFT = "Load and traffic are what channels leave to brokers. "


def tree_picture(
    name: str,
    plan: StoredPlan,
    brokers: list[dict[str, Any]],
    links: list[dict[str, Any]],
    bound: OverlayBound | None,
) -> Picture:
    """The network of brokers and links, as `broker_rows` and `link_rows` tell them."""
    rows = sorted(brokers, key=lambda row: row["broker"])
    at = {row["broker"]: i for i, row in enumerate(rows)}
    sites = sorted({row["site"] for row in rows if row.get("site")})
    site = {row["broker"]: site_class(row.get("site"), sites) for row in rows}
    inside, trees = bound.channels_inside() if bound else {}, plan.section(OverlayRecord).trees
    content = network(
        f"{len(rows)} brokers and {len(links)} links",
        [DrawnBroker(r["broker"], drawn_load(r), tip(r, inside), class_of(r, site)) for r in rows],
        [edge(at, link, site) for link in links],
    )
    over = [("broker over", "over its capacity")] if any(map(overloaded, rows)) else []
    return Picture(
        f"{name}-tree",
        "The tree" if trees == 1 else f"The links of {trees} trees",
        content,
        f"{LEFT if bound and 'left' in rows[0] else ''}{CAPTION}",
        [*(legend(sites, inside) or [("broker", "broker")]), *over, *link_legend(sites)],
        zoom=True,
        wide=True,
    )


def legend(sites: list[str], inside: Mapping[str, int]) -> list[tuple[str, str]]:
    """The colours of sites with the channels inside, or that they are too many."""
    if len(sites) > COLOURS:
        return [("broker", f"brokers of {len(sites)} sites; colours come again")]
    told = [f"{site}, {inside[site]} channels inside" if inside else site for site in sites]
    return [(f"broker site{i}", words) for i, words in enumerate(told)]


def link_legend(sites: list[str]) -> list[tuple[str, str]]:
    return [("link", "link between sites" if sites else "link")]


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
    limit = f" of {number(row['capacity'])}" if row["capacity"] else ""
    lines = [row["broker"] + (f", {row['site']}" if row.get("site") else "")]
    lines.append(f"load {number(drawn_load(row))}{limit} messages/s")
    if "left" in row:
        lines.append(f"without channels {number(row['load'])} messages/s")
    lines.append(f"{row['links']} links, {number(row['clients'])} clients")
    if row.get("site") in inside:
        lines.append(f"{inside[row['site']]} multicast channels inside {row['site']}")
    return "\n".join(lines)


def edge(at: dict[str, int], link: dict[str, Any], site: dict[str, str]) -> DrawnLink:
    """A link inside a site has its colour."""
    start, end = link["a"], link["b"]
    class_ = site[start] if site[start] == site[end] else ""
    carried = link.get("left", link["rate"])
    more = f"\nwithout channels {number(link['rate'])} messages/s" if "left" in link else ""
    told = f"{start} – {end}\n{number(carried)} messages/s{more}"
    return DrawnLink(at[start], at[end], carried, told, class_)
