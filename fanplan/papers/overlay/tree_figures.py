"""Chapter 5 of Tajuddin (2011): Figures 5.3, 5.5 and 5.6, and Table 5.2, which is Figure 5.7."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from fanplan.papers.experiment import (
    DIFFER,
    OPEN,
    Item,
    PaperLine,
    Point,
    Statement,
    alike,
    all_below,
    claimed_of,
    every_below,
    everywhere,
    pointwise,
)
from fanplan.papers.overlay.samples import DEGREES, LATENCY, MESSAGES
from fanplan.papers.overlay.settings import ALPHAS, MIXED, VARIANTS, OverlaySizes, bias_name

LABELS = {
    "improved": "improved (ours)",
    "few links": "few links (ours)",
    "gli": "GLI",
    "gi": "GI",
    "gig": "GIg",
    "best": "best (ours)",
    "exact": "exact load (ours)",
    "bound": "lower bound (ours)",
}


def thesis_label(method: str) -> str:
    """A method's name as the thesis writes it."""
    return LABELS.get(method, method)


def method_line(method: str, points: Iterable[Point], note: str = "") -> PaperLine:
    """A method's line; ``note`` tells two lines of one method apart."""
    name = thesis_label(method)
    return PaperLine(f"{name}, {note}" if note else name, tuple(points), name.endswith("(ours)"))


def tree_items(sizes: OverlaySizes) -> tuple[Item, ...]:
    """Figures 5.3, 5.5 and 5.6 and Table 5.2 at these sizes."""
    figures = (messages_and_latency, node_degrees, load_and_brokers)
    return (*(item for figure in figures for item in figure(sizes)), *table_5_2())


# ---- Figures 5.3, 5.5 and 5.6: trees by the bias of subscriptions

THEIRS = ("overlap", "cover", "baseline")
OURS = ("improved", "few links")
BIAS = "bias"
EACH = "messages per publication"
SHOWN = MIXED[0]
"""The bias of Figure 5.5b, which the thesis does not tell."""

KeyAndNote = tuple[str, str]
"""A key, and how a legend names it."""
TENTH: tuple[KeyAndNote, KeyAndNote] = (("degree max", "maximum"), ("degree 90", "90th percentile"))
LOAD: tuple[KeyAndNote, KeyAndNote] = (("processed max", "maximum"), ("processed mean", "mean"))
PASSED: tuple[KeyAndNote, KeyAndNote] = (("brokers mean", "mean"), ("brokers max", "maximum"))


def bias_points(method: str, key: str, biases: Sequence[float]) -> list[Point]:
    return [Point(bias_name(bias), f"{method} {key}", bias) for bias in biases]


def points_over(key: str, biases: Sequence[float]) -> Callable[[str], list[Point]]:
    """The points of a method along the axis."""
    return partial(bias_points, key=key, biases=biases)


def bias_curves(sizes: OverlaySizes, key: str) -> tuple[PaperLine, ...]:
    points = points_over(key, sizes.biases)
    return tuple(method_line(name, points(name)) for name in (*THEIRS, *OURS))


def two_curves(sizes: OverlaySizes, first: KeyAndNote, second: KeyAndNote) -> tuple[PaperLine, ...]:
    """Two numbers of each of the thesis' trees, as it draws them; of ours only the first."""
    drawn = [(name, *one) for name in THEIRS for one in (first, second)]
    drawn += [(name, *first) for name in OURS]
    return tuple(
        method_line(name, bias_points(name, key, sizes.biases), note) for name, key, note in drawn
    )


def messages_and_latency(sizes: OverlaySizes) -> tuple[Item, ...]:
    """Message count, in both ways to count, and latency over the bias."""
    title = "Regional subscriptions"
    count = (
        "Messages on links for each broker that a publication must reach, as in Table 5.2: beside "
        "the figure, and not judged."
    )
    each = "Messages on links for each publication, as section 5.4.3 words it."
    delay = "From the source broker to each broker with a matching subscription; links of 100 ms."
    last = (
        "Our improved tree is nearly a star, as nothing forbids it. “Few links” is the same "
        "search with no broker of more links than the busiest of the overlap tree."
    )
    return (
        Item("Figure 5.3a", f"{title}: messages", bias_curves(sizes, EACH),
             "messages per publication", BIAS, f"{each} {last}",
             tuple(count_statements(sizes, EACH))),
        Item("Figure 5.3a, arrivals", f"{title}: messages", bias_curves(sizes, MESSAGES),
             "messages per arrival", BIAS, count),
        Item("Figure 5.3b", f"{title}: latency", bias_curves(sizes, LATENCY), "latency, ms", BIAS,
             delay, tuple(latency_statements(sizes))),
    )  # fmt: skip


