"""Figure 6 of the paper: right on its example, invalid as printed elsewhere, right if repaired."""

from __future__ import annotations

import numpy as np
from marking_worlds import (
    FIGURE_7_LINKS,
    figure_7,
    letters,
    network,
    random_source_problem,
    tree_table,
)

from fanplan.layers.marking.ledger import descriptor_counts, violations
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.problem.trees import given_problem
from fanplan.layers.marking.published import (
    max_flow,
    printed_marking,
    printed_pairs,
    repaired_marking,
)
from fanplan.layers.marking.search.marking import exact_marking, whole_gains


def unprinted() -> MarkingProblem:
    """A problem that the printed algorithm marks wrongly.

    CA gains 1 and AD loses 1, so it makes both s-links. That AD requires DC, which loses 3, is
    said by another tree than that in which CA requires AD.
    """
    return given_problem(
        network("ACD", None, {"A": 1, "C": 3}, {"A": 1, "C": 4, "D": 1}),
        tree_table(A="AD DC", C="CA AD"),
    )


def test_figure_7_has_four_pairs_and_a_maximum_flow_of_2() -> None:
    problem = figure_7()
    gain = whole_gains(problem, descriptor_counts(problem))
    pairs = printed_pairs(problem, gain)
    name = [FIGURE_7_LINKS[ends] for i in range(7) for ends in letters(problem, np.array([i]))]
    assert {name[t] + name[q] for t, q in pairs} == {"ad", "bd", "af", "bf"}
    assert max_flow(gain, pairs) == 2
    assert {name[t] for t in (~printed_marking(problem)).nonzero()[0]} == {"e", "g"}


def test_as_printed_it_gives_an_invalid_marking() -> None:
    problem = unprinted()
    printed = printed_marking(problem)
    assert letters(problem, printed) == {"DC"}
    assert letters(problem, violations(problem, printed)) == {"DC"}
    best = exact_marking(problem)
    assert violations(problem, best.publish).size == 0
    assert (letters(problem, best.publish), best.cost) == ({"AD", "CA", "DC"}, 8)


def test_repaired_it_gives_our_marking_and_as_printed_often_an_invalid_one() -> None:
    invalid = 0
    for seed in range(40):
        problem = random_source_problem(seed, 7)
        assert (repaired_marking(problem) == exact_marking(problem).publish).all()
        invalid += violations(problem, printed_marking(problem)).size > 0
    assert invalid >= 5
