"""Markings: figures of the paper, and brute force over all markings of small random problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marking_worlds import (
    FIGURE_7_LINKS,
    Literal,
    all_markings,
    figure_2,
    figure_5,
    figure_7,
    letters,
    network,
    random_shared_problem,
    random_source_problem,
    tree_table,
)

from fanplan.core.errors import InputError
from fanplan.layers.marking.ledger import (
    cost_of_marks,
    descriptor_counts,
    link_costs,
    pub_everywhere,
    sub_everywhere,
    violations,
)
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.problem.trees import given_problem, shared_problem, source_problem
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.marking import exact_marking, shared_marking, whole_gains
from fanplan.layers.marking.search.requirements import gathered_pairs, requirements_of, untangled

SMALL = 12
"""Links that brute force still takes in no time: 4,096 markings."""

MAKERS = (random_source_problem, random_shared_problem)


def small_problems(priced: bool) -> list[MarkingProblem]:
    """More with a tree per source: few of these are entangled."""
    made = [random_source_problem(seed, nodes, priced) for nodes in (4, 6) for seed in range(200)]
    made += [random_shared_problem(seed, 6, priced) for seed in range(60)]
    return [problem for problem in made if problem.size <= SMALL]


def optima(problem: MarkingProblem) -> tuple[float, np.ndarray]:
    """The least cost of a valid marking, and all markings that have it, by brute force."""
    literal, markings = Literal(problem), all_markings(problem.size)
    number = {link: i for i, link in enumerate(literal.links)}
    for t, q in literal.upstream():
        markings = markings[markings[:, number[t]] | ~markings[:, number[q]]]
    costs = np.where(markings, *link_costs(problem, descriptor_counts(problem))).sum(axis=1)
    return costs.min(), markings[costs == costs.min()]


# ---- figures


@pytest.mark.parametrize("make", [partial(shared_problem, core="B"), source_problem])
def test_figure_2_costs_8_6_and_5(make: Callable[..., MarkingProblem]) -> None:
    problem = make(figure_2())
    counts, best = descriptor_counts(problem), exact_marking(problem)
    told = sub_everywhere(problem, counts), pub_everywhere(problem, counts), best.cost
    assert told == (8, 6, 5)
    assert letters(problem, best.publish) == {"AB", "BD"}


def test_figure_5_violates_monotonicity_and_is_still_solved() -> None:
    problem = figure_5()
    best = exact_marking(problem)
    sigma = {ends: best.sigma[i] for i in range(7) for ends in letters(problem, np.arange(7) == i)}
    assert (sigma["AB"], sigma["BC"]) == (4, 2)
    greedy = best.sigma < best.tau
    assert letters(problem, violations(problem, greedy)) == {"BC", "BD"}
    assert letters(problem, ~best.publish) == set()
    assert best.cost == 16
    assert letters(problem, best.part >= 0) == {"AB", "BC", "BD", "CS", "DS"}


def test_figure_7_has_s_links_e_and_g() -> None:
    problem = figure_7()
    best = exact_marking(problem)
    assert {FIGURE_7_LINKS[ends] for ends in letters(problem, ~best.publish)} == {"e", "g"}


# ---- brute force


@pytest.mark.parametrize("priced", [False, True])
def test_no_valid_marking_costs_less_and_ties_are_s_links(priced: bool) -> None:
    problems = small_problems(priced)
    assert len(problems) > 300
    entangled = 0
    for problem in problems:
        least, markings = optima(problem)
        best = exact_marking(problem)
        assert best.cost == least
        assert (best.publish == markings.all(axis=0)).all()
        entangled += bool((best.part >= 0).any())
    assert entangled > 20


def test_greedy_is_best_on_shared_trees() -> None:
    for seed in range(100):
        problem = random_shared_problem(seed, 9)
        greedy, exact = shared_marking(problem), exact_marking(problem)
        assert (greedy.publish == exact.publish).all()
        assert greedy.cost == exact.cost
        assert (exact.part < 0).all()


@pytest.mark.parametrize(
    "make", [figure_7, partial(random_shared_problem, 0, priced=True)], ids=["sources", "prices"]
)
def test_greedy_refuses_what_it_cannot_solve(make: Callable[[], MarkingProblem]) -> None:
    with pytest.raises(InputError, match="cannot be decided each on its own"):
        shared_marking(make())


@pytest.mark.parametrize("make", MAKERS)
def test_in_parts_or_as_a_whole_the_marking_is_the_same(
    make: Callable[..., MarkingProblem],
) -> None:
    for seed in range(60):
        problem = make(seed, 12, priced=seed % 2 == 0)
        relation = requirements_of(problem)
        gain = np.zeros(relation.size, np.int64)
        gain[: problem.size] = whole_gains(problem, descriptor_counts(problem))
        whole = largest_closure(relation, gain, np.array([0, relation.size]))
        assert (exact_marking(problem).publish == ~whole[: problem.size]).all()


@st.composite
def closures(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[int]]:
    """Requirements of up to 8 items, cycles and all, and gains."""
    gain = draw(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
    item = st.integers(0, len(gain) - 1)
    return draw(st.lists(st.tuples(item, item), max_size=14)), gain


@settings(max_examples=150, deadline=None)
@given(closures())
def test_the_largest_closure_is_that_of_brute_force(
    case: tuple[list[tuple[int, int]], list[int]],
) -> None:
    pairs, gain = case
    sets = all_markings(len(gain))
    for owner, item in pairs:
        sets = sets[~sets[:, owner] | sets[:, item]]
    most = (sets * gain).sum(axis=1)
    owners, items = np.array(pairs, np.int64).reshape(-1, 2).T
    relation = gathered_pairs(owners, items, len(gain))
    wanted = sets[most == most.max()].any(axis=0)
    parts = np.array([0, len(gain)])
    assert (largest_closure(relation, np.array(gain), parts) == wanted).all()
    publish, knots = untangled(relation, np.array(gain))
    free = np.delete(np.arange(len(gain)), knots.items)
    assert (~publish[free] == wanted[free]).all()


# ---- costs


@pytest.mark.parametrize("make", MAKERS)
def test_counts_and_costs_are_those_of_the_equations(make: Callable[..., MarkingProblem]) -> None:
    for seed in range(50):
        problem = make(seed, 8, priced=seed % 2 == 0)
        literal, counts = Literal(problem), descriptor_counts(problem)
        all_p, all_s = (dict.fromkeys(literal.links, mark) for mark in (True, False))
        assert counts.sigma.tolist() == [literal.sigma(t, all_p) for t in literal.links]
        assert counts.tau.tolist() == [literal.tau(t, all_s) for t in literal.links]
        everywhere = np.ones(problem.size, bool)
        assert pub_everywhere(problem, counts) == literal.cost(everywhere)
        assert sub_everywhere(problem, counts) == literal.cost(~everywhere)


@pytest.mark.parametrize("make", MAKERS)
def test_lemma_1_the_cost_of_valid_markings_is_that_of_equation_2(
    make: Callable[..., MarkingProblem],
) -> None:
    for seed in range(20):
        problem = make(seed, 5, priced=True)
        literal, counts = Literal(problem), descriptor_counts(problem)
        for publish in optima(problem)[1][:5]:
            assert cost_of_marks(problem, counts, publish) == literal.cost(publish)


@pytest.mark.parametrize("make", MAKERS)
def test_violations_are_found_where_and_only_where_equation_1_fails(
    make: Callable[..., MarkingProblem],
) -> None:
    rng = np.random.default_rng(0)
    valid = 0
    for seed in range(60):
        problem = make(seed, 5)
        literal = Literal(problem)
        for publish in rng.random((5, problem.size)) < 0.5:
            assert literal.valid(publish) == (violations(problem, publish).size == 0)
            valid += literal.valid(publish)
    assert 10 < valid < 290


def test_a_subscriber_behind_a_link_in_several_trees_counts_once() -> None:
    world = network("PQRXYSUV", None, dict.fromkeys("PQR", 1), {"S": 5, "U": 1, "V": 1})
    trees = tree_table(P="PX XY YS PU PV", Q="QX XY YU QS QV", R="RX XY YU YV RS")
    problem = given_problem(world, trees)
    both = (problem.tail == 3) & (problem.head == 4)
    assert descriptor_counts(problem).tau[both].tolist() == [7]


def test_prices_that_are_not_whole_are_solved_too() -> None:
    for seed in range(60):
        problem = random_source_problem(seed, 5, priced=True)
        if problem.size > SMALL:
            continue
        rng = np.random.default_rng(seed)
        problem = replace(problem, sending=rng.random(problem.size) * 10.0 ** rng.integers(-9, 9))
        assert exact_marking(problem).cost == pytest.approx(optima(problem)[0], rel=1e-12)


def test_nothing_to_mark() -> None:
    problem = source_problem(replace(figure_2(), subscribed=np.array([1, 0, 0, 0])))
    best = exact_marking(problem)
    assert (best.cost, best.publish.size) == (0.0, 0)
