"""Tables 3 and 4 and Figures 6 to 11 of Guimarães & Rodrigues (2003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.genetic.settings import GROUPS, KINDS, RICH, SCENARIOS, Sizes, scenario

X, Y = "subscribers", "efficiency"
PAPER = ("broadcast", "round-robin", "genetic")
OURS = ("genetic-atomic", "kmodes")
NO_BETTER = 1.05
"""The text says "better" of a picture without a measure; less than 5 % counts as no better."""

BASED = {"subjects": "subject-based", "content": "content-based"}
HEAVY = (
    "Point-to-point deliveries count as received and desired. A second copy of a notification "
    "counts as received only. Light subscriptions go point to point for every method. Round-robin "
    "deals out subjects. What nobody wants is not sent. "
)


def efficiency(
    kind: str,
    cp: tuple[int, int],
    method: str,
    subscribers: int,
    groups: int = GROUPS,
    of: tuple[int, int] = (100, 10),
) -> Point:
    return Point(scenario(kind, cp, subscribers, *of), f"{method} @ {groups}", subscribers)


def line(
    kind: str,
    cp: tuple[int, int],
    method: str,
    xs: Sequence[int],
    groups: int = GROUPS,
    label: str = "",
    of: tuple[int, int] = (100, 10),
) -> Line:
    points = tuple(efficiency(kind, cp, method, x, groups, of) for x in xs)
    return Line(label or method, points, method in OURS)


def table_3() -> Item:
    """Tables 1 to 3: exact."""
    published = {"cost": {"a": 1.0, "b": 0.0}, "groups": {"a": 7.0, "b": 6.0}}
    lines = tuple(
        Line(
            what,
            tuple(
                Point("tables 1 to 3", f"map {m}, {what}", f"map {m}", values[m]) for m in values
            ),
        )
        for what, values in published.items()
    )
    return Item(
        "Table 3",
        "Quality metric of two maps",
        lines,
        "cost in W_C(e), groups",
        reading="The cost of map (a) is printed W_c(E); it is what subject e costs subscriber C.",
    )


def figures_6_and_7(sizes: Sizes) -> Iterator[Item]:
    for number, kind in enumerate(KINDS, start=6):
        for part, cp in SCENARIOS.items():
            yield Item(
                f"Figure {number}{part}",
                f"Methods, {BASED[kind]}, c{cp[0]} p{cp[1]} g{GROUPS}",
                tuple(line(kind, cp, method, sizes.subscribers) for method in (*PAPER, *OURS)),
                Y,
                X,
                HEAVY + f"Rates span a factor of 10^{cp[1]}, drawn log-uniformly.",
                tuple(method_statements(kind, cp, sizes)),
            )


def method_statements(kind: str, cp: tuple[int, int], sizes: Sizes) -> Iterator[Statement]:
    points = {
        method: [efficiency(kind, cp, method, n) for n in sizes.subscribers]
        for method in (*PAPER, *OURS)
    }
    below = lambda a, b: tuple(zip(points[a], points[b], strict=True))  # noqa: E731
    if kind == "subjects":
        yield Statement("Broadcast is worst", below("broadcast", "round-robin"))
    else:
        yield Statement(
            "Round-robin is better than broadcast (5.5)", below("broadcast", "round-robin")
        )
    if kind == "subjects" or cp == RICH:
        yield Statement("Genetic is better than round-robin", below("round-robin", "genetic"))
    else:
        yield Statement(
            "Genetic is no better than round-robin: less than 5 % above it",
            below("genetic", "round-robin"),
            NO_BETTER,
        )
    most = sizes.most
    better, name = (1.09, "9 %") if cp[0] == 1 else (1.14, "14 %")
    if kind == "subjects":
        pair = efficiency(kind, cp, "genetic", most), efficiency(kind, cp, "genetic-atomic", most)
        text = f"Ours: genetic-atomic is at least {name} above genetic, {most} subscribers"
        yield Statement(text, (pair,), 1 / better)
    else:
        yield Statement(
            "Ours: genetic-atomic is better than genetic", below("genetic", "genetic-atomic")
        )
    setting = scenario(kind, cp, most)
    times = [
        Point(setting, f"{method} seconds @ {GROUPS}") for method in ("genetic-atomic", "genetic")
    ]
    yield Statement(
        "Ours: genetic-atomic takes less than half the time", ((times[0], times[1]),), 0.5
    )


def ratios(sizes: Sizes) -> Item:
    """What the text says of Figure 6: how much better than round-robin."""
    stated = {"b": 3.0, "c": 2.0}
    points = tuple(
        Point(
            scenario("subjects", cp, sizes.most),
            f"ratio @ {GROUPS}",
            f"({part}) c{cp[0]} p{cp[1]}",
            stated.get(part),
        )
        for part, cp in SCENARIOS.items()
    )
    return Item(
        "Section 5.3",
        "Efficiency of genetic in units of round-robin",
        (Line(f"{sizes.most} subscribers", points),),
        "ratio",
        reading="The text says approximately 3 for (b) and 2 for (c), over the whole figure.",
    )


def figure_8(sizes: Sizes) -> Iterator[Item]:
    for part, kind in zip("ab", KINDS, strict=True):
        lines = tuple(
            line(kind, RICH, method, sizes.subscribers, groups, f"{method} g{groups}")
            for method in ("genetic", "genetic-atomic")
            for groups in sizes.groups
        )
        few, many = (
            [efficiency(kind, RICH, "genetic", n, g) for n in sizes.subscribers]
            for g in (sizes.groups[0], sizes.groups[-1])
        )
        more = Statement("More groups are better", tuple(zip(few, many, strict=True)))
        title = f"Number of groups, {BASED[kind]}, c{RICH[0]} p{RICH[1]}"
        yield Item(f"Figure 8{part}", title, lines, Y, X, HEAVY, (more,))


def figure_9(sizes: Sizes) -> Item:
    methods = (*PAPER, *OURS)
    lines = tuple(
        line("content", RICH, method, sizes.subscribers, groups, f"{method} g{groups}")
        for method in methods
        for groups in (sizes.groups[0], sizes.groups[-1])
    )
    gain = lambda method: Point(scenario("content", RICH, sizes.most), f"{method} gain")  # noqa: E731
    text = f"More groups help genetic more than round-robin, {sizes.most} subscribers"
    more = Statement(text, ((gain("round-robin"), gain("genetic")),))
    return Item(
        "Figure 9", "Number of groups, content-based, all methods", lines, Y, X, HEAVY, (more,)
    )


def figure_10(sizes: Sizes) -> Iterator[Item]:
    xs = (*sizes.subscribers, *sizes.many)
    for part, kind in zip("ab", KINDS, strict=True):
        lines = tuple(line(kind, RICH, method, xs) for method in ("genetic", "genetic-atomic"))
        a, b = (efficiency(kind, RICH, "genetic", n) for n in (sizes.most, sizes.many[-1]))
        text = f"Nearly constant from {sizes.most} to {sizes.many[-1]} subscribers, within 15 %"
        constant = Statement(text, ((a, b), (b, a)), 1.15)
        title = f"Many subscribers, {BASED[kind]}, c{RICH[0]} p{RICH[1]} g{GROUPS}"
        yield Item(f"Figure 10{part}", title, lines, Y, X, HEAVY, (constant,))


def figure_11(sizes: Sizes) -> Iterator[Item]:
    choices = ((100, 10), (200, 10), (200, 5))
    for part, kind in zip("ab", KINDS, strict=True):
        lines = tuple(
            line(
                kind, RICH, method, sizes.subscribers, label=f"{method} {of[1]} % of {of[0]}", of=of
            )
            for method in ("genetic", "genetic-atomic")
            for of in choices
        )
        at = [efficiency(kind, RICH, "genetic", sizes.most, of=of) for of in choices]
        statements = (
            Statement(f"More subjects are worse, {sizes.most} subscribers", ((at[1], at[0]),)),
            Statement(
                f"A smaller share of them is worse, {sizes.most} subscribers", ((at[2], at[1]),)
            ),
        )
        title = f"Number of subjects, {BASED[kind]}, c{RICH[0]} p{RICH[1]} g{GROUPS}"
        yield Item(f"Figure 11{part}", title, lines, Y, X, HEAVY, statements)