def count_statements(sizes: OverlaySizes, key: str) -> Iterator[Statement]:
    yield from common_statements(sizes, key)
    yield from claimed_of(points_over(key, low_biases(sizes)), (
        ("“For low to moderate regionalism, the cover topology produces lower average message "
         "count than the baseline topology”: bias up to 0.5",
         ["cover"], ["baseline"], 1.0),
    ))  # fmt: skip
    yield from claimed_of(points_over(key, MIXED[:1]), (
        ("Ours: improved has at least 10 % less than overlap at bias 0.75",
         ["improved"], ["overlap"], 0.9),
        ("Ours: so has few links, with no more at a broker than overlap",
         ["few links"], ["overlap"], 0.9),
    ))  # fmt: skip


BY_ATTACHMENT = (
    "“randomly connecting the brokers in a tree” is told of no law. A spanning tree of random "
    "weights, which the appendix names, takes about 1,800 ms; if each broker joins a random "
    "earlier one, it is about 960 ms, and cover's 1,050 ms is equal to that."
)


def latency_statements(sizes: OverlaySizes) -> Iterator[Statement]:
    yield from common_statements(sizes, LATENCY)
    yield alike(
        "“but performs equal in terms of average message latency”: cover and baseline within "
        "10 %, bias up to 0.5",
        [bias_points(name, LATENCY, low_biases(sizes)) for name in ("cover", "baseline")],
        1.1,
    ).if_not(OPEN, BY_ATTACHMENT)
    points = points_over(LATENCY, sizes.biases)
    for method in OURS:
        text = f"Ours: {method} is below all lines of the thesis at every bias"
        yield everywhere(all_below(text, [points(method)], map(points, THEIRS)))


def low_biases(sizes: OverlaySizes) -> list[float]:
    """Low to moderate regionalism."""
    return [bias for bias in sizes.biases if bias <= 0.5]


def common_statements(sizes: OverlaySizes, key: str) -> Iterator[Statement]:
    points = points_over(key, sizes.biases)
    for other in ("cover", "baseline"):
        yield everywhere(pointwise(
            "“Overlap topologies provide superior performance for both metrics across the entire "
            f"bias range”: below {other} at every bias",
            points("overlap"),
            points(other),
        ))  # fmt: skip
    high = [bias for bias in sizes.biases if bias > 0.8]
    yield every_below(
        "“When at least eighty percent … are regionalized, … the cover-based topologies experience "
        "substantial improvements”: from bias 0.9 on at least 10 % less than at 0.75",
        bias_points("cover", key, high),
        bias_points("cover", key, MIXED[:1]),
        0.9,
    )


def node_degrees(sizes: OverlaySizes) -> tuple[Item, Item]:
    """Node degrees: the highest tenth over the bias, and their distribution at one bias."""
    shares = {
        name: [Point(bias_name(SHOWN), f"{name} degree up to {d}", d) for d in DEGREES]
        for name in (*THEIRS, *OURS)
    }
    distribution = tuple(method_line(name, own) for name, own in shares.items())
    return (
        Item("Figure 5.5a", "Node degrees", two_curves(sizes, *TENTH), "links of a broker", BIAS,
             statements=tuple(degree_statements(sizes)), log=True),
        Item("Figure 5.5b", f"Distribution of node degrees, bias {SHOWN:g}", distribution,
             "share of the brokers", "links, at most",
             "The thesis does not tell the bias.",
             tuple(distribution_statements(shares))),
    )  # fmt: skip


def degree_statements(sizes: OverlaySizes) -> Iterator[Statement]:
    points = points_over("degree max", sizes.biases)
    yield from claimed_of(points, (
        ("“The overlap topology generally produces larger maximum node degrees than the other "
         "algorithms”: over the biases",
         ["cover", "baseline"], ["overlap"], 1.0),
    ))  # fmt: skip
    yield from claimed_of(points, (
        ("“The topologies produced by the cover metric result in lower maximum node degree than "
         "overlap, but higher … than baseline”: above baseline over the biases",
         ["baseline"], ["cover"], 1.0),
    ))  # fmt: skip


