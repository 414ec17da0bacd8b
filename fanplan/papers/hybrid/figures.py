"""Table 1, section 4.2 and Figures 2 to 9 of Bickson et al. (2010): channels, then unicast too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from fanplan.papers.experiment import (
    DIFFER,
    ERRS,
    OPEN,
    Item,
    PaperLine,
    PaperVerdict,
    Point,
    Statement,
    alike,
    all_below,
    each_pair,
    every_below,
    pointwise,
)
from fanplan.papers.hybrid.samples import (
    BINS,
    DRAWN,
    LIMIT,
    RANKS,
    SECOND_STEPS,
    SHARES,
    STILL,
    TIMED,
    HybridSizes,
)

EXCESS = "% over perfect multicast"
SHARE = "unicast, % of the deliveries"
SENT = "unicast, % of the messages sent"
LABELS = {
    "tock": "K-means",
    "lloyd": "Matlab K-means",
    "bmd": "BMD from rows",
    STILL: "BMD from memberships",
    "reverse, any": "reverse, to any channel",
    "reverse, tock": "reverse, to that of K-means",
    "kmodes": "kmodes (ours)",
    "greedy-flow-iterative": "greedy flow, repeated",
}


def hybrid_items(sizes: HybridSizes) -> tuple[Item, ...]:
    """Table 1, section 4.2 and Figures 2 to 9 at these sizes."""
    scaling, title = len(sizes.scales), "Systems of growing size"
    limit = f"{title}, unicast at most {LIMIT} %"
    return (
        table_1(sizes),
        times_of_table_1(),
        growth_of_table_1(),
        all_second_steps(),
        figure_2(),
        figure_3(),
        figure_4(sizes),
        shares_on_market("Figure 5", ""),
        shares_on_market("Figure 5, of the messages sent", " sent"),
        shares_by_matrix(),
        # The paper does not tell the limit of unicast of Figure 7, so there are three versions.
        growing_systems("Figure 7", f"{limit} of the deliveries", "within", scaling),
        growing_systems("Figure 7, sent", f"{limit} of the messages", "sent within", scaling),
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

MERGES = ("flow-merge", "user-merge")
LARGE = ("random", STILL, "bmd", "lloyd", "tock", *MERGES, "kmodes")
SMALL = ("random", STILL, "bmd", "interior-point", "lloyd", "tock", *MERGES, "kmodes")
FOUR = ("random", "bmd", "lloyd")
"""Of the five algorithms of Table 1, those beside K-means and the interior point."""


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
        reading="The paper does not tell how BMD starts. From random memberships (a channel for "
        "each flow) hardly anybody wants most of a channel, so Y is all but empty. On the large "
        "system nothing ever moves: that is random assignment by another name, and supports that "
        "BMD does not improve upon it there; on the small system it is worse than random. From "
        "random rows it is better than random on both. Statements are judged on rows. Interior "
        "point needs too much memory for the large system. The merges are those of Adler et al. "
        "(2001), which the paper only names.",
        statements=tuple(first_step_statements(sizes)),
    )


def first_step_statements(sizes: HybridSizes) -> Iterator[Statement]:
    large = {m: Point("table 1, large", f"{m} @ {sizes.market[2]}") for m in LARGE}
    small = {m: Point("table 1, small", f"{m} @ {sizes.small[2]}") for m in SMALL}
    yield every_below(
        "K-means is better than random, BMD and Matlab K-means, large system",
        [large["tock"]],
        [large[m] for m in FOUR],
    )
    yield every_below(
        "K-means is the best of the five, small system",
        [small["tock"]],
        [small[m] for m in (*FOUR, "interior-point")],
    )
    yield every_below("BMD is better than random, small system", [small["bmd"]], [small["random"]])
    yield every_below(
        "BMD improves upon random by less than 1 %, large system",
        [large["random"]],
        [large["bmd"]],
        1.01,
    ).if_not(OPEN, BMD_EVIDENCE)
    yield every_below(
        "Interior point with rounding is worse than both K-means, small system",
        [small["tock"], small["lloyd"]],
        [small["interior-point"]],
    )
    for name, known in (("large", large), ("small", small)):
        others = [point for method, point in known.items() if method != "kmodes"]
        yield every_below(f"Ours: kmodes is below all, {name} system", [known["kmodes"]], others)


ACTIVITY = (
    "it depends on how much users differ in activity, and on the axis, which the paper does not "
    "tell: here, with a log-normal sigma of 1, greedy user is ahead at some shares only"
)
PER_MOVE = (
    "a greedy step takes the move that saves most, not most per unicast message, so at small "
    "shares of either kind lightest flow may be ahead; the paper's axis has no unit, its limit no "
    "value"
)
TRACE = "the recorded trace is not public; it is so or not with the interest that is generated"
HEAVY_USERS = (
    "by Eq. 1 moving a user pays only if the user receives more than twice what it wants, which is "
    "the case of light users; so it came out for every spread of activity, axis and share tried"
)
NOBODY_PAYS = "on this interest no user's move pays, so both end with multicast alone"
ALMOST = "“almost” has no measure; in total cost by Eq. 1 the two differ by less than a tenth"
REVERSE = (
    "the paper does not tell to which channel a flow moves: of the two readings, to any channel "
    "and to that of K-means, it holds by one only or is a tie"
)
SPARSE = (
    "here a time grows with the pairs of flow and interested user and with the passes until "
    "nothing moves, not with all of m · n"
)

BMD_EVIDENCE = (
    "from random rows BMD halves the excess of random here, and from random memberships, where "
    "this would hold, it does not do well on the small system either; the start is not told"
)

# ---- Table 1: running times

SECONDS = "processor seconds"
ALIKE = 10.0
"""Times that are "similar" in the sense of O(tmnk) may differ by this much in their constants."""
GROWTH = 2.5
"""Times a time may grow when one size doubles; 2 is in proportion, the rest is what caches cost."""


def time_points(setting: str, methods: Iterable[str]) -> dict[str, Point]:
    return {m: Point(setting, f"{m} seconds", method_label(m)) for m in methods}


def times_of_table_1() -> Item:
    """Table 1: running times of all five."""
    large, small = time_points("times, double n", TIMED[:4]), time_points("times, small", TIMED)
    similar = [[large[m]] for m in ("tock", "lloyd", "bmd")]
    others = [large[m] for m in TIMED[1:4]]
    return Item(
        "Table 1, times",
        "Running times of the algorithms, Market",
        (
            PaperLine("small system", tuple(small.values())),
            PaperLine("large system, half of its users and channels", tuple(large.values())),
        ),
        SECONDS,
        reading="The paper gives orders of growth, no times. The interior point is O(t(n³ + m³)), "
        "and here on the small system alone. “Similar” is read as within a factor of ten.",
        statements=(
            every_below("Random assignment is the lightest", [large["random"]], others),
            alike("Both K-means and BMD take similar times", similar, ALIKE).if_not(DIFFER, SPARSE),
            every_below(
                "The interior point is the slowest, small system",
                [small[m] for m in TIMED[:4]],
                [small["interior-point"]],
            ),
        ),
        log=True,
    )


def growth_of_table_1() -> Item:
    """Table 1: how times grow with flows, users and channels."""
    sizes = {"": "half of the large system"}
    sizes |= {f", double {x}": f"{x} doubled" for x in ("n", "m", "k")}
    points = {x: time_points(f"times{x}", TIMED[:4]) for x in sizes}
    return Item(
        "Table 1, growth",
        "Times when n, m or k double, Market",
        tuple(PaperLine(sizes[x], tuple(own.values())) for x, own in points.items()),
        SECONDS,
        reading="n flows, m users, k channels. O(tmnk) is in proportion to each; up to "
        "2.5 times counts as that.",
        statements=tuple(
            every_below(
                f"{method_label(method)} is no slower than in proportion to n, m and k",
                [points[x][method] for x in list(sizes)[1:]],
                [points[""][method]],
                GROWTH,
            ).if_not(DIFFER, SPARSE)
            for method in TIMED[:4]
        ),
        log=True,
    )


# ---- Figures 2 and 3: the interest


def figure_2() -> Item:
    """Figure 2: interest and rates of the Market, symbol by symbol."""
    setting = "market, matrix"
    names = {"wanted": "users who want a symbol, %", "sent": "messages of all symbols, %"}
    return Item(
        "Figure 2",
        "Interest and message rates of the Market",
        tuple(
            PaperLine(name, tuple(Point(setting, f"{key} @ {i}", i) for i in range(BINS)))
            for key, name in names.items()
        ),
        "%",
        "symbols, in parts of 1 %",
        "The paper draws the matrix itself and the relative rates; here are its column sums. "
        "Ten markets, in each of which interest and rate fall exponentially.",
    )


def figure_3() -> Item:
    """Figure 3: many topics of the cell have identical audiences."""
    kinds = {"market": "Market", "websphere": "WebSphere-like", "random": "Random"}
    shared = {kind: Point(f"{kind}, matrix", "shared") for kind in kinds}
    return Item(
        "Figure 3",
        "Topics whose audience is one of the most common ones",
        tuple(
            PaperLine(name, tuple(Point(f"{kind}, matrix", f"alike @ {r}", r) for r in RANKS))
            for kind, name in kinds.items()
        ),
        "topics, %",
        "most common audiences",
        "The paper draws the matrix of the recorded cell; its text says what is to be seen. The "
        "interest is generated to have it, so only the difference to the Market is worth a look.",
        (
            every_below(
                "Many topics have identical audiences: more than on the Market",
                [shared["market"]],
                [shared["websphere"]],
            ),
        ),
    )


# ---- Figure 4: channels alone


def figure_4(sizes: HybridSizes) -> Item:
    """Figure 4: random and both K-means, at equal and at the market's rates."""
    lines = {
        (method, rate): method_curve(
            f"figure 4, {rate} rate", method, sizes.channels, f"{method_label(method)}, {rate} rate"
        )
        for method, rate in (
            *product(("random", "lloyd", "tock"), ("equal", "market")),
            ("kmodes", "market"),
        )
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
            better("kmodes", "tock", "market"),
        ),
        log=True,
    )


