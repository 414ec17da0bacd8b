"""Tables 1 to 4 and Figures 8 to 25 of Zhang & Hu (2005), and a choice of groups beside theirs."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import ERRS, Item, PaperLine, Point, Statement, each_pair
from fanplan.papers.hyper.samples import DEFAULT, HYBRID, RANKS, SCENARIOS, SHARES, SHORT, WAYS

SELECTIVE = SHARES[:2]
"""With all groups there is nothing to choose."""


def hyper_items() -> tuple[Item, ...]:
    """Tables 1 to 4, the choice of groups, and Figures 8 to 25."""
    return (*published_tables(), cost_by_benefit(), *server_figures())


# ---- Tables 1 to 4, as published and as measured

PUBLISHED = {
    ("delay", HYBRID): (5.377, 4.950, 4.000, 4.748, 4.568, 4.000, 4.137, 4.078, 4.000),
    ("delay", SHORT): (5.375, 4.943, 3.885, 4.582, 4.277, 3.203, 4.037, 3.942, 3.796),
    ("messages", HYBRID): (0.828, 0.828, 0.828, 0.238, 0.238, 0.238, 0.540, 0.540, 0.540),
    ("messages", SHORT): (0.824, 0.816, 0.650, 0.200, 0.171, 0.065, 0.436, 0.403, 0.342),
    ("matches", DEFAULT): (0.828, 0.828, 0.828, 0.238, 0.238, 0.238, 0.540, 0.540, 0.540),
    ("matches", HYBRID): (0.651, 0.507, 0.000, 0.150, 0.116, 0.000, 0.110, 0.067, 0.000),
    ("overhead", HYBRID): (1298, 2441, 7463, 478, 626, 1170, 519, 670, 1170),
    ("overhead", SHORT): (2051, 3873, 12352, 826, 1116, 1928, 897, 1192, 1928),
    ("saving", SHORT): (368, 1133, 17875, 4309, 7575, 19688, 1195, 1578, 2279),
}
"""Columns by metric and way; the rows are those of ``ROWS``."""

ROWS = tuple((scenario, share) for scenario in SCENARIOS for share in SHARES)

DOUBTFUL = {("overhead", SHORT, "zipf-uni", 100), ("overhead", SHORT, "zipf-zipf", 100)}
"""1928 is probably 2198, with digits transposed: that is what all other cells imply."""

TABLES = {
    "delay": ("Table 1", "Average delay at leaf servers", "hops and matches"),
    "messages": ("Table 2", "Messages received at internal servers", "share of all messages"),
    "matches": ("Table 3", "Matches performed at internal servers", "share of all messages"),
    "overhead": ("Table 4, overhead", "Control messages", "messages"),
    "saving": ("Table 4, saving", "Messages that shortcuts save", "messages"),
}

READINGS = {
    "delay": "Over deliveries: 6 by default, 1 + hops in a group.",
    "messages": "Internal servers are the 20 that are neither root nor leaf.",
    "matches": "The match at the root is not counted.",
    "overhead": (
        "One notification per member, one Group message per link of the subtree; with shortcuts a "
        "Probe per link and a Reply per shortcut. The 64 updates of subscriptions are not counted. "
        "Two cells are doubtful, zipf-uni (100%) and zipf-zipf (100%) with shortcuts: the "
        "published 1928 is probably 2198, with digits transposed."
    ),
    "saving": "Brokers bypassed × messages.",
}


def published_tables() -> tuple[Item, ...]:
    """All cells of Tables 1 to 4, by the ranking that fits them: leaves × messages."""
    return tuple(
        Item(
            name,
            title,
            tuple(table_column(metric, way) for key, way in PUBLISHED if key == metric),
            unit,
            reading=READINGS[metric],
            statements=tuple(table_statements(metric)),
        )
        for metric, (name, title, unit) in TABLES.items()
    )


def table_column(metric: str, way: str) -> PaperLine:
    cells = zip(ROWS, PUBLISHED[metric, way], strict=True)
    return PaperLine(
        way,
        tuple(
            table_cell(metric, way, scenario, share, published)
            for (scenario, share), published in cells
        ),
    )


def table_cell(metric: str, way: str, scenario: str, share: int, published: float) -> Point:
    point = Point(scenario, f"{way} {share} {metric}", f"{scenario} ({share}%)", published)
    if (metric, way, scenario, share) not in DOUBTFUL:
        return point
    text = (
        "Probes, Replies and the 1170 messages without shortcuts make 2198; digits are transposed."
    )
    return point.if_not(ERRS, text)


def table_statements(metric: str) -> Iterator[Statement]:
    """What section 5.2 says beyond the cells."""
    if metric == "delay":
        for way in (HYBRID, SHORT):
            yield each_pair(
                f"“The ‘zipf-zipf’ distribution experiences the lowest content delivery delay” "
                f"with 10 % of the groups: {way}",
                tuple(
                    (Point("zipf-zipf", f"{way} 10 delay"), Point(other, f"{way} 10 delay"))
                    for other in ("uni-uni", "zipf-uni")
                ),
            )
    if metric == "matches":
        point = Point("zipf-zipf", f"{HYBRID} 10 matches")
        yield each_pair(
            "“Only 10% virtual groups can reduce the matchings by about 80%”: by 75 % or more, "
            "zipf-zipf",
            ((point, Point("zipf-zipf", f"{DEFAULT} 10 matches")),),
            0.25,
        )
    if metric == "saving":
        for scenario in ("zipf-uni", "zipf-zipf"):
            yield each_pair(
                "“The resulted messaging savings … can potentially offset the messaging overhead”: "
                f"above the overhead with shortcuts, at all shares, {scenario}",
                tuple(
                    (
                        Point(scenario, f"{SHORT} {share} overhead"),
                        Point(scenario, f"{SHORT} {share} saving"),
                    )
                    for share in SHARES
                ),
            )


# ---- Figures 8 to 25: the metrics of each leaf and of each internal server

FIRST = 8
READING = (
    "In Figures 8 to 25 servers are in the order of what is shown, the lowest first, so that runs "
    "can be averaged: leaves are alike but for chance, and so are the servers of a level. The four "
    "servers below the root come last."
)
SERVERS = {"delay": 64, "messages": 20, "matches": 20}
DRAWN_WAYS = {"delay": WAYS, "messages": (HYBRID, SHORT), "matches": (DEFAULT, HYBRID)}


def server_figures() -> tuple[Item, ...]:
    """Three metrics for each scenario with 10 % and 20 % of the groups, in the paper's order."""
    settings = [
        (scenario, share, metric)
        for scenario in SCENARIOS
        for share in SELECTIVE
        for metric in SERVERS
    ]
    return tuple(server_figure(FIRST + i, *setting) for i, setting in enumerate(settings))


