"""The worked examples, and Figures 5.3, 5.5 and 5.6 of Tajuddin (2011)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.overlay.settings import EXAMPLES, MIXED, Sizes, bias_name
from fanplan.papers.overlay.shapes import alike, below, below_all, curve
from fanplan.papers.overlay.trees import DEGREES, LATENCY, MESSAGES

THEIRS = ("overlap", "cover", "baseline")
OURS = ("improved", "few links")
BIAS = "bias"
SHOWN = MIXED[0]
"""The bias of Figure 5.5b, which the thesis does not tell."""

Shown = tuple[str, str]
"""A key, and how a legend names it."""
TENTH: tuple[Shown, Shown] = (("degree max", "maximum"), ("degree 90", "90th percentile"))
LOAD: tuple[Shown, Shown] = (("processed max", "maximum"), ("processed mean", "mean"))
PASSED: tuple[Shown, Shown] = (("brokers mean", "mean"), ("brokers max", "maximum"))


def worked_examples() -> tuple[Item, Item]:
    """Eq. 4.1 on Figure 4.1, and the two topologies of Figure 5.4."""
    return (
        Item(
            "Equation 4.1",
            "Overlap of the two pairs of Figure 4.1",
            (
                Line(
                    "overlap",
                    (
                        Point(EXAMPLES, "overlap a", "(a)", 0.10),
                        Point(EXAMPLES, "overlap b", "(b)", 0.31),
                    ),
                ),
            ),
            "overlap",
            reading="The text gives the common areas and their shares; the other sides are chosen "
            "to fit both.",
        ),
        Item(
            "Figure 5.4",
            "Two topologies with equal latency",
            tuple(
                Line(
                    name,
                    tuple(
                        Point(EXAMPLES, f"{part} {key}", f"{part} topology", number)
                        for part, number in published.items()
                    ),
                )
                for name, key, published in (
                    ("messages", "messages", {"top": 4, "bottom": 3}),
                    ("latency, in L", "latency", {"top": 2, "bottom": 2}),
                )
            ),
            "messages, or latency in L",
        ),
    )


def points(method: str, key: str, biases: Sequence[float]) -> list[Point]:
    return [Point(bias_name(bias), f"{method} {key}", bias) for bias in biases]


def curves(key: str, sizes: Sizes) -> tuple[Line, ...]:
    return tuple(curve(name, points(name, key, sizes.biases)) for name in (*THEIRS, *OURS))


def two_curves(sizes: Sizes, first: Shown, second: Shown) -> tuple[Line, ...]:
    """Two numbers of each of the thesis' trees, as it draws them; of ours only the first."""
    theirs = (
        curve(name, points(name, key, sizes.biases), note)
        for name in THEIRS
        for key, note in (first, second)
    )
    key, note = first
    return (*theirs, *(curve(name, points(name, key, sizes.biases), note) for name in OURS))


def figure_5_3(sizes: Sizes) -> tuple[Item, ...]:
    """Message count, in both ways to count, and latency over the bias."""
    title = "Regional subscriptions"
    count = "Messages on links for each broker that a publication must reach, as in Table 5.2."
    each = "Messages on links for each publication, as section 5.4.3 words it."
    delay = "From the source broker to each broker with a matching subscription; links of 100 ms."
    last = (
        "Our improved tree is nearly a star, as nothing forbids it. “Few links” is the same "
        "search with no broker of more links than the busiest of the overlap tree."
    )
    return (
        Item("Figure 5.3a", f"{title}: messages", curves(MESSAGES, sizes), "messages per arrival",
             BIAS, f"{count} {last}", tuple(count_statements(sizes, MESSAGES))),
        Item("Figure 5.3a, publications", f"{title}: messages",
             curves("messages per publication", sizes), "messages per publication", BIAS, each,
             tuple(count_statements(sizes, "messages per publication"))),
        Item("Figure 5.3b", f"{title}: latency", curves(LATENCY, sizes), "latency, ms", BIAS,
             delay, tuple(latency_statements(sizes))),
    )  # fmt: skip


def count_statements(sizes: Sizes, key: str) -> Iterator[Statement]:
    yield from common_statements(sizes, key)
    some = low(sizes)
    yield below(
        "“For low to moderate regionalism, the cover topology produces lower average message "
        "count than the baseline topology”: bias up to 0.5",
        points("cover", key, some),
        points("baseline", key, some),
    )
    yield below(
        "Ours: improved has at least 10 % less than overlap at bias 0.75",
        points("improved", key, MIXED[:1]),
        points("overlap", key, MIXED[:1]),
        0.9,
    )
    yield below(
        "Ours: so has few links, with no more at a broker than overlap",
        points("few links", key, MIXED[:1]),
        points("overlap", key, MIXED[:1]),
        0.9,
    )


