"""Figures 10 and 13 of Ge et al. (2002): the mean cost with more publishers or subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.matchmaker.settings import CLIENTS, MIDDLE, SCHEMES, Sizes, along

NAMES = {"shared": "Figure 10", "per-source": "Figure 13"}
SLOW = {"subscribers": ("PubE", "SubE"), "publishers": ("SubE", "PubE")}
"""The broadcast that grows more slowly with each kind of clients, and the other one."""

SUBLINEAR = {
    "subscribers": "“PubE … increases sublinearly when the number of subscribers increases”",
    "publishers": "“SubE is more scalable with a large number of publishers than PubE”",
}
CAPABLE = {
    "subscribers": "“PubE is more capable of handling large number of subscribers than SubE”",
    "publishers": SUBLINEAR["publishers"],
}


def growth(sizes: Sizes, trees: str) -> tuple[Item, ...]:
    """Figure 10 for shared trees, 13 for others: (a) by subscribers, (b) by publishers."""
    return tuple(
        figure(sizes, trees, part, clients) for part, clients in zip("ab", CLIENTS, strict=True)
    )


def figure(sizes: Sizes, trees: str, part: str, clients: str) -> Item:
    return Item(
        f"{NAMES[trees]}{part}",
        f"Mean cost by number of {clients}, {trees} trees",
        tuple(Line(scheme, tuple(points(sizes, trees, scheme, clients))) for scheme in SCHEMES),
        "descriptors",
        clients,
        f"There are {MIDDLE} of the other kind.",
        tuple(statements(sizes, trees, clients)),
    )


def points(
    sizes: Sizes, trees: str, scheme: str, clients: str, key: str = "mean"
) -> Iterator[Point]:
    for count, setting in along(sizes, clients):
        yield Point(setting, f"{trees} {scheme} {key}", count)


def statements(sizes: Sizes, trees: str, clients: str) -> Iterator[Statement]:
    slow, fast = SLOW[clients]
    each = [*points(sizes, trees, slow, clients, f"mean per {clients}")]
    yield Statement(
        f"{SUBLINEAR[clients]}: {slow} costs less for each of them with every step",
        tuple((more, fewer) for fewer, more in pairwise(each)),
    )
    many = [
        pair
        for pair in zip(
            points(sizes, trees, slow, clients), points(sizes, trees, fast, clients), strict=True
        )
        if float(pair[0].x) > MIDDLE
    ]
    yield Statement(
        f"{CAPABLE[clients]}: below it with more than {MIDDLE}",
        tuple(many),
    )
    yield from scalable(sizes, trees, clients)


def scalable(sizes: Sizes, trees: str, clients: str) -> Iterator[Statement]:
    """Of MCM the text says "very good scalability": read as lowest, and as flattest."""
    own = [*points(sizes, trees, "MCM", clients)]
    others = [[*points(sizes, trees, scheme, clients)] for scheme in SCHEMES[:2]]
    middle = sizes.clients.index(MIDDLE)
    text = "“MCM exhibits very good scalability”"
    yield Statement(
        f"{text}: the lowest with any number of {clients}",
        tuple(pair for other in others for pair in zip(own, other, strict=True)),
    )
    yield Statement(
        f"{text}: with {sizes.clients[-1]} {clients} below both others with {MIDDLE}",
        tuple((own[-1], other[middle]) for other in others),
    )
