"""Figures 8 to 13 of Ge et al. (2002), what sections 4 and 5 say in numbers, and signalling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from fanplan.papers.experiment import (
    Item,
    PaperLine,
    Point,
    Statement,
    all_below,
    each_pair,
    every_below,
    pointwise,
)
from fanplan.papers.matchmaker.examples import marked_examples
from fanplan.papers.matchmaker.samples import (
    CLIENTS,
    COSTS,
    MIDDLE,
    PURPOSES,
    RATIOS,
    SCHEMES,
    TREES,
    MatchmakerSizes,
    churn_name,
    network_name,
    settings_along,
)

BROADCASTS = SCHEMES[:2]


def matchmaker_items(sizes: MatchmakerSizes) -> Iterator[Item]:
    """Figures 2, 5, 7 and 8 to 13, section 5, and the signalling of section 6."""
    yield from marked_examples()
    for trees in TREES:
        costs, ratios, growth = FIGURES[trees]
        yield cost_distribution(costs, trees)
        yield medians(trees)
        yield ratio_distribution(ratios, trees)
        for part, clients in zip("ab", CLIENTS, strict=True):
            yield mean_growth(f"{growth}{part}", sizes, trees, clients)
    yield monotonicity()
    for trees in TREES:
        yield messages_by_purpose(trees)
    yield stored_descriptors()


# ---- Figures 8, 9, 11 and 12: distributions of costs with ten clients each

TOLD = {
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

FIGURES = {
    "shared": ("Figure 8", "Figure 9", "Figure 10"),
    "per-source": ("Figure 11", "Figure 12", "Figure 13"),
}
"""Costs, ratios, and costs by number of clients."""


def cost_distribution(name: str, trees: str) -> Item:
    return Item(
        name,
        f"Distribution of the cost, {trees} trees",
        tuple(
            PaperLine(
                scheme,
                tuple(Point(network_name(), f"{trees} {scheme} up to {x}", x) for x in COSTS),
            )
            for scheme in SCHEMES
        ),
        "share of networks",
        "cost up to, descriptors",
    )


def medians(trees: str) -> Item:
    """Medians and percentiles by both ways to get whole numbers."""
    name, reading = SECTIONS[trees]
    return Item(
        name,
        f"Medians and 90th percentiles of the cost, {trees} trees",
        tuple(
            PaperLine(law, tuple(told_point(trees, key, floor) for key in TOLD))
            for law, floor in LAWS.items()
        ),
        "descriptors",
        reading=reading,
        numbers=True,
        statements=tuple(percentile_statements(trees)),
    )


def told_point(trees: str, key: str, floor: bool) -> Point:
    return Point(network_name(floor=floor), f"{trees} {key.replace(',', '')}", key, TOLD[key])


def percentile_statements(trees: str) -> Iterator[Statement]:
    for law, floor in LAWS.items():
        for scheme in BROADCASTS:
            yield each_pair(
                "“Both PubE and SubE have 90-th percentiles of the Cost greater than 2000”: "
                f"{scheme}, {law}",
                ((2000.0, told_point(trees, f"{scheme}, 90 %", floor)),),
            )


def ratio_distribution(name: str, trees: str) -> Item:
    def share(other: str, ratio: float) -> Point:
        return Point(network_name(), f"{trees} of {other} below {ratio:g}", ratio)

    return Item(
        name,
        f"Distribution of the ratio of costs, {trees} trees",
        tuple(
            PaperLine(f"MCM / {label}", tuple(share(other, ratio) for ratio in RATIOS))
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
        for other, words in OTHERS.items():
            yield each_pair(f"{text}: {words}", ((least, share(other, ratio)),))


# ---- Figures 10 and 13: the mean cost with more publishers or subscribers

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


def mean_growth(name: str, sizes: MatchmakerSizes, trees: str, clients: str) -> Item:
    return Item(
        name,
        f"Mean cost by number of {clients}, {trees} trees",
        tuple(
            PaperLine(scheme, tuple(mean_points(sizes, trees, scheme, clients)))
            for scheme in SCHEMES
        ),
        "descriptors",
        clients,
        f"There are {MIDDLE} of the other kind.",
        tuple(growth_statements(sizes, trees, clients)),
    )


def mean_points(
    sizes: MatchmakerSizes, trees: str, scheme: str, clients: str, key: str = "mean"
) -> Iterator[Point]:
    for count, setting in settings_along(sizes, clients):
        yield Point(setting, f"{trees} {scheme} {key}", count)


def growth_statements(sizes: MatchmakerSizes, trees: str, clients: str) -> Iterator[Statement]:
    slow, fast = SLOW[clients]
    each = [*mean_points(sizes, trees, slow, clients, f"mean per {clients}")]
    yield each_pair(
        f"{SUBLINEAR[clients]}: {slow} costs less for each of them with every step",
        tuple((more, fewer) for fewer, more in pairwise(each)),
    )
    many = [i for i, count in enumerate(sizes.clients) if count > MIDDLE]
    lower, higher = ([*mean_points(sizes, trees, scheme, clients)] for scheme in (slow, fast))
    yield pointwise(
        f"{CAPABLE[clients]}: below it with more than {MIDDLE}",
        [lower[i] for i in many],
        [higher[i] for i in many],
    )
    yield from scalable_statements(sizes, trees, clients)


def scalable_statements(sizes: MatchmakerSizes, trees: str, clients: str) -> Iterator[Statement]:
    """Of MCM the text says "very good scalability": read as lowest, and as flattest."""
    own = [*mean_points(sizes, trees, "MCM", clients)]
    others = [[*mean_points(sizes, trees, scheme, clients)] for scheme in BROADCASTS]
    middle = sizes.clients.index(MIDDLE)
    text = "“MCM exhibits very good scalability”"
    yield all_below(f"{text}: the lowest with any number of {clients}", [own], others)
    yield every_below(
        f"{text}: with {sizes.clients[-1]} {clients} below both others with {MIDDLE}",
        own[-1:],
        [other[middle] for other in others],
    )


# ---- section 5: on trees per source, links are seldom entangled

VIOLATIONS = {
    "not monotone": "σ falls or τ rises along a tree",
    "greedy invalid": "the cheaper marks are no valid marking",
    "entangled": "links must be decided together",
}
SMALL = 0.1
"""A “small fraction”."""


def monotonicity() -> Item:
    """How many networks, and how many of their links."""
    return Item(
        "Section 5",
        "Violations of monotonicity, per-source trees",
        tuple(
            PaperLine(text, tuple(violation_share(kind, what) for what in ("networks", "links")))
            for kind, text in VIOLATIONS.items()
        ),
        "share",
        reading=(
            "A violation is harmless unless it makes the cheaper marks of the links invalid, and "
            "only then links are entangled. Shares of links are of those networks that have any. "
            "The text counts nodes. “Small” is read as less than a tenth."
        ),
        statements=tuple(violation_statements()),
        numbers=True,
    )


def violation_statements() -> Iterator[Statement]:
    for kind in ("not monotone", "entangled"):
        yield each_pair(
            "“Only a small fraction of the randomly generated samples violate the monotonicity "
            f"property”: {VIOLATIONS[kind]}",
            ((violation_share(kind, "networks"), SMALL),),
        )
        yield each_pair(
            "“Within such samples, only a small fraction of nodes are actually involved”: "
            f"{VIOLATIONS[kind]}",
            ((violation_share(kind, "links"), SMALL),),
        )


def violation_share(kind: str, what: str) -> Point:
    return Point(network_name(), f"per-source {kind} {what}", what)


# ---- section 6, left open by the paper: signalling and storage of the three schemes

SIGNALLING = (
    "The protocol of section 5 is simulated message by message, with ten publishers and ten "
    "subscribers that come and go; an event is a client that joins or leaves. A descriptor is one "
    "message, and so are a count, a mark and a signal on a link, though a count is smaller than a "
    "descriptor. PubE and SubE need no counts; on trees per source the messages that build trees "
    "carry them."
)


def messages_by_purpose(trees: str) -> Item:
    return Item(
        f"Section 6, {trees} trees",
        "Control messages by purpose",
        tuple(
            PaperLine(scheme, tuple(churn_point(trees, scheme, purpose) for purpose in PURPOSES))
            for scheme in SCHEMES
        ),
        "messages per event",
        reading=SIGNALLING if trees == TREES[0] else "",
        numbers=True,
        statements=tuple(message_statements(trees)),
    )


def message_statements(trees: str) -> Iterator[Statement]:
    def mcm_below(text: str, own: str, other: str) -> Statement:
        others = [churn_point(trees, scheme, other) for scheme in BROADCASTS]
        return every_below(text, [churn_point(trees, "MCM", own)], others)

    yield mcm_below(
        "Counts are “of relatively low overhead in that only the numbers rather than the "
        "specifications … are needed”: fewer messages than both broadcasts send descriptors",
        "counts and marks",
        "descriptors",
    )
    yield mcm_below("Ours: MCM sends fewer descriptors than both", "descriptors", "descriptors")
    yield mcm_below("Ours: MCM sends fewer messages in all than both", "all", "all")


def stored_descriptors() -> Item:
    return Item(
        "Section 6, storage",
        "Descriptors stored in the network",
        tuple(
            PaperLine(scheme, tuple(churn_point(trees, scheme, "stored", trees) for trees in TREES))
            for scheme in SCHEMES
        ),
        "descriptors",
        numbers=True,
        reading="The mean over the times between two events, when the network has come to rest.",
        statements=tuple(
            every_below(
                f"Ours: MCM stores less than half of what either broadcast stores, {trees} trees",
                [churn_point(trees, "MCM", "stored")],
                [churn_point(trees, scheme, "stored") for scheme in BROADCASTS],
                0.5,
            )
            for trees in TREES
        ),
    )


def churn_point(trees: str, scheme: str, key: str, name: str = "") -> Point:
    return Point(churn_name(trees), f"{scheme} {key}", name or key)
