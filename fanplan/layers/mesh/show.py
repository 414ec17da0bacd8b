"""How a person is told of a mesh."""

from __future__ import annotations

from fanplan.plan.made import Answer, Facts, Grid, Shown, in_words

WORDS = {
    "connect": "connected are those of",
    "nodes": "subscribers that share something",
    "topics": "topics or flows that several want",
    "wants": "subscribers of these, added up",
    "separate": "links of a tree for each topic alone",
    "degree_mean": "links of a subscriber, mean",
    "degree_max": "most links of a subscriber",
    "bound": "no mesh has fewer links than",
    "degree_bound": "in every mesh somebody has at least",
    "over_bound_percent": "links above their bound %",
    "ended_early_by": "ended early by",
}
COMPARED = {
    "method": "method",
    "links": "links",
    "degree_mean": "mean links",
    "degree_max": "most links",
}


def show_mesh(answer: Answer) -> Shown:
    """The mesh, and beside it others, most links first."""
    yield Facts("Mesh, checked", in_words(answer.facts, WORDS))
    if answer.compared:
        rows = sorted([*answer.compared, answer.facts], key=lambda row: -row["links"])
        yield Grid(
            "Compared", tuple(COMPARED.values()), [[row[n] for n in COMPARED] for row in rows]
        )


SHOWS = {"mesh": show_mesh}
