"""Not in Zhang & Hu (2005): what is saved at equal state, by their two benefits and by ours."""

from __future__ import annotations

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.hyper.samples import RANKS, SCENARIOS, SHARES

LABELS = {"nc": "leaves × messages (N·C)", "fc": "internal servers × messages (F·C)"}
SELECTIVE = SHARES[:2]
"""With all groups there is nothing to choose."""


def choice() -> Item:
    """Total cost of the groups that each benefit chooses, with as many entries of tables."""
    return Item(
        "Choice at equal state",
        "Total cost by benefit",
        tuple(line for rank in RANKS for line in (theirs(rank), ours(rank))),
        "% of default routing",
        reading=(
            "Matches, messages on links, entries of forwarding tables and control messages, at a "
            "price of 1 each. “True saving” chooses by all four, within the entries that the best "
            "10 % or 20 % by the benefit named take. It is never dearer; where runs do not agree, "
            "the benefit had chosen the best groups already."
        ),
        numbers=True,
        statements=tuple(cheaper(scenario, rank) for scenario in SCENARIOS for rank in RANKS),
    )


def theirs(rank: str) -> Line:
    return Line(LABELS[rank], points(f"{rank} {{}} cost"))


def ours(rank: str) -> Line:
    return Line(f"true saving, entries of {LABELS[rank][-4:-1]}", points(f"{rank} {{}} ours"), True)


def points(key: str) -> tuple[Point, ...]:
    return tuple(
        Point(scenario, key.format(share), f"{scenario} ({share}%)")
        for scenario in SCENARIOS
        for share in SELECTIVE
    )


def cheaper(scenario: str, rank: str) -> Statement:
    pairs = tuple(
        (Point(scenario, f"{rank} {share} ours"), Point(scenario, f"{rank} {share} cost"))
        for share in SELECTIVE
    )
    text = f"Ours: true saving costs less than {LABELS[rank]} with 10 % and with 20 %: {scenario}"
    return Statement(text, pairs)