def latency_statements(sizes: Sizes) -> Iterator[Statement]:
    yield from common_statements(sizes, LATENCY)
    some = low(sizes)
    yield alike(
        "“but performs equal in terms of average message latency”: cover and baseline within "
        "10 %, bias up to 0.5",
        [points("cover", LATENCY, some), points("baseline", LATENCY, some)],
        1.1,
    )
    for method in OURS:
        yield below_all(
            f"Ours: {method} is below all lines of the thesis at every bias",
            points(method, LATENCY, sizes.biases),
            [points(other, LATENCY, sizes.biases) for other in THEIRS],
        )


def low(sizes: Sizes) -> list[float]:
    """Low to moderate regionalism."""
    return [bias for bias in sizes.biases if bias <= 0.5]


def common_statements(sizes: Sizes, key: str) -> Iterator[Statement]:
    for other in ("cover", "baseline"):
        yield below(
            "“Overlap topologies provide superior performance for both metrics across the entire "
            f"bias range”: below {other} at every bias",
            points("overlap", key, sizes.biases),
            points(other, key, sizes.biases),
        )
    high = [bias for bias in sizes.biases if bias > 0.8]
    yield below(
        "“When at least eighty percent … are regionalized, … the cover-based topologies experience "
        "substantial improvements”: from bias 0.9 on at least 10 % less than at 0.75",
        points("cover", key, high),
        points("cover", key, MIXED[:1]) * len(high),
        0.9,
    )


def figure_5_5(sizes: Sizes) -> tuple[Item, Item]:
    """Node degrees: the highest tenth over the bias, and their distribution at one bias."""
    shares = {
        name: [Point(bias_name(SHOWN), f"{name} degree up to {d}", d) for d in DEGREES]
        for name in (*THEIRS, *OURS)
    }
    distribution = tuple(curve(name, own) for name, own in shares.items())
    return (
        Item("Figure 5.5a", "Node degrees", two_curves(sizes, *TENTH), "links of a broker", BIAS,
             statements=tuple(degree_statements(sizes)), log=True),
        Item("Figure 5.5b", f"Distribution of node degrees, bias {SHOWN:g}", distribution,
             "share of the brokers", "links, at most",
             "The thesis does not tell the bias.",
             tuple(distribution_statements(shares))),
    )  # fmt: skip


def degree_statements(sizes: Sizes) -> Iterator[Statement]:
    overlap, cover, baseline = (points(name, "degree max", sizes.biases) for name in THEIRS)
    yield below_all(
        "“The overlap topology generally produces larger maximum node degrees than the other "
        "algorithms”: at every bias",
        cover + baseline,
        [overlap * 2],
    )
    yield below(
        "“The topologies produced by the cover metric result in lower maximum node degree than "
        "overlap, but higher maximum node degree than baseline”: at every bias",
        cover + baseline,
        overlap + cover,
    )


def distribution_statements(shares: dict[str, list[Point]]) -> Iterator[Statement]:
    few = {name: own[:1] for name, own in shares.items()}
    yield below(
        "“The baseline topology quickly ramps to the full set of brokers”: more brokers with at "
        "most 8 links than cover",
        [p for p in shares["cover"] if p.x == 8],
        [p for p in shares["baseline"] if p.x == 8],
    )
    yield below(
        "“The curve for the cover topology … has a large number of brokers with few neighbors”: "
        "more with one link than baseline",
        few["baseline"],
        few["cover"],
    )
    yield below(
        "“The overlap curve has a higher bend than the cover curve”: more brokers with one link",
        few["cover"],
        few["overlap"],
    )


def figure_5_6(sizes: Sizes) -> tuple[Item, Item]:
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


def load_statements(sizes: Sizes) -> Iterator[Statement]:
    mean, most, ratio = (
        [points(name, f"processed {key}", sizes.biases) for name in THEIRS]
        for key in ("mean", "max", "max/mean")
    )
    yield below_all("“The overlap topology produces the best average”: at every bias",
                    mean[0], mean[1:])  # fmt: skip
    yield below("“The baseline topology has yet a higher average” than cover: at every bias",
                mean[1], mean[2])  # fmt: skip
    for name, values in (("maximum", most), ("maximum over average", ratio)):
        yield below(
            f"“The cover topology provides better load distribution”: {name} below that of "
            "overlap at every bias",
            values[1],
            values[0],
        )
        yield below(
            f"“The baseline topology has … better load distribution”: {name} below that of cover "
            "at every bias",
            values[2],
            values[1],
        )


def passed_statements(sizes: Sizes) -> Iterator[Statement]:
    overlap, cover, baseline = (points(name, "brokers mean", sizes.biases) for name in THEIRS)
    yield below_all(
        "“The overlap topology limits the number of brokers that process a given message to a "
        "greater extent than the other topologies”: mean at every bias",
        overlap,
        [cover, baseline],
    )
    for bias in MIXED:
        others = [points(name, "brokers max", [bias])[0] for name in ("cover", "overlap")]
        yield below(
            "“The average number of brokers involved in the baseline topology is greater than or "
            f"near the maximum of the cover and overlap topologies”: within 10 %, bias {bias:g}",
            others,
            points("baseline", "brokers mean", [bias]) * 2,
            1.1,
        )
