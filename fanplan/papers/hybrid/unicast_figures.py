"""Figures 5 to 9 of Bickson et al. (2010): part of the traffic goes by unicast."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.hybrid.settings import DRAWN, LIMIT, SHARES
from fanplan.papers.hybrid.shapes import EXCESS, SHARE, below, below_all, best, curve, label, point

READING = (
    "The paper does not define its horizontal axis; here it is the share of the wanted deliveries "
    "that go by unicast. kmodes: the cheapest of its plans with at most that share."
)
GREEDY = ("greedy-flow", "greedy-user")
EARLY = tuple(share for share in SHARES if 0 < share <= LIMIT)
MIXED = tuple(share for share in SHARES if 0 < share < 100)


def at(setting: str, method: str, shares: tuple[int, ...]) -> list[Point]:
    return [point(setting, method, share) for share in shares]


def second_steps(setting: str) -> tuple[Line, ...]:
    """The lines of Figures 5 and 8."""
    return tuple(curve(setting, method, SHARES) for method in (*DRAWN, "kmodes"))


def ours(setting: str) -> Statement:
    """kmodes against all drawn lines at all shares."""
    return below(
        "Ours: kmodes is below all lines at every share",
        at(setting, "kmodes", SHARES) * len(DRAWN),
        [p for method in DRAWN for p in at(setting, method, SHARES)],
    )


def figure_5() -> Item:
    """Figure 5: the top heuristics on the Market."""
    return Item(
        "Figure 5",
        "Second steps on the Market",
        second_steps("market"),
        EXCESS,
        SHARE,
        READING,
        tuple(market_statements("market")),
    )


def market_statements(name: str) -> Iterator[Statement]:
    multicast = Point(name, "tock")
    for method in DRAWN:
        text = f"Some unicast reduces the cost: {label(method)}"
        yield below(text, [best(name, method)], [multicast])
    yield below_all(
        "Both greedy steps are better than lightest flow and heaviest user, each at its best",
        [best(name, method) for method in GREEDY],
        [best(name, method) for method in ("lightest-flow", "heaviest-user")],
    )
    yield below(
        "Both greedy steps are better than lightest flow at every share up to 20 %",
        [p for method in GREEDY for p in at(name, method, EARLY)],
        at(name, "lightest-flow", EARLY) * 2,
    )
    yield below(
        "Greedy user is better than greedy flow at every share up to 20 %",
        at(name, "greedy-user", EARLY),
        at(name, "greedy-flow", EARLY),
    )
    yield below(
        "Greedy user is better than greedy flow, each at its best",
        [best(name, "greedy-user")],
        [best(name, "greedy-flow")],
    )
    yield ours(name)


def figure_6() -> Item:
    """Figure 6: lightest flow on three interest matrices."""
    matrices = {"random": "Random", "market, equal rate": "Market, equal rate", "market": "Market"}
    market, equal, random = (
        at(name, "lightest-flow", MIXED) for name in ("market", "market, equal rate", "random")
    )
    early = len(EARLY)
    return Item(
        "Figure 6",
        "Lightest flow on different interest matrices",
        tuple(
            curve(setting, method, SHARES, f"{label(method)}, {name}")
            for method in ("lightest-flow", "kmodes")
            for setting, name in matrices.items()
        ),
        EXCESS,
        SHARE,
        READING,
        (
            below("Market is better than Random at every share below 100 %", market, random),
            below("Market, equal rate, is better than Random below 100 %", equal, random),
            below(
                "Market is better than with equal rate up to 20 %", market[:early], equal[:early]
            ),
        ),
        log=True,
    )


def figure_7(scales: int) -> tuple[Item, Item]:
    """Figure 7: systems of growing size, at one limit of unicast and without one."""
    title = "Systems of growing size"
    return (
        scaling("Figure 7", f"{title}, at most {LIMIT} % unicast", "within", scales),
        scaling("Figure 7, no limit", f"{title}, any unicast", "best", scales),
    )


def scaling(name: str, title: str, key: str, scales: int) -> Item:
    points = {
        method: [Point(f"scale {i}", f"{method} {key}", i) for i in range(1, scales + 1)]
        for method in (*DRAWN, "kmodes")
    }
    return Item(
        name,
        title,
        tuple(Line(label(m), tuple(own), m == "kmodes") for m, own in points.items()),
        EXCESS,
        "system i",
        "In full, system i has 4,000 + 1,000 i flows, 50 i users and 50 channels. The paper does "
        "not tell its limit of unicast, so there are two versions.",
        tuple(scaling_statements(points)),
    )


def scaling_statements(points: dict[str, list[Point]]) -> Iterator[Statement]:
    user, flow = points["greedy-user"], points["greedy-flow"]
    for other in ("heaviest-user", "lightest-flow"):
        text = f"Both greedy steps are better than {label(other)} at every size"
        yield below(text, [*user, *flow], points[other] * 2)
    yield below(
        "Greedy user is better than greedy flow, except at i = 2",
        [user[0], *user[2:]],
        [flow[0], *flow[2:]],
    )
    yield below("Greedy flow is better than greedy user at i = 2", flow[1:2], user[1:2])
    yield below(
        "Ours: kmodes is below all lines at every size",
        points["kmodes"] * len(DRAWN),
        [p for method in DRAWN for p in points[method]],
    )


def figure_8() -> Item:
    """Figure 8: the heuristics on mechanical interest."""
    return Item(
        "Figure 8",
        "Second steps on WebSphere-like interest",
        second_steps("websphere"),
        EXCESS,
        SHARE,
        f"The paper's trace is not public; the interest is generated. {READING}",
        tuple(websphere_statements("websphere")),
    )


def websphere_statements(name: str) -> Iterator[Statement]:
    yield below(
        "Greedy flow is better than greedy user at every share",
        at(name, "greedy-flow", SHARES[1:]),
        at(name, "greedy-user", SHARES[1:]),
    )
    yield below(
        "Lightest flow is better than heaviest user at every share below 100 %",
        at(name, "lightest-flow", MIXED),
        at(name, "heaviest-user", MIXED),
    )
    yield below(
        "Heaviest user raises the cost at every share",
        [Point(name, "tock")] * len(SHARES[1:]),
        at(name, "heaviest-user", SHARES[1:]),
    )
    yield Statement(
        "Both greedy steps are at their best below a share of 10 %",
        tuple((Point(name, f"{method} best share"), 10.0) for method in GREEDY),
    )
    yield ours(name)


def figure_9() -> Item:
    """Figure 9: greedy flow forced to a given share."""
    name, forced = "websphere", "greedy-flow forced"
    hybrid = [best(name, forced)]
    return Item(
        "Figure 9",
        "Greedy flow forced to use unicast, WebSphere-like interest",
        (curve(name, forced, SHARES, "greedy flow, forced"), curve(name, "kmodes", SHARES)),
        EXCESS,
        SHARE,
        f"At 0 everything is multicast, at 100 everything unicast. {READING}",
        (
            below("Hybrid is better than multicast only", hybrid, [Point(name, "tock")]),
            below("Hybrid is better than unicast only", hybrid, [Point(name, "unicast")]),
            below("Ours: the best of kmodes is below that", [best(name, "kmodes")], hybrid),
        ),
    )
