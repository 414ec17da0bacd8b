"""What is sampled: the networks of Ge et al. (2002), section 4.1, in full and in small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TREES = ("shared", "per-source")
SCHEMES = ("PubE", "SubE", "MCM")
CLIENTS = ("subscribers", "publishers")

MIDDLE = 10
"""Publishers, and subscribers, where their number is not varied."""

EXAMPLES = "examples"

COSTS = (*range(50, 500, 50), *range(500, 1000, 100), *range(1000, 3001, 200))
"""Where the distributions of Figures 8 and 11 are read off."""

RATIOS = tuple(percent / 100 for percent in range(5, 101, 5))
"""Where those of Figures 9 and 12 are."""


@dataclass(frozen=True)
class Sizes:
    """How much is sampled."""

    networks: int
    """Networks of a run: the paper's samples."""
    clients: tuple[int, ...]
    """The horizontal axis of Figures 10 and 13, ``MIDDLE`` among them."""
    churned: int
    """Networks of a run in which clients come and go."""
    events: int
    """How many of them do so in each."""


FULL = Sizes(1_000, (5, 10, 20, 30, 40, 50), 3, 40)
QUICK = Sizes(50, (5, 10, 30, 50), 1, 20)


def settings(sizes: Sizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    varied = dict.fromkeys(
        pair for count in reversed(sizes.clients) for pair in ((count, MIDDLE), (MIDDLE, count))
    )
    return (
        *(churn(sizes, trees) for trees in reversed(TREES)),
        *(networks(sizes, *pair) for pair in varied),
        networks(sizes, MIDDLE, MIDDLE, floor=True),
        {"name": EXAMPLES},
    )


def networks(
    sizes: Sizes, publishers: int, subscribers: int, floor: bool = False
) -> dict[str, Any]:
    return {
        "name": network_name(publishers, subscribers, floor),
        "networks": sizes.networks,
        "publishers": publishers,
        "subscribers": subscribers,
        "floor": int(floor),
    }


def churn(sizes: Sizes, trees: str) -> dict[str, Any]:
    """Clients that come and go, on one kind of trees."""
    return networks(sizes, MIDDLE, MIDDLE) | {
        "name": churn_name(trees),
        "trees": trees,
        "networks": sizes.churned,
        "events": sizes.events,
    }


def churn_name(trees: str) -> str:
    return f"clients come and go, {trees} trees"


def network_name(publishers: int = MIDDLE, subscribers: int = MIDDLE, floor: bool = False) -> str:
    """The setting in which so many clients are measured."""
    law = ", rounded down" if floor else ""
    return f"{publishers} publishers, {subscribers} subscribers{law}"


def along(sizes: Sizes, clients: str) -> Iterator[tuple[int, str]]:
    """The numbers of one kind of clients, and the setting of each."""
    for count in sizes.clients:
        pair = (count, MIDDLE) if clients == "publishers" else (MIDDLE, count)
        yield count, network_name(*pair)