def distribution_statements(shares: dict[str, list[Point]]) -> Iterator[Statement]:
    few = {name: own[:1] for name, own in shares.items()}
    yield pointwise(
        "“The baseline topology quickly ramps to the full set of brokers”: more brokers with at "
        "most 8 links than cover",
        [p for p in shares["cover"] if p.x == 8],
        [p for p in shares["baseline"] if p.x == 8],
    )
    yield pointwise(
        "“The curve for the cover topology … has a large number of brokers with few neighbors”: "
        "more with one link than baseline",
        few["baseline"],
        few["cover"],
    )
    yield pointwise(
        "“The overlap curve has a higher bend than the cover curve”: more brokers with one link",
        few["cover"],
        few["overlap"],
    )


def load_and_brokers(sizes: OverlaySizes) -> tuple[Item, Item]:
    """Messages that brokers process, and brokers that messages pass."""
    return (
        Item("Figure 5.6a", "Broker load", two_curves(sizes, *LOAD), "messages processed", BIAS,
             "At a bias of 0.75 all publications pass some broker, in every tree, so the maxima "
             "are alike there.",
             tuple(load_statements(sizes)), log=True),
        Item("Figure 5.6b", "Brokers that a publication passes",
             two_curves(sizes, *PASSED), "brokers", BIAS,
             statements=tuple(passed_statements(sizes))),
    )  # fmt: skip


ALL_PASS = (
    "publishers sit at a dozen brokers around one third of all, so some broker passes nearly all "
    "10,000 publications in every tree. What “load distribution” compares is not told; the maximum "
    "over the average falls as the text says."
)


def load_statements(sizes: OverlaySizes) -> Iterator[Statement]:
    mean, most, ratio = (
        points_over(f"processed {key}", sizes.biases) for key in ("mean", "max", "max/mean")
    )
    yield from claimed_of(mean, (
        ("“The overlap topology produces the best average”: over the biases",
         ["overlap"], ["cover", "baseline"], 1.0),
        ("“The baseline topology has yet a higher average” than cover: over the biases",
         ["cover"], ["baseline"], 1.0),
    ))  # fmt: skip
    for name, points in (("maximum", most), ("maximum over average", ratio)):
        for text, low, high in (
            ("“The cover topology provides better load distribution”", "cover", "overlap"),
            ("“The baseline topology has … better load distribution”", "baseline", "cover"),
        ):
            claim = f"{text}: {name} below that of {high} over the biases"
            yield pointwise(claim, points(low), points(high)).if_not(OPEN, ALL_PASS)


WIDE = (
    "no tree has a lower maximum than the most brokers that want one publication, which at a bias "
    "of 0.75 is already above the mean of the baseline."
)


def passed_statements(sizes: OverlaySizes) -> Iterator[Statement]:
    yield from claimed_of(points_over("brokers mean", sizes.biases), (
        ("“The overlap topology limits the number of brokers that process a given message to a "
         "greater extent than the other topologies”: mean over the biases",
         ["overlap"], ["cover", "baseline"], 1.0),
    ))  # fmt: skip
    for bias in MIXED:
        others = [bias_points(name, "brokers max", [bias])[0] for name in ("cover", "overlap")]
        yield every_below(
            "“The average number of brokers involved in the baseline topology is greater than or "
            f"near the maximum of the cover and overlap topologies”: within 10 %, bias {bias:g}",
            others,
            bias_points("baseline", "brokers mean", [bias]),
            1.1,
        ).if_not(DIFFER, WIDE)


# ---- Table 5.2: trees that weigh advertisements too

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

METRICS = {MESSAGES: "messages", LATENCY: "latency"}

READINGS = (
    "normalize() divides by the maximum. Of interest that can be the maximum of all, or the own of "
    "each advertising broker (“own maxima”). “Cover-based I” counts only advertisements that a "
    "subscription covers, which section 5.3.2 leaves to future work."
)
VARIED = {"own": "own maxima", "covered": "cover-based I"}


def table_5_2() -> tuple[Item, ...]:
    """Messages, latency, and what the best priority improves."""
    return (
        by_priority(MESSAGES, "messages per arrival"),
        by_priority(LATENCY, "latency, ms"),
        best_priorities(),
    )


