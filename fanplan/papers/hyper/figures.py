"""Figures 8 to 25 of Zhang & Hu (2005): the metrics of each leaf and of each internal server."""

from __future__ import annotations

from fanplan.papers.experiment import Item, Line, Point
from fanplan.papers.hyper.samples import DEFAULT, HYBRID, SCENARIOS, SHARES, SHORT

FIRST = 8
READING = (
    "In Figures 8 to 25 servers are in the order of what is shown, the lowest first, so that runs "
    "can be averaged: leaves are alike but for chance, and so are the servers of a level. The four "
    "servers below the root come last."
)
SERVERS = {"delay": 64, "messages": 20, "matches": 20}
WAYS = {
    "delay": (DEFAULT, HYBRID, SHORT),
    "messages": (HYBRID, SHORT),
    "matches": (DEFAULT, HYBRID),
}
TITLES = {
    "delay": ("Average delay at leaf servers", "hops and matches"),
    "messages": ("Messages received at internal servers", "share of all messages"),
    "matches": ("Matches performed at internal servers", "share of all messages"),
}


def figures() -> tuple[Item, ...]:
    """Three metrics for each scenario with 10 % and 20 % of the groups, in the paper's order."""
    settings = [
        (scenario, share, metric)
        for scenario in SCENARIOS
        for share in SHARES[:2]
        for metric in SERVERS
    ]
    return tuple(figure(FIRST + i, *setting) for i, setting in enumerate(settings))


def figure(number: int, scenario: str, share: int, metric: str) -> Item:
    title, unit = TITLES[metric]
    return Item(
        f"Figure {number}",
        f"{title} ({scenario}: {share}%)",
        tuple(curve(way, scenario, share, metric) for way in WAYS[metric]),
        unit,
        "leaf" if metric == "delay" else "internal server",
        READING if number == FIRST else "",
    )


def curve(way: str, scenario: str, share: int, metric: str) -> Line:
    places = range(1, SERVERS[metric] + 1)
    points = (Point(scenario, f"{way} {share} {metric} of {place}", place) for place in places)
    return Line(way, tuple(points))
