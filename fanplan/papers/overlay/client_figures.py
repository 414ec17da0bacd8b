"""Figures 6.3 to 6.7 of Tajuddin (2011): clients allocated to a minimal set of brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.overlay.settings import LCF, Sizes, clients_name
from fanplan.papers.overlay.shapes import alike, below, below_all, curve, label

RANKED = ("gli", "gi", "gig")
THEIRS = (*RANKED, "baseline")
OURS = ("best", "exact")
CLIENTS = "clients"
CAPACITY = 1000.0
"""Messages per time unit that a broker can process (Table 6.2)."""

Points = Callable[[str], list[Point]]
"""The points of a method along the axis."""


def along(sizes: Sizes, key: str) -> Points:
    """The points of a method over the number of clients."""

    def points(method: str) -> list[Point]:
        return [
            Point(clients_name(publishers, LCF, method), f"{method} {key}", 4 * publishers)
            for publishers in sizes.publishers
        ]

    return points


def curves(points: Points, methods: Sequence[str] = (*THEIRS, *OURS)) -> tuple[Line, ...]:
    return tuple(curve(method, points(method)) for method in methods)


def figures_6(sizes: Sizes) -> tuple[Item, ...]:
    """Figures 6.3 to 6.7."""
    return (figure_6_3(sizes), *figures_6_4_and_5(sizes), figure_6_6(sizes), *figure_6_7(sizes))


def figure_6_3(sizes: Sizes) -> Item:
    """The cost of the overlay: brokers deployed."""
    points = along(sizes, "brokers")
    return Item(
        "Figure 6.3",
        "Brokers deployed",
        curves(points, (*THEIRS, *OURS, "bound")),
        "brokers",
        CLIENTS,
        "The thesis gives no law of the regions: here centres are uniform and ranges those of "
        "section 5.4.2. With many clients, some subscribers want more than a broker may take; "
        "every method gives each of them a broker of its own. “Best” obeys the thesis' estimate "
        "of load as the others do; with “exact load” a broker counts a message once, however many "
        "of its clients want it. The bound is for the estimate.",
        tuple(broker_statements(sizes, points)),
    )


def broker_statements(sizes: Sizes, points: Points) -> Iterator[Statement]:
    yield alike(
        "“All ranking functions utilize a similar number of brokers”: within 10 % at every size",
        [points(method) for method in THEIRS],
        1.1,
    )
    middle = sizes.publishers.index(sizes.middle)
    yield below_all(
        "“On occasion, such as when the client count is 2400, the GLI technique allocates clients "
        "to a slightly fewer set of brokers”: fewer than each of the others there",
        [points("gli")[middle]],
        [[points(method)[middle]] for method in THEIRS[1:]],
    )
    yield below_all(
        "Ours: best uses at least 5 % fewer brokers than all four at every size",
        points("best"),
        [points(method) for method in THEIRS],
        0.95,
    )
    yield below_all(
        "Ours: with exact load, at most half as many as all four at every size",
        points("exact"),
        [points(method) for method in THEIRS],
        0.5,
    )


def figures_6_4_and_5(sizes: Sizes) -> tuple[Item, Item]:
    """Message count and message latency."""
    count, latency = (along(sizes, key) for key in ("messages", "latency"))
    return (
        Item("Figure 6.4", "Messages", curves(count), "messages per publication", CLIENTS,
             "The baseline's tree is random too, as nothing of it should know similarity.",
             tuple(ranking_statements(count, "message counts", 0.9))),
        Item("Figure 6.5", "Latency", curves(latency), "latency, ms", CLIENTS,
             "That GIg is best in latency did not come about under any reading tried.",
             tuple(ranking_statements(latency, "latencies", 1.0))),
    )  # fmt: skip


def ranking_statements(points: Points, what: str, factor: float) -> Iterator[Statement]:
    gli, gi, gig, baseline = (points(method) for method in THEIRS)
    yield below(
        "“The GLI technique performs better than the baseline approach”: at every size",
        gli,
        baseline,
    )
    for name, own in (("GI", gi), ("GIg", gig)):
        yield below(
            f"“but worse than the GI and GIg techniques”: GLI above {name} at every size", own, gli
        )
    yield below(
        f"“The GIg technique provides the lowest {what}”: below GI at every size",
        gig,
        gi,
    )
    less = "" if factor == 1 else f"at least {100 * (1 - factor):.0f} % "
    for method in OURS:
        yield below_all(
            f"Ours: {label(method).removesuffix(' (ours)')} is {less}below all four at every size",
            points(method),
            [gli, gi, gig, baseline],
            factor,
        )


def figure_6_6(sizes: Sizes) -> Item:
    """Pure forwarding, as a mean over brokers and of all messages."""
    return Item(
        "Figure 6.6",
        "Pure forwarding messages",
        curves(along(sizes, "forwarding")),
        "% of the messages of a broker",
        CLIENTS,
        "Section 6.4.3 averages the ratio over the brokers; the text of the figure says “of all "
        "messages”. The picture shows the first, the statements check both.",
        tuple(
            statement
            for key, name in (("forwarding", "mean over brokers"), ("forwarded", "of all messages"))
            for statement in forwarding_statements(along(sizes, key), name)
        ),
    )


def forwarding_statements(points: Points, name: str) -> Iterator[Statement]:
    ranked = [point for method in RANKED for point in points(method)]
    yield below(
        f"“The baseline technique … produces a large number of pure forwarding messages”: above "
        f"the rankings at every size, {name}",
        ranked,
        points("baseline") * len(RANKED),
    )
    yield Statement(
        "“The ranking routines … limit the number of pure forwarding messages to 10–15 %”: at "
        f"every size, {name}",
        tuple(pair for point in ranked for pair in ((10.0, point), (point, 15.0))),
    )
    ends = [points(method)[:: len(points(method)) - 1] for method in RANKED]
    yield alike(
        "“The percentage of pure forwarding traffic remains constant as the workload increases”: "
        f"first and last size within 25 %, {name}",
        [[first for first, _ in ends], [last for _, last in ends]],
        1.25,
    )


def figure_6_7(sizes: Sizes) -> tuple[Item, ...]:
    """How load modelling keeps brokers from congestion."""
    mean, most, delay = (along(sizes, key) for key in ("peak mean", "peak max", "delay"))
    return (
        Item("Figure 6.7a", "Average peak load", curves(mean), "messages per time unit", CLIENTS,
             statements=tuple(peak_statements(mean))),
        Item("Figure 6.7b", "Maximum peak load", curves(most), "messages per time unit", CLIENTS,
             "With many clients there is a broker that all traffic passes, whatever the method, "
             "so the maxima are alike.",
             tuple(most_statements(most))),
        Item("Figure 6.7c", "Average processing delay", curves(delay), "ms", CLIENTS,
             "Per publication and broker that it visits.",
             tuple(delay_statements(delay))),
    )  # fmt: skip


def peak_statements(points: Points) -> Iterator[Statement]:
    yield Statement(
        "“The baseline overlay produces an average peak load above the broker capacity threshold "
        "… for a sufficiently large workload”: at the largest",
        ((CAPACITY, points("baseline")[-1]),),
    )
    yield Statement(
        "“The overlays produced by our algorithm are able to contain the load”: below capacity at "
        "every size",
        tuple((point, CAPACITY) for method in RANKED for point in points(method)),
    )
    yield below(
        "“As the workload increases, the peak load values level-off”: less than 10 % more at the "
        "largest size than at the one before",
        [points(method)[-1] for method in RANKED],
        [points(method)[-2] for method in RANKED],
        1.1,
    )


def most_statements(points: Points) -> Iterator[Statement]:
    yield below_all(
        "“The maximum peak load for the GLI ranking function is significantly larger than that of "
        "the other techniques”: at least 10 % at every size",
        [point for method in ("gi", "gig") for point in points(method)],
        [points("gli") * 2],
        1 / 1.1,
    )
    yield below_all(
        "“The GIg overlay has the lowest maximum peak load”: at every size",
        points("gig"),
        [points(method) for method in THEIRS if method != "gig"],
    )
    yield Statement(
        "“All maximum peak loads are above the broker capacity threshold”: at every size",
        tuple((CAPACITY, point) for method in THEIRS for point in points(method)),
    )


def delay_statements(points: Points) -> Iterator[Statement]:
    yield Statement(
        "“None of the overlays produce zero processing delays”: at every size",
        tuple((0.0, point) for method in THEIRS for point in points(method)),
    )
    yield below(
        "“The clustering aspects of our algorithm … are sufficient for significantly reducing "
        "congestion effects”: at least 10 % below the baseline at the largest size",
        [points(method)[-1] for method in RANKED],
        [points("baseline")[-1]] * len(RANKED),
        0.9,
    )