def by_priority(metric: str, y: str) -> Item:
    name = METRICS[metric]
    return Item(
        f"Table 5.2, {name}",
        f"Advertisement priority: {name} (Figure 5.7)",
        tuple(line for bias in MIXED for line in priority_lines(metric, bias)),
        y,
        "α",
        READINGS,
        tuple(s for bias in MIXED for s in priority_statements(metric, bias)),
    )


def priority_lines(metric: str, bias: float) -> Iterator[PaperLine]:
    """The thesis' column, and our tree, which has no priority."""
    note, setting = f"b = {bias:g}", bias_name(bias)
    cells = zip(ALPHAS, PUBLISHED[metric, bias], strict=True)
    yield method_line(
        "hybrid", (priority_point(metric, bias, alpha, cell) for alpha, cell in cells), note
    )
    for key, label in VARIED.items():
        points = (Point(setting, f"{key} {a:g} {metric}", a) for a in VARIANTS)
        yield PaperLine(f"{label}, {note}", tuple(points))
    yield method_line("improved", (Point(setting, f"improved {metric}", a) for a in ALPHAS), note)


NORMALISED = (
    "normalize() is not told. By the maximum of all, interest weighs little and does little harm; "
    "by the own maxima of brokers, or by cover-based I, it degrades from α = 0.3 on as published, "
    "though by less."
)
LOWER = (
    "messages are 4 to 7 % fewer here for every small α, while latencies agree; which part of the "
    "workload makes the difference was not found."
)
LEAST = "at a bias of 1 messages are within 2 % of the fewest possible, with every α up to 0.4."
NEARER = (
    "at a bias of 1 the tree of each class is nearly a star here, and no rule for ties between "
    "classes, which have nothing in common, nor any normalisation tried made its paths longer "
    "than about 500 ms on average."
)


def priority_point(metric: str, bias: float, alpha: float, published: float | None = None) -> Point:
    point = Point(bias_name(bias), f"hybrid {alpha:g} {metric}", alpha, published)
    if alpha >= 0.25:
        return point.if_not(OPEN, NORMALISED)
    return point.if_not(DIFFER, NEARER if bias == 1 else LOWER)


def priority_statements(metric: str, bias: float) -> Iterator[Statement]:
    note, setting = f"{METRICS[metric]}, b = {bias:g}", bias_name(bias)
    none, *above = (priority_point(metric, bias, alpha) for alpha in ALPHAS)
    for text, lower, higher, factor in (
        (f"“The results … are lowest when α > 0”: {note}",
         Point(setting, f"least {metric}"), [none], 1.0),
        (f"“Performance is most improved when α is between 0.05 and 0.2”: {note}",
         Point(setting, f"advised {metric}"), [Point(setting, f"others {metric}")], 1.0),
        ("“When … α > 0.3, the overlays experience significant reduction in performance”: at least "
         f"5 % above α = 0, {note}",
         none, [point for point in above if float(point.x) > 0.3], 1 / 1.05),
        ("“Interest should be restricted to less than 25 %”: α of 0.25 and more above α = 0, "
         f"{note}",
         none, [point for point in above if float(point.x) >= 0.25], 1.0),
        (f"Ours: improved is below every α: {note}",
         Point(setting, f"improved {metric}"), [none, *above], 1.0),
    ):  # fmt: skip
        yield every_below(text, [lower], higher, factor).if_not(OPEN, NORMALISED)


def best_priorities() -> Item:
    """The last row of the table, and what the text says of it."""
    return Item(
        "Table 5.2, improvement",
        "Improvement of the best α over α = 0",
        tuple(
            PaperLine(
                f"b = {bias:g}",
                tuple(
                    Point(
                        bias_name(bias),
                        f"improvement {metric}",
                        METRICS[metric],
                        IMPROVED[metric, bias],
                    ).if_not(*((DIFFER, LEAST) if bias == 1 else (OPEN, NORMALISED)))
                    for metric in (MESSAGES, LATENCY)
                ),
            )
            for bias in MIXED
        ),
        "%",
        reading="Negative where no α above 0 is better than 0.",
        statements=tuple(
            pointwise(
                "“For both values of the bias factor … the improvement is more pronounced for "
                f"message latencies than for message count”: b = {bias:g}",
                [Point(bias_name(bias), f"improvement {MESSAGES}")],
                [Point(bias_name(bias), f"improvement {LATENCY}")],
            ).if_not(OPEN, NORMALISED)
            for bias in MIXED
        ),
    )
