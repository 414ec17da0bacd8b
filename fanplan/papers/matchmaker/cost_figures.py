"""Figures 8, 9, 11 and 12 of Ge et al. (2002): distributions of costs with ten clients each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.matchmaker.settings import COSTS, RATIOS, SCHEMES, network_name

NUMBERS = {
    "PubE, median": 800,
    "SubE, median": 800,
    "MCM, median": 250,
    "PubE, 90 %": None,
    "SubE, 90 %": None,
    "MCM, 90 %": 400,
}
"""What the text tells of Figure 8, “approximately”; of two it only says “greater than 2000”."""

OTHERS = {"PubE": "PubE", "SubE": "SubE", "cheaper": "cheaper of both"}

LAWS = {"rounded": False, "rounded down": True}
"""How the Pareto numbers of descriptors become whole ones, which the paper does not say."""


SECTIONS = {
    "shared": (
        "Section 4.2",
        "All numbers are told as approximate. The paper does not say how Pareto numbers become "
        "whole numbers of descriptors, nor what the random networks look like beyond the counts of "
        "their nodes. Rounded down, PubE and SubE come nearer to the published medians; rounded, "
        "MCM does. In full a run is 1,000 networks, and medians of runs differ little: z is large "
        "where “approximately” leaves as much open.",
    ),
    "per-source": (
        "Section 4.3",
        "The text has “the same observations as in shared” trees, so the numbers are those of "
        "section 4.2.",
    ),
}

FIGURES = {"shared": ("Figure 8", "Figure 9"), "per-source": ("Figure 11", "Figure 12")}


def distributions(trees: str) -> tuple[Item, ...]:
    """Figures 8 and 9 for shared trees, 11 and 12 for trees per source."""
    costs, ratios = FIGURES[trees]
    return (figure_8(costs, trees), numbers(trees), figure_9(ratios, trees))


def figure_8(name: str, trees: str) -> Item:
    return Item(
        name,
        f"Distribution of the cost, {trees} trees",
        tuple(
            Line(
                scheme,
                tuple(Point(network_name(), f"{trees} {scheme} up to {x}", x) for x in COSTS),
            )
            for scheme in SCHEMES
        ),
        "share of networks",
        "cost up to, descriptors",
    )


def numbers(trees: str) -> Item:
    """Medians and percentiles by both ways to get whole numbers."""
    name, reading = SECTIONS[trees]
    return Item(
        name,
        f"Medians and 90th percentiles of the cost, {trees} trees",
        tuple(
            Line(law, tuple(number(trees, key, floor) for key in NUMBERS))
            for law, floor in LAWS.items()
        ),
        "descriptors",
        reading=reading,
        numbers=True,
        statements=tuple(percentile_statements(trees)),
    )


def number(trees: str, key: str, floor: bool) -> Point:
    return Point(network_name(floor=floor), f"{trees} {key.replace(',', '')}", key, NUMBERS[key])


def percentile_statements(trees: str) -> Iterator[Statement]:
    for law, floor in LAWS.items():
        for scheme in SCHEMES[:2]:
            yield Statement(
                "“Both PubE and SubE have 90-th percentiles of the Cost greater than 2000”: "
                f"{scheme}, {law}",
                ((2000.0, number(trees, f"{scheme}, 90 %", floor)),),
            )


def figure_9(name: str, trees: str) -> Item:
    def share(other: str, ratio: float) -> Point:
        return Point(network_name(), f"{trees} of {other} below {ratio:g}", ratio)

    return Item(
        name,
        f"Distribution of the ratio of costs, {trees} trees",
        tuple(
            Line(f"MCM / {label}", tuple(share(other, ratio) for ratio in RATIOS))
            for other, label in OTHERS.items()
        ),
        "share of networks",
        "ratio below",
        "“Either” is read as each of them apart; the line “cheaper of both” is the other reading.",
        tuple(ratio_statements(share)),
    )


def ratio_statements(share: Callable[[str, float], Point]) -> Iterator[Statement]:
    for least, ratio, text in (
        (
            0.5,
            0.3,
            "“In more than 50% of the samples … Cost less than 30% of that of either PubE or SubE”",
        ),
        (0.95, 0.5, "“In more than 95% of the samples, MCM can reduce the Cost by at least half”"),
    ):
        for other in OTHERS:
            yield Statement(f"{text}: {OTHERS[other]}", ((least, share(other, ratio)),))
