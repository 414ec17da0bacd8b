"""What Guimarães & Rodrigues (2003) say of the search: sections 5.3 and 5.4, and Table 4."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.genetic.settings import (
    FITNESS,
    GROUPS,
    KINDS,
    RICH,
    SEARCHES,
    TABLE_4,
    VARIED,
    Sizes,
    size_name,
    tuned,
)

WITHIN = {
    "tournament": ("Tournaments in the first 40 to 50 % of the iterations are best", (0.4, 0.5)),
    "better": ("A best-solution probability of 70 to 90 % is best", (0.7, 0.9)),
}
"""What the text advises, and the range."""

TITLES = {
    "tournament": "Part of the iterations with tournaments",
    "better": "Best-solution probability of a tournament",
}
SUFFICIENT = 1.03
"""250 iterations suffice if 500 bring less than 3 %."""


def varied(kind: str, sizes: Sizes, name: str, value: float) -> Point:
    return Point(tuned(kind, sizes.most), f"{name} {value:g}", value)


def advice(sizes: Sizes) -> Iterator[Item]:
    """Section 5.3, *Other tests*: every value outside the range is below one inside."""
    for name, (text, (low, high)) in WITHIN.items():
        points = {v: varied("subjects", sizes, name, v) for v in VARIED[name]}
        inside, outside = (
            [points[v] for v in points if (low <= v <= high) == wanted] for wanted in (True, False)
        )
        statements = tuple(
            Statement(
                f"{text}: {a.x:.0%} is better than all outside", tuple((b, a) for b in outside)
            )
            for a in inside
        )
        yield Item(
            f"Section 5.3, {name}",
            f"{TITLES[name]}, subject-based, c{RICH[0]} p{RICH[1]} g{GROUPS}",
            (Line(f"genetic, {sizes.most} subscribers", tuple(points.values())),),
            "efficiency",
            name,
            f"Each number is the mean of {SEARCHES['subjects']} searches in the same scenario.",
            statements,
        )


def iterations(sizes: Sizes) -> Item:
    """Section 5.4: 250 iterations are sufficient."""
    name = "iterations"
    lines = tuple(
        Line(kind, tuple(varied(kind, sizes, name, v) for v in VARIED[name])) for kind in KINDS
    )
    statements = tuple(
        Statement(
            f"250 iterations suffice: 500 are less than 3 % better, {kind}",
            ((varied(kind, sizes, name, 500), varied(kind, sizes, name, 250)),),
            SUFFICIENT,
        )
        for kind in KINDS
    )
    title = f"Iterations, {sizes.most} subscribers, c{RICH[0]} p{RICH[1]} g{GROUPS}"
    reading = "The parts with tournaments and permutation are parts of the iterations made."
    return Item("Section 5.4", title, lines, "efficiency", name, reading, statements)


def table_4() -> Iterator[Item]:
    """Table 4: population fitness. What grows with what is compared, not the machines."""
    of = "population/groups/receivers/subscriptions"
    (first, unit), *others = TABLE_4.items()
    ratios = tuple(
        Point(FITNESS, f"{size_name(size)} ratio", size_name(size), round(seconds / unit, 2))
        for size, seconds in others
    )
    reading = "Both columns are in units of the time of the first line, on their own machine."
    title = f"Time for the fitness of a population, in units of {size_name(first)}"
    yield Item("Table 4", title, (Line(of, ratios),), "ratio", reading=reading)
    seconds = tuple(
        Point(FITNESS, f"{size_name(size)} seconds", size_name(size)) for size in TABLE_4
    )
    published = ", ".join(f"{value:g}" for value in TABLE_4.values())
    yield Item(
        "Table 4, seconds",
        "Seconds for the fitness of a population",
        (Line(of, seconds),),
        "seconds",
        reading=f"Published: {published}, by a C function on a 600 MHz Pentium III.",
        log=True,
    )