# ---- section 4.2: every second step, without a limit of unicast

INTERESTS = {"market": "Market", "websphere": "WebSphere-like"}
ONCE = "once is almost as good as"
HEAVIEST = {
    "market": PaperVerdict(ERRS, HEAVY_USERS),
    "websphere": PaperVerdict(DIFFER, NOBODY_PAYS),
}
SAME = {kind: PaperVerdict(OPEN, ALMOST) for kind in INTERESTS}
TURNED = {kind: PaperVerdict(OPEN, REVERSE) for kind in INTERESTS}
UNTOLD = {kind: PaperVerdict(OPEN, TRACE) for kind in INTERESTS}
ITERATED = "-iterative"
SECOND_STEP_STATEMENTS = (
    ("Lightest flow is better than heaviest flow", "lightest-flow", "heaviest-flow", 1.0, UNTOLD),
    ("Heaviest user is better than lightest user", "heaviest-user", "lightest-user", 1.0, HEAVIEST),
    ("Flow-user pair is worse than greedy flow", "greedy-flow", "greedy-pair", 1.0, UNTOLD),
    (f"Lightest flow {ONCE} iterative", "lightest-flow", f"lightest-flow{ITERATED}", 1.1, SAME),
    (f"Heaviest user {ONCE} iterative", "heaviest-user", f"heaviest-user{ITERATED}", 1.1, SAME),
    (f"Greedy flow {ONCE} repeated", "greedy-flow", f"greedy-flow{ITERATED}", 1.1, SAME),
    *(
        statement
        for turned, name in (("reverse, any", "any channel"), ("reverse, tock", "that of K-means"))
        for statement in (
            (f"Multicast first beats the reverse, to {name}", "greedy-flow", turned, 1.0, TURNED),
            (f"The reverse, to {name}, beats multicast alone", turned, "tock", 1.0, TURNED),
        )
    ),
    ("Ours: kmodes is below greedy flow, repeated", "kmodes", "greedy-flow-iterative", 1.0, UNTOLD),
)
"""Text, the method that is better, the other one, how much is still "almost as good", verdicts."""


