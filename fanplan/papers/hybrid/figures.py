"""Table 1, section 4.2 and Figures 4 to 9 of Bickson et al. (2010): channels, then unicast too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
from fanplan.papers.hybrid.samples import DRAWN, LIMIT, SECOND_STEPS, SHARES, HybridSizes

EXCESS = "% over perfect multicast"
SHARE = "unicast, % of the deliveries"
LABELS = {
    "tock": "K-means",
    "lloyd": "Matlab K-means",
    "bmd": "BMD",
    "kmodes": "kmodes (ours)",
    "greedy-flow-iterative": "greedy flow, repeated",
}


def hybrid_items(sizes: HybridSizes) -> tuple[Item, ...]:
    """Table 1, section 4.2 and Figures 4 to 9 at these sizes."""
    scaling, title = len(sizes.scales), "Systems of growing size"
    return (
        table_1(sizes),
        all_second_steps(),
        figure_4(sizes),
        shares_on_market(),
        shares_by_matrix(),
        # The paper does not tell the limit of unicast of Figure 7, so there are two versions.
        growing_systems("Figure 7", f"{title}, at most {LIMIT} % unicast", "within", scaling),
        growing_systems("Figure 7, no limit", f"{title}, any unicast", "best", scaling),
        shares_on_websphere(),
        forced_shares(),
    )


def method_label(method: str) -> str:
    """A method's name as the paper writes it."""
    return LABELS.get(method, method.replace("-", " "))


def method_points(setting: str, method: str, xs: Iterable[float]) -> list[Point]:
    """A method's numbers at places on the axis."""
    return [Point(setting, f"{method} @ {x:g}", x) for x in xs]


def method_curve(setting: str, method: str, xs: Iterable[float], name: str = "") -> PaperLine:
    points = tuple(method_points(setting, method, xs))
    return PaperLine(name or method_label(method), points, method == "kmodes")


def least_point(setting: str, method: str) -> Point:
    """The least excess of a method's curve."""
    return Point(setting, f"{method} best")


def bars_by_method(name: str, setting: str, keys: dict[str, str]) -> PaperLine:
    """One bar of each group: the key of each by its method."""
    points = (Point(setting, key, method_label(method)) for method, key in keys.items())
    return PaperLine(name, tuple(points))


# ---- channels alone: Table 1 and Figure 4

LARGE = ("random", "bmd", "lloyd", "tock", "flow-merge", "user-merge", "kmodes")
SMALL = ("random", "bmd", "interior-point", *LARGE[2:])


def table_1(sizes: HybridSizes) -> Item:
    """Section 4.1 and Table 1: which algorithm is best without unicast."""
    systems = {"small": (sizes.small, SMALL), "large": (sizes.market, LARGE)}
    lines = tuple(
        bars_by_method(
            f"{size[0]:,} flows, {size[1]} users, {size[2]} channels",
            f"table 1, {name}",
            {method: f"{method} @ {size[2]}" for method in methods},
        )
        for name, (size, methods) in systems.items()
    )
    return Item(
        "Table 1",
        "Channelization without unicast, Market",
        lines,
        EXCESS,
        reading="Costs are compared, not times. Interior point needs too much memory for the large "
        "system. The merges are those of Adler et al. (2001), named in the paper, not measured.",
        statements=tuple(first_step_statements(sizes)),
    )


def first_step_statements(sizes: HybridSizes) -> Iterator[Statement]:
    large = {m: Point("table 1, large", f"{m} @ {sizes.market[2]}") for m in LARGE}
    small = {m: Point("table 1, small", f"{m} @ {sizes.small[2]}") for m in SMALL}
    yield every_below(
        "K-means is better than random, BMD and Matlab K-means, large system",
        [large["tock"]],
        [large[m] for m in LARGE[:3]],
    )
    yield every_below(
        "K-means is the best of the five, small system",
        [small["tock"]],
        [small[m] for m in SMALL[:4]],
    )
    yield every_below("BMD is better than random, small system", [small["bmd"]], [small["random"]])
    text = "BMD improves upon random by less than 1 %, large system"
    yield every_below(text, [large["random"]], [large["bmd"]], 1.01)
    yield every_below(
        "Interior point with rounding is worse than both K-means, small system",
        [small["tock"], small["lloyd"]],
        [small["interior-point"]],
    )
    for name, known in (("large", large), ("small", small)):
        others = [point for method, point in known.items() if method != "kmodes"]
        yield every_below(f"Ours: kmodes is below all, {name} system", [known["kmodes"]], others)


