"""Table 1 and Figure 4 of Bickson et al. (2010): channels alone; section 4.2: every second step."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Point, Statement
from fanplan.papers.hybrid.settings import SECOND_STEPS, Sizes
from fanplan.papers.hybrid.shapes import EXCESS, bars, below, below_all, curve, label

LARGE = ("random", "bmd", "lloyd", "tock", "flow-merge", "user-merge", "kmodes")
SMALL = ("random", "bmd", "interior-point", *LARGE[2:])
KINDS = {"market": "Market", "websphere": "WebSphere-like"}


def table_1(sizes: Sizes) -> Item:
    """Section 4.1 and Table 1: which algorithm is best without unicast."""
    systems = {"small": (sizes.small, SMALL), "large": (sizes.market, LARGE)}
    lines = tuple(
        bars(
            f"{size[0]:,} flows, {size[1]} users, {size[2]} channels",
            f"table 1, {name}",
            {label(method): f"{method} @ {size[2]}" for method in methods},
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


def first_step_statements(sizes: Sizes) -> Iterator[Statement]:
    large = {m: Point("table 1, large", f"{m} @ {sizes.market[2]}") for m in LARGE}
    small = {m: Point("table 1, small", f"{m} @ {sizes.small[2]}") for m in SMALL}
    yield below_all(
        "K-means is better than random, BMD and Matlab K-means, large system",
        [large["tock"]],
        [large[m] for m in LARGE[:3]],
    )
    yield below_all(
        "K-means is the best of the five, small system",
        [small["tock"]],
        [small[m] for m in SMALL[:4]],
    )
    yield below("BMD is better than random, small system", [small["bmd"]], [small["random"]])
    yield below_all(
        "BMD improves upon random by less than 1 %, large system",
        [large["random"]],
        [large["bmd"]],
        1.01,
    )
    yield below_all(
        "Interior point with rounding is worse than both K-means, small system",
        [small["tock"], small["lloyd"]],
        [small["interior-point"]],
    )
    for name, known in (("large", large), ("small", small)):
        others = [point for method, point in known.items() if method != "kmodes"]
        yield below_all(f"Ours: kmodes is below all, {name} system", [known["kmodes"]], others)


def figure_4(sizes: Sizes) -> Item:
    """Figure 4: random and both K-means, at equal and at the market's rates."""
    lines = {
        (method, rate): curve(
            f"figure 4, {rate} rate", method, sizes.channels, f"{label(method)}, {rate} rate"
        )
        for method in ("random", "lloyd", "tock", "kmodes")
        for rate in ("equal", "market")
    }

    def better(lower: str, higher: str, rate: str) -> Statement:
        name = "Ours: kmodes" if lower == "kmodes" else label(lower)
        text = f"{name} is better than {label(higher)} at every number of channels, {rate} rate"
        return below(text, lines[lower, rate].points, lines[higher, rate].points)

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


def section_4() -> Item:
    """Section 4.2: all second steps, and the reverse framework of section 4."""
    methods = ("tock", *SECOND_STEPS, "reverse", "kmodes")
    return Item(
        "Section 4.2",
        "Second steps after K-means, no limit of unicast",
        tuple(
            bars(name, f"{kind}, ends", {label(m): m for m in methods})
            for kind, name in KINDS.items()
        ),
        EXCESS,
        reading="Iterative: batches of 1 % of the flows or users, patience 25. "
        "“Almost as good” is read as an excess at most a tenth higher.",
        statements=tuple(
            Statement(
                f"{text}, {name}",
                ((Point(f"{kind}, ends", lower), Point(f"{kind}, ends", higher)),),
                factor,
            )
            for text, lower, higher, factor in SECOND_STEP_STATEMENTS
            for kind, name in KINDS.items()
        ),
    )


SECOND_STEP_STATEMENTS = (
    ("Lightest flow is better than heaviest flow", "lightest-flow", "heaviest-flow", 1.0),
    ("Heaviest user is better than lightest user", "heaviest-user", "lightest-user", 1.0),
    ("Flow-user pair is worse than greedy flow", "greedy-flow", "greedy-pair", 1.0),
    (
        "Lightest flow once is almost as good as iterative",
        "lightest-flow",
        "lightest-flow-iterative",
        1.1,
    ),
    (
        "Heaviest user once is almost as good as iterative",
        "heaviest-user",
        "heaviest-user-iterative",
        1.1,
    ),
    (
        "Greedy flow once is almost as good as repeated",
        "greedy-flow",
        "greedy-flow-iterative",
        1.1,
    ),
    ("Starting from multicast is better than the reverse", "greedy-flow", "reverse", 1.0),
    ("The reverse is better than multicast alone", "reverse", "tock", 1.0),
    ("Ours: kmodes is below greedy flow, repeated", "kmodes", "greedy-flow-iterative", 1.0),
)
"""Text, the method that is better, the other one, and how much is still "almost as good"."""