def all_second_steps() -> Item:
    """Section 4.2: all second steps, and the reverse framework of section 4."""
    methods = ("tock", *SECOND_STEPS, "reverse, any", "reverse, tock", "kmodes")
    return Item(
        "Section 4.2",
        "Second steps after K-means, no limit of unicast",
        tuple(
            bars_by_method(name, f"{kind}, ends", {method: method for method in methods})
            for kind, name in INTERESTS.items()
        ),
        EXCESS,
        reading="Iterative: batches of 1 % of the flows or users, patience 25. The reverse "
        "framework starts from unicast and moves flows to channels; the paper does not tell to "
        "which. “Almost as good” is read as an excess at most a tenth higher.",
        statements=tuple(
            each_pair(
                f"{text}, {name}",
                ((Point(f"{kind}, ends", lower), Point(f"{kind}, ends", higher)),),
                factor,
            ).if_not(verdicts[kind].cause, verdicts[kind].evidence)
            for text, lower, higher, factor, verdicts in SECOND_STEP_STATEMENTS
            for kind, name in INTERESTS.items()
        ),
    )


# ---- Figures 5 to 9: part of the traffic goes by unicast

READING = (
    "The paper does not define its horizontal axis; here it is the share of the wanted deliveries "
    "that go by unicast. kmodes: the cheapest of its plans with at most that share."
)
SENT_READING = (
    "The other reading of the horizontal axis: the share of the messages sent that go by unicast, "
    "as the unicast bandwidth of section 4.2 suggests. A message sent to a channel counts once."
)
GREEDY = ("greedy-flow", "greedy-user")
EARLY = tuple(share for share in SHARES if 0 < share <= LIMIT)
MIXED = tuple(share for share in SHARES if 0 < share < 100)