def figure_4(sizes: HybridSizes) -> Item:
    """Figure 4: random and both K-means, at equal and at the market's rates."""
    lines = {
        (method, rate): method_curve(
            f"figure 4, {rate} rate", method, sizes.channels, f"{method_label(method)}, {rate} rate"
        )
        for method in ("random", "lloyd", "tock", "kmodes")
        for rate in ("equal", "market")
    }

    def better(lower: str, higher: str, rate: str) -> Statement:
        names = "Ours: kmodes" if lower == "kmodes" else method_label(lower), method_label(higher)
        text = f"{names[0]} is better than {names[1]} at every number of channels, {rate} rate"
        return pointwise(text, lines[lower, rate].points, lines[higher, rate].points)

    return Item(
        "Figure 4",
        "Channelization without unicast, Market",
        tuple(lines.values()),
        EXCESS,
        "channels",
        "The horizontal axis is not described; here it is the number of channels.",
        (
            better("tock", "random", "equal"),
            better("lloyd", "random", "equal"),
            better("tock", "lloyd", "market"),
            better("tock", "random", "market"),
            better("kmodes", "tock", "equal"),
            better("kmodes", "tock", "market"),
        ),
        log=True,
    )


# ---- section 4.2: every second step, without a limit of unicast

INTERESTS = {"market": "Market", "websphere": "WebSphere-like"}
ONCE = "once is almost as good as"
SECOND_STEP_STATEMENTS = (
    ("Lightest flow is better than heaviest flow", "lightest-flow", "heaviest-flow", 1.0),
    ("Heaviest user is better than lightest user", "heaviest-user", "lightest-user", 1.0),
    ("Flow-user pair is worse than greedy flow", "greedy-flow", "greedy-pair", 1.0),
    (f"Lightest flow {ONCE} iterative", "lightest-flow", "lightest-flow-iterative", 1.1),
    (f"Heaviest user {ONCE} iterative", "heaviest-user", "heaviest-user-iterative", 1.1),
    (f"Greedy flow {ONCE} repeated", "greedy-flow", "greedy-flow-iterative", 1.1),
    ("Starting from multicast is better than the reverse", "greedy-flow", "reverse", 1.0),
    ("The reverse is better than multicast alone", "reverse", "tock", 1.0),
    ("Ours: kmodes is below greedy flow, repeated", "kmodes", "greedy-flow-iterative", 1.0),
)
"""Text, the method that is better, the other one, and how much is still "almost as good"."""


def all_second_steps() -> Item:
    """Section 4.2: all second steps, and the reverse framework of section 4."""
    methods = ("tock", *SECOND_STEPS, "reverse", "kmodes")
    return Item(
        "Section 4.2",
        "Second steps after K-means, no limit of unicast",
        tuple(
            bars_by_method(name, f"{kind}, ends", {method: method for method in methods})
            for kind, name in INTERESTS.items()
        ),
        EXCESS,
        reading="Iterative: batches of 1 % of the flows or users, patience 25. "
        "“Almost as good” is read as an excess at most a tenth higher.",
        statements=tuple(
            each_pair(
                f"{text}, {name}",
                ((Point(f"{kind}, ends", lower), Point(f"{kind}, ends", higher)),),
                factor,
            )
            for text, lower, higher, factor in SECOND_STEP_STATEMENTS
            for kind, name in INTERESTS.items()
        ),
    )


# ---- Figures 5 to 9: part of the traffic goes by unicast

READING = (
    "The paper does not define its horizontal axis; here it is the share of the wanted deliveries "
    "that go by unicast. kmodes: the cheapest of its plans with at most that share."
)
GREEDY = ("greedy-flow", "greedy-user")
EARLY = tuple(share for share in SHARES if 0 < share <= LIMIT)
MIXED = tuple(share for share in SHARES if 0 < share < 100)


def drawn_steps(setting: str) -> tuple[PaperLine, ...]:
    """The lines of Figures 5 and 8."""
    return tuple(method_curve(setting, method, SHARES) for method in (*DRAWN, "kmodes"))


def kmodes_below_drawn(setting: str) -> Statement:
    """kmodes against all drawn lines at all shares."""
    own, *others = (method_points(setting, method, SHARES) for method in ("kmodes", *DRAWN))
    return all_below("Ours: kmodes is below all lines at every share", [own], others)


def shares_on_market() -> Item:
    """Figure 5: the top heuristics on the Market."""
    name = "Second steps on the Market"
    statements = tuple(market_statements("market"))
    return Item("Figure 5", name, drawn_steps("market"), EXCESS, SHARE, READING, statements)


def market_statements(name: str) -> Iterator[Statement]:
    best = {method: least_point(name, method) for method in DRAWN}
    early = {method: method_points(name, method, EARLY) for method in DRAWN}
    for method in DRAWN:
        text = f"Some unicast reduces the cost: {method_label(method)}"
        yield pointwise(text, [best[method]], [Point(name, "tock")])
    yield every_below(
        "Both greedy steps are better than lightest flow and heaviest user, each at its best",
        [best[method] for method in GREEDY],
        [best["lightest-flow"], best["heaviest-user"]],
    )
    yield pointwise(
        "Both greedy steps are better than lightest flow at every share up to 20 %",
        [point for method in GREEDY for point in early[method]],
        early["lightest-flow"] * 2,
    )
    text = "Greedy user is better than greedy flow"
    yield pointwise(f"{text} at every share up to 20 %", early["greedy-user"], early["greedy-flow"])
    yield pointwise(f"{text}, each at its best", [best["greedy-user"]], [best["greedy-flow"]])
    yield kmodes_below_drawn(name)


