"""What Ge et al. (2002) left open in section 6: signalling and storage of the three schemes."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.matchmaker.settings import SCHEMES, TREES, churn_name
from fanplan.papers.matchmaker.signalling import PURPOSES

BROADCASTS = SCHEMES[:2]
READING = (
    "The protocol of section 5 is simulated message by message, with ten publishers and ten "
    "subscribers that come and go; an event is a client that joins or leaves. A descriptor is one "
    "message, and so are a count, a mark and a signal on a link, though a count is smaller than a "
    "descriptor. PubE and SubE need no counts; on trees per source the messages that build trees "
    "carry them."
)


def signalling_figures() -> tuple[Item, ...]:
    """Messages for each kind of trees, and descriptors stored."""
    return (*(messages(trees) for trees in TREES), stored())


def messages(trees: str) -> Item:
    return Item(
        f"Section 6, {trees} trees",
        "Control messages by purpose",
        tuple(
            Line(scheme, tuple(figure(trees, scheme, purpose) for purpose in PURPOSES))
            for scheme in SCHEMES
        ),
        "messages per event",
        reading=READING if trees == TREES[0] else "",
        numbers=True,
        statements=tuple(message_statements(trees)),
    )


def message_statements(trees: str) -> Iterator[Statement]:
    def below(text: str, own: str, other: str) -> Statement:
        pairs = tuple(
            (figure(trees, "MCM", own), figure(trees, scheme, other)) for scheme in BROADCASTS
        )
        return Statement(text, pairs)

    yield below(
        "Counts are “of relatively low overhead in that only the numbers rather than the "
        "specifications … are needed”: fewer messages than both broadcasts send descriptors",
        "counts and marks",
        "descriptors",
    )
    yield below("Ours: MCM sends fewer descriptors than both", "descriptors", "descriptors")
    yield below("Ours: MCM sends fewer messages in all than both", "all", "all")


def stored() -> Item:
    return Item(
        "Section 6, storage",
        "Descriptors stored in the network",
        tuple(
            Line(scheme, tuple(figure(trees, scheme, "stored", trees) for trees in TREES))
            for scheme in SCHEMES
        ),
        "descriptors",
        numbers=True,
        reading="The mean over the times between two events, when the network has come to rest.",
        statements=tuple(
            Statement(
                f"Ours: MCM stores less than half of what either broadcast stores, {trees} trees",
                tuple(
                    (figure(trees, "MCM", "stored"), figure(trees, scheme, "stored"))
                    for scheme in BROADCASTS
                ),
                0.5,
            )
            for trees in TREES
        ),
    )


def figure(trees: str, scheme: str, key: str, name: str = "") -> Point:
    return Point(churn_name(trees), f"{scheme} {key}", name or key)