def server_figure(number: int, scenario: str, share: int, metric: str) -> Item:
    _, title, unit = TABLES[metric]
    return Item(
        f"Figure {number}",
        f"{title} ({scenario}: {share}%)",
        tuple(way_curve(way, scenario, share, metric) for way in DRAWN_WAYS[metric]),
        unit,
        "leaf" if metric == "delay" else "internal server",
        READING if number == FIRST else "",
    )


def way_curve(way: str, scenario: str, share: int, metric: str) -> PaperLine:
    places = range(1, SERVERS[metric] + 1)
    points = (Point(scenario, f"{way} {share} {metric} of {place}", place) for place in places)
    return PaperLine(way, tuple(points))


# ---- not in the paper: what is saved at equal state, by their two benefits and by ours

BENEFITS = {"nc": "leaves × messages (N·C)", "fc": "internal servers × messages (F·C)"}


def cost_by_benefit() -> Item:
    """Total cost of the groups that each benefit chooses, with as many entries of tables."""
    return Item(
        "Choice at equal state",
        "Total cost by benefit",
        tuple(
            line
            for rank, label in BENEFITS.items()
            for line in (
                cost_line(label, f"{rank} {{}} cost"),
                cost_line(f"true saving, entries of {label[-4:-1]}", f"{rank} {{}} ours", True),
            )
        ),
        "% of default routing",
        reading=(
            "Matches, messages on links, entries of forwarding tables and control messages, at a "
            "price of 1 each. “True saving” chooses by all four, within the entries that the best "
            "10 % or 20 % by the benefit named take. It is never dearer; the benefit may have "
            "chosen the best groups already."
        ),
        numbers=True,
        statements=tuple(
            true_saving_cheaper(scenario, rank) for scenario in SCENARIOS for rank in RANKS
        ),
    )


def cost_line(label: str, key: str, ours: bool = False) -> PaperLine:
    points = (
        Point(scenario, key.format(share), f"{scenario} ({share}%)")
        for scenario in SCENARIOS
        for share in SELECTIVE
    )
    return PaperLine(label, tuple(points), ours)


def true_saving_cheaper(scenario: str, rank: str) -> Statement:
    pairs = tuple(
        (Point(scenario, f"{rank} {share} ours"), Point(scenario, f"{rank} {share} cost"))
        for share in SELECTIVE
    )
    text = f"Ours: true saving costs less than {BENEFITS[rank]} with 10 % and with 20 %: {scenario}"
    return each_pair(text, pairs)
