"""Figure 6.8 of Tajuddin (2011): the load compensation factor at one number of clients."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.overlay.client_figures import OURS, RANKED, THEIRS, Points, curves
from fanplan.papers.overlay.settings import LCF, Sizes, clients_name
from fanplan.papers.overlay.shapes import alike, below, curve, label, rising


def figure_6_8(sizes: Sizes) -> tuple[Item, ...]:
    """Brokers, messages, latency and peak load over the factor."""

    def at(key: str) -> Points:
        def points(method: str) -> list[Point]:
            return [
                Point(clients_name(sizes.middle, factor, method), f"{method} {key}", factor)
                for factor in sizes.factors
            ]

        return points

    brokers, count, latency, peak = (
        at(key) for key in ("brokers", "messages", "latency", "peak mean")
    )
    clients = f"{4 * sizes.middle} clients"
    return (
        Item("Figure 6.8a", f"Brokers, {clients}", broker_lines(brokers), "brokers", "LCF",
             "Section 6.4.7 ends with “from 300 brokers when LCF is 0.75 to 400 brokers when LCF "
             "is 1.0”, of no ranking in particular. That is the reverse of its own figure and "
             "reason: a higher factor needs fewer brokers. Both numbers are shown as printed.",
             tuple(factor_broker_statements(brokers))),
        Item("Figure 6.8b", f"Messages, {clients}", curves(count), "messages per publication",
             "LCF", statements=(falling("“Message count decreases with higher LCF”", count),)),
        Item("Figure 6.8c", f"Latency, {clients}", curves(latency), "latency, ms", "LCF",
             statements=tuple(factor_latency_statements(sizes, latency))),
        Item("Figure 6.8d", f"Average peak load, {clients}", curves(peak),
             "messages per time unit", "LCF",
             statements=(rising("“A higher LCF results in greater peak loads”: along GLI, GI, GIg",
                                [peak(method) for method in RANKED]),)),
    )  # fmt: skip


def broker_lines(points: Points) -> tuple[Line, ...]:
    """The two printed numbers stand at GIg, the thesis' choice."""
    printed = {LCF: 300.0, 1.0: 400.0}
    gig = [Point(p.setting, p.key, p.x, printed.get(float(p.x))) for p in points("gig")]
    return tuple(curve(m, gig if m == "gig" else points(m)) for m in (*THEIRS, *OURS))


def falling(text: str, points: Points) -> Statement:
    """Along each ranking, every point is above the next."""
    return rising(f"{text}: along GLI, GI, GIg", [points(method)[::-1] for method in RANKED])


def factor_broker_statements(points: Points) -> Iterator[Statement]:
    yield falling("“Since a lower LCF reduces the … capacity …, more brokers are required”", points)
    at = {float(point.x): point for method in RANKED for point in points(method)}
    yield below(
        "“The cost of the overlay increases significantly from … LCF … 0.75 to … 1.0”: as printed",
        [at[LCF]],
        [at[1.0]],
    )


def factor_latency_statements(sizes: Sizes, points: Points) -> Iterator[Statement]:
    chosen, last = sizes.factors.index(LCF), sizes.factors.index(1.0)
    for method in RANKED:
        own = points(method)
        others = [point for i, point in enumerate(own) if i != chosen]
        yield below(
            "“The best balance between latency due to overlay hops and congestion is when LCF is "
            f"configured to 0.75”: {label(method)}",
            [own[chosen]] * len(others),
            others,
        )
    yield alike(
        "“Latencies increase only marginally when LCF is 1.0”: within 10 % of 0.75, GLI, GI, GIg",
        [[points(m)[last] for m in RANKED], [points(m)[chosen] for m in RANKED]],
        1.1,
    )
