"""Marks that are kept: the fewest changes that make them valid, against all markings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from marking_worlds import all_markings, random_shared_problem, random_source_problem

from fanplan.layers.marking.ledger import cost_of_marks, descriptor_counts, violations
from fanplan.layers.marking.search.marking import exact_marking, kept_marking


@pytest.mark.parametrize("make", [random_source_problem, random_shared_problem])
@pytest.mark.parametrize("priced", [False, True])
def test_the_fewest_marks_change_and_the_rest_costs_least(make: Any, priced: bool) -> None:
    changes = 0
    for seed in range(12):
        problem = make(seed, nodes=5, priced=priced)
        if problem.size > 9:
            continue
        rng, counts = np.random.default_rng(seed), descriptor_counts(problem)
        publish, known = rng.random((2, problem.size)) < 0.6
        kept = kept_marking(problem, counts, publish, known)
        ranked = [
            ((known & (other != publish)).sum(), cost_of_marks(problem, counts, other))
            for other in all_markings(problem.size)
            if not violations(problem, other).size
        ]
        own = (known & (kept != publish)).sum(), cost_of_marks(problem, counts, kept)
        assert (own, violations(problem, kept).size) == (min(ranked), 0)
        changes += own[0]
    assert changes > 0


def test_nothing_known_is_the_best_marking_and_large_prices_have_room() -> None:
    problem = random_source_problem(4)
    problem.sending[:] = np.linspace(0.1, 3e9, problem.size)
    counts, none = descriptor_counts(problem), np.zeros(problem.size, bool)
    best = exact_marking(problem)
    assert kept_marking(problem, counts, none, none).tolist() == best.publish.tolist()
    assert kept_marking(problem, counts, best.publish, ~none).tolist() == best.publish.tolist()
