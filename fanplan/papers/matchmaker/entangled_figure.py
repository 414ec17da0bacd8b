"""What section 5 of Ge et al. (2002) says of trees per source: links are seldom entangled."""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.papers.experiment import Item, Line, Point, Statement
from fanplan.papers.matchmaker.settings import network_name

KINDS = {
    "not monotone": "σ falls or τ rises along a tree",
    "greedy invalid": "the cheaper marks are no valid marking",
    "entangled": "links must be decided together",
}
SMALL = 0.1
"""A “small fraction”."""


def entangled() -> Item:
    """How many networks, and how many of their links."""
    return Item(
        "Section 5",
        "Violations of monotonicity, per-source trees",
        tuple(
            Line(text, tuple(share(kind, what) for what in ("networks", "links")))
            for kind, text in KINDS.items()
        ),
        "share",
        reading=(
            "A violation is harmless unless it makes the cheaper marks of the links invalid, and "
            "only then links are entangled. Shares of links are of those networks that have any. "
            "The text counts nodes. “Small” is read as less than a tenth."
        ),
        statements=tuple(statements()),
        numbers=True,
    )


def statements() -> Iterator[Statement]:
    for kind in ("not monotone", "entangled"):
        yield Statement(
            "“Only a small fraction of the randomly generated samples violate the monotonicity "
            f"property”: {KINDS[kind]}",
            ((share(kind, "networks"), SMALL),),
        )
        yield Statement(
            "“Within such samples, only a small fraction of nodes are actually involved”: "
            f"{KINDS[kind]}",
            ((share(kind, "links"), SMALL),),
        )


def share(kind: str, what: str) -> Point:
    return Point(network_name(), f"per-source {kind} {what}", what)