def shares_by_matrix() -> Item:
    """Figure 6: lightest flow on three interest matrices."""
    matrices = {"random": "Random", "market, equal rate": "Market, equal rate", "market": "Market"}
    random, equal, market = (method_points(name, "lightest-flow", MIXED) for name in matrices)
    early = len(EARLY)
    return Item(
        "Figure 6",
        "Lightest flow on different interest matrices",
        tuple(
            method_curve(setting, method, SHARES, f"{method_label(method)}, {name}")
            for method in ("lightest-flow", "kmodes")
            for setting, name in matrices.items()
        ),
        EXCESS,
        SHARE,
        READING,
        (
            pointwise("Market is better than Random at every share below 100 %", market, random),
            pointwise("Market, equal rate, is better than Random below 100 %", equal, random),
            pointwise(
                "Market is better than with equal rate up to 20 %", market[:early], equal[:early]
            ),
        ),
        log=True,
    )


def growing_systems(name: str, title: str, key: str, scales: int) -> Item:
    """Figure 7: systems of growing size, at one limit of unicast or without one."""
    points = {
        method: [Point(f"scale {i}", f"{method} {key}", i) for i in range(1, scales + 1)]
        for method in (*DRAWN, "kmodes")
    }
    return Item(
        name,
        title,
        tuple(PaperLine(method_label(m), tuple(own), m == "kmodes") for m, own in points.items()),
        EXCESS,
        "system i",
        "In full, system i has 4,000 + 1,000 i flows, 50 i users and 50 channels. The paper does "
        "not tell its limit of unicast, so there are two versions.",
        tuple(scale_statements(points)),
    )


def scale_statements(points: dict[str, list[Point]]) -> Iterator[Statement]:
    user, flow = points["greedy-user"], points["greedy-flow"]
    for other in ("heaviest-user", "lightest-flow"):
        text = f"Both greedy steps are better than {method_label(other)} at every size"
        yield pointwise(text, [*user, *flow], points[other] * 2)
    yield pointwise(
        "Greedy user is better than greedy flow, except at i = 2",
        [user[0], *user[2:]],
        [flow[0], *flow[2:]],
    )
    yield pointwise("Greedy flow is better than greedy user at i = 2", flow[1:2], user[1:2])
    text = "Ours: kmodes is below all lines at every size"
    yield all_below(text, [points["kmodes"]], [points[method] for method in DRAWN])


def shares_on_websphere() -> Item:
    """Figure 8: the heuristics on mechanical interest."""
    return Item(
        "Figure 8",
        "Second steps on WebSphere-like interest",
        drawn_steps("websphere"),
        EXCESS,
        SHARE,
        f"The paper's trace is not public; the interest is generated. {READING}",
        tuple(websphere_statements("websphere")),
    )


def websphere_statements(name: str) -> Iterator[Statement]:
    some = {method: method_points(name, method, SHARES[1:]) for method in DRAWN}
    yield pointwise(
        "Greedy flow is better than greedy user at every share",
        some["greedy-flow"],
        some["greedy-user"],
    )
    yield pointwise(
        "Lightest flow is better than heaviest user at every share below 100 %",
        method_points(name, "lightest-flow", MIXED),
        method_points(name, "heaviest-user", MIXED),
    )
    text = "Heaviest user raises the cost at every share"
    yield every_below(text, [Point(name, "tock")], some["heaviest-user"])
    yield each_pair(
        "Both greedy steps are at their best below a share of 10 %",
        tuple((Point(name, f"{method} best share"), 10.0) for method in GREEDY),
    )
    yield kmodes_below_drawn(name)


def forced_shares() -> Item:
    """Figure 9: greedy flow forced to a given share."""
    name, forced = "websphere", "greedy-flow forced"
    hybrid = [least_point(name, forced)]
    return Item(
        "Figure 9",
        "Greedy flow forced to use unicast, WebSphere-like interest",
        (
            method_curve(name, forced, SHARES, "greedy flow, forced"),
            method_curve(name, "kmodes", SHARES),
        ),
        EXCESS,
        SHARE,
        f"At 0 everything is multicast, at 100 everything unicast. {READING}",
        (
            pointwise("Hybrid is better than multicast only", hybrid, [Point(name, "tock")]),
            pointwise("Hybrid is better than unicast only", hybrid, [Point(name, "unicast")]),
            pointwise(
                "Ours: the best of kmodes is below that", [least_point(name, "kmodes")], hybrid
            ),
        ),
    )