def drawn_steps(setting: str, axis: str = "") -> tuple[PaperLine, ...]:
    """The lines of Figures 5 and 8."""
    return tuple(
        PaperLine(
            method_label(method),
            tuple(method_points(setting, f"{method}{axis}", SHARES)),
            method == "kmodes",
        )
        for method in (*DRAWN, "kmodes")
    )


def kmodes_below_drawn(setting: str, axis: str = "") -> Statement:
    """kmodes against all drawn lines at all shares."""
    own, *others = (
        method_points(setting, f"{method}{axis}", SHARES) for method in ("kmodes", *DRAWN)
    )
    return all_below("Ours: kmodes is below all lines at every share", [own], others)


def shares_on_market(name: str, axis: str) -> Item:
    """Figure 5: the top heuristics on the Market, over one of the two shares."""
    title = "Second steps on the Market"
    words, reading = (SENT, SENT_READING) if axis else (SHARE, READING)
    statements = tuple(market_statements("market", axis))
    return Item(name, title, drawn_steps("market", axis), EXCESS, words, reading, statements)


def market_statements(name: str, axis: str) -> Iterator[Statement]:
    best = {method: least_point(name, method) for method in DRAWN}
    early = {method: method_points(name, f"{method}{axis}", EARLY) for method in DRAWN}
    for method in DRAWN:
        yield pointwise(
            f"Some unicast, up to {LIMIT} %, reduces the cost: {method_label(method)}",
            [Point(name, f"{method}{axis} within")],
            [Point(name, "tock")],
        ).if_not(ERRS, HEAVY_USERS)
    yield pointwise(
        "Both greedy steps are better than lightest flow up to 20 %",
        [point for method in GREEDY for point in early[method]],
        early["lightest-flow"] * 2,
    ).if_not(OPEN, PER_MOVE)
    text = "Greedy user is better than greedy flow"
    yield pointwise(f"{text} up to 20 %", early["greedy-user"], early["greedy-flow"]).if_not(
        OPEN, ACTIVITY
    )
    if not axis:
        yield every_below(
            "Both greedy steps are better than lightest flow and heaviest user, each at its best",
            [best[method] for method in GREEDY],
            [best["lightest-flow"], best["heaviest-user"]],
        ).if_not(OPEN, ACTIVITY)
        yield pointwise(
            f"{text}, each at its best", [best["greedy-user"]], [best["greedy-flow"]]
        ).if_not(OPEN, ACTIVITY)
    yield kmodes_below_drawn(name, axis)


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
        "not tell its limit of unicast, nor of what, so there are three versions.",
        tuple(scale_statements(points)),
    )


def scale_statements(points: dict[str, list[Point]]) -> Iterator[Statement]:
    user, flow = points["greedy-user"], points["greedy-flow"]
    for other in ("heaviest-user", "lightest-flow"):
        text = f"Both greedy steps are better than {method_label(other)} at every size"
        yield pointwise(text, [*user, *flow], points[other] * 2).if_not(OPEN, PER_MOVE)
    yield pointwise(
        "Greedy user is better than greedy flow, except at i = 2",
        [user[0], *user[2:]],
        [flow[0], *flow[2:]],
    ).if_not(OPEN, ACTIVITY)
    text = "Greedy flow is better than greedy user at i = 2"
    yield pointwise(text, flow[1:2], user[1:2]).if_not(OPEN, ACTIVITY)
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
    ).if_not(OPEN, TRACE)
    yield pointwise(
        "Lightest flow is better than heaviest user at every share below 100 %",
        method_points(name, "lightest-flow", MIXED),
        method_points(name, "heaviest-user", MIXED),
    ).if_not(OPEN, TRACE)
    text = "Heaviest user raises the cost at every share"
    yield every_below(text, [Point(name, "tock")], some["heaviest-user"]).if_not(OPEN, TRACE)
    yield each_pair(
        "Both greedy steps are at their best below a share of 10 %",
        tuple((Point(name, f"{method} best share"), 10.0) for method in GREEDY),
    ).if_not(OPEN, TRACE)
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
