"""Marking again after clients came or went: always the exact marking, with little solved anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from marking_worlds import mesh, ring_trees

from fanplan.layers.marking.ledger import violations
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.problem.trees import given_problem, shared_problem, source_problem
from fanplan.layers.marking.search import marking as marking_search
from fanplan.layers.marking.search.cut import largest_closure
from fanplan.layers.marking.search.marking import exact_marking, remark
from fanplan.layers.marking.search.requirements import Requirements

Pose = Callable[[MarkedNetwork], MarkingProblem]


def changed(world: MarkedNetwork, rng: np.random.Generator) -> MarkedNetwork:
    """One node has other descriptors: of publishers or of subscribers, often none at all."""
    counts = np.stack((world.published, world.subscribed))
    counts[rng.integers(2), rng.integers(1, world.size)] = rng.integers(0, 6) * rng.integers(2)
    return replace(world, published=counts[0], subscribed=counts[1])


def given_world() -> tuple[MarkedNetwork, Pose]:
    world, trees = ring_trees(3, nodes=8)
    return world, lambda network: given_problem(network, trees)


def worlds() -> dict[str, tuple[MarkedNetwork, Pose]]:
    return {
        "shared": (mesh(1), lambda network: shared_problem(network, "n12")),
        "per source": (mesh(1), source_problem),
        "given": given_world(),
    }


@pytest.mark.parametrize(
    ("kind", "steps"), [("shared", 1000), ("per source", 1000), ("given", 1000)]
)
def test_after_each_join_and_leave_it_is_the_exact_marking(kind: str, steps: int) -> None:
    world, pose = worlds()[kind]
    rng = np.random.default_rng(5)
    problem = pose(world)
    marking = exact_marking(problem)
    entangled = 0
    for _ in range(steps):
        world = changed(world, rng)
        new = pose(world)
        marking = remark(problem, marking, new)
        problem, best = new, exact_marking(new)
        assert not violations(new, marking.publish).size
        assert (marking.publish == best.publish).all()
        assert (marking.part == best.part).all()
        assert marking.cost == best.cost
        entangled += bool((best.part >= 0).any())
    assert (entangled > 30) == (kind != "shared")


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Filled with how many links each call has solved anew."""
    sizes: list[int] = []

    def noted(relation: Requirements, gain: np.ndarray, parts: np.ndarray) -> np.ndarray:
        sizes.append(len(gain))
        return largest_closure(relation, gain, parts)

    monkeypatch.setattr(marking_search, "largest_closure", noted)
    return sizes


def test_parts_that_stay_as_they_were_are_not_solved_again(solved: list[int]) -> None:
    world, pose = worlds()["per source"]
    rng = np.random.default_rng(2)
    problem = pose(world)
    marking = exact_marking(problem)
    solved.clear()
    assert (remark(problem, marking, problem).publish == marking.publish).all()
    assert solved == [0]
    entangled = 0
    for _ in range(60):
        world = changed(world, rng)
        new = pose(world)
        problem, marking = new, remark(problem, marking, new)
        entangled += int((marking.part >= 0).sum())
    assert 0 < sum(solved) < entangled


def test_a_problem_with_other_trees_is_solved_all_the_same() -> None:
    world, _ = worlds()["shared"]
    shared, source = shared_problem(world, "n12"), source_problem(world)
    for old, new in ((shared, source), (source, shared)):
        marking = remark(old, exact_marking(old), new)
        assert (marking.publish == exact_marking(new).publish).all()


def test_prices_of_storing_that_differ_are_heeded() -> None:
    world = replace(worlds()["shared"][0], storing=(np.arange(25) % 3).astype(float))
    problem = shared_problem(world, "n12")
    best = exact_marking(problem)
    assert remark(problem, best, problem).cost == best.cost
