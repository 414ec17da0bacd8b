"""Table 5.2 of Tajuddin (2011), which is Figure 5.7: trees that weigh advertisements too."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.overlay.settings import ALPHAS, MIXED, bias_name
from fanplan.papers.overlay.shapes import below, curve
from fanplan.papers.overlay.trees import LATENCY, MESSAGES

PUBLISHED = {
    (MESSAGES, 0.75): (1.217, 1.204, 1.197, 1.193, 1.227, 1.252, 1.240, 1.421, 1.364),
    (MESSAGES, 1.0): (1.002, 0.997, 1.003, 1.001, 1.008, 1.141, 1.090, 1.201, 1.353),
    (LATENCY, 0.75): (
        862.246, 819.434, 786.766, 779.030, 857.775, 888.017, 852.421, 1165.598, 1099.695,
    ),
    (LATENCY, 1.0): (
        627.229, 602.351, 601.712, 592.265, 588.490, 743.416, 693.766, 909.304, 1130.367,
    ),
}  # fmt: skip
"""The columns of Table 5.2, by metric and bias, at the priorities ``ALPHAS``."""

IMPROVED = {
    (MESSAGES, 0.75): 1.953,
    (MESSAGES, 1.0): 0.549,
    (LATENCY, 0.75): 9.651,
    (LATENCY, 1.0): 6.176,
}
"""The last row of Table 5.2, in percent."""

NAMES = {MESSAGES: "messages", LATENCY: "latency"}

READING = (
    "Two things did not come about under any reading tried: the published latency of 627 at a bias "
    "of 1, and the degradation from α = 0.25 on."
)


def table_5_2() -> tuple[Item, ...]:
    """Messages, latency, and what the best priority improves."""
    return (by_alpha(MESSAGES, "messages per arrival"), by_alpha(LATENCY, "latency, ms"), gains())


def by_alpha(metric: str, y: str) -> Item:
    name = NAMES[metric]
    return Item(
        f"Table 5.2, {name}",
        f"Advertisement priority: {name} (Figure 5.7)",
        tuple(line for bias in MIXED for line in lines(metric, bias)),
        y,
        "α",
        READING,
        tuple(s for bias in MIXED for s in statements(metric, bias)),
    )


def lines(metric: str, bias: float) -> Iterator[Line]:
    """The thesis' column, and our tree, which has no priority."""
    note, setting = f"b = {bias:g}", bias_name(bias)
    cells = zip(ALPHAS, PUBLISHED[metric, bias], strict=True)
    yield curve("hybrid", (at(metric, bias, alpha, cell) for alpha, cell in cells), note)
    yield curve("improved", (Point(setting, f"improved {metric}", a) for a in ALPHAS), note)


def at(metric: str, bias: float, alpha: float, published: float | None = None) -> Point:
    return Point(bias_name(bias), f"hybrid {alpha:g} {metric}", alpha, published)


def statements(metric: str, bias: float) -> Iterator[Statement]:
    note, setting = f"{NAMES[metric]}, b = {bias:g}", bias_name(bias)
    none = at(metric, bias, 0.0)
    yield below(
        f"“The results … are lowest when α > 0”: {note}",
        [Point(setting, f"least {metric}")],
        [none],
    )
    yield below(
        f"“Performance is most improved when α is between 0.05 and 0.2”: {note}",
        [Point(setting, f"advised {metric}")],
        [Point(setting, f"others {metric}")],
    )
    yield below(
        "“When … α > 0.3, the overlays experience significant reduction in performance”: at least "
        f"5 % above α = 0, {note}",
        [none, none],
        [at(metric, bias, alpha) for alpha in ALPHAS if alpha > 0.3],
        1 / 1.05,
    )
    high = [at(metric, bias, alpha) for alpha in ALPHAS if alpha >= 0.25]
    yield below(
        "“Interest should be restricted to less than 25 %”: α of 0.25 and more above α = 0, "
        f"{note}",
        [none] * len(high),
        high,
    )
    yield below(
        f"Ours: improved is below every α: {note}",
        [Point(setting, f"improved {metric}")] * len(ALPHAS),
        [at(metric, bias, alpha) for alpha in ALPHAS],
    )


def gains() -> Item:
    """The last row of the table, and what the text says of it."""
    return Item(
        "Table 5.2, improvement",
        "Improvement of the best α over α = 0",
        tuple(
            Line(
                f"b = {bias:g}",
                tuple(
                    Point(
                        bias_name(bias),
                        f"improvement {metric}",
                        NAMES[metric],
                        IMPROVED[metric, bias],
                    )
                    for metric in (MESSAGES, LATENCY)
                ),
            )
            for bias in MIXED
        ),
        "%",
        reading="Negative where no α above 0 is better than 0.",
        statements=tuple(
            below(
                "“For both values of the bias factor … the improvement is more pronounced for "
                f"message latencies than for message count”: b = {bias:g}",
                [Point(bias_name(bias), f"improvement {MESSAGES}")],
                [Point(bias_name(bias), f"improvement {LATENCY}")],
            )
            for bias in MIXED
        ),
    )
