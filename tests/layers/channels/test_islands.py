"""Islands as Spark tasks: the same as islands in one process; one island is the plain search."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanplan.core.stop import Watch, never
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.channels.lone import Kept, tidied
from fanplan.layers.channels.methods import METHODS, Run
from fanplan.layers.channels.published.genetic.evolve import (
    Generation,
    advance,
    best_generation,
    migrate,
)
from fanplan.layers.channels.published.genetic.params import GeneticParams
from fanplan.layers.channels.published.genetic.plan import finished_map, first_state, genetic
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    generated_subscriptions,
)
from fanplan.layers.channels.stages.restarts import EPOCH, Searched, evolve_islands
from fanplan.plan.made import Job
from fanplan.workload.generators.subjects import SubjectsParams, generate_subjects

PARAMS = GeneticParams(4, iterations=2 * EPOCH + 10)


@pytest.fixture(scope="module")
def problem() -> SubscriptionProblem:
    return generated_subscriptions(
        generate_subjects(SubjectsParams(subjects=50, subscribers=12), 1), 10.0
    )


def here(problem: SubscriptionProblem, islands: int) -> list[Generation]:
    """The islands' last states, evolved in this process."""
    states = [first_state(problem, PARAMS, 3, island) for island in range(islands)]
    for epoch in range(3):
        states = [advance(state, EPOCH) for state in (migrate(states) if epoch else states)]
    return states


def evolved(
    problem: SubscriptionProblem, folder: Path, islands: int, time: float | None = None
) -> Searched:
    job = Job(Dataset(folder / "dataset"), 3, Watch(time, never), Engine("local[2]"))
    return evolve_islands(job, Run(METHODS["genetic"], PARAMS, "flow"), problem, islands)


def test_islands_elsewhere_are_those_here(
    spark: SparkSession, tmp_path: Path, problem: SubscriptionProblem
) -> None:
    states = here(problem, 3)
    plan, costs = evolved(problem, tmp_path, 3)
    assert costs == tuple(state.best_cost for state in states)
    assert plan.map == finished_map(problem, best_generation(states))
    assert list(tmp_path.iterdir()) == []


def test_one_island_is_the_plain_search(
    spark: SparkSession, tmp_path: Path, problem: SubscriptionProblem
) -> None:
    plan, _ = evolved(problem, tmp_path, 1)
    assert plan.map == genetic(problem, PARAMS, 3, never)


def test_without_time_there_is_a_map_all_the_same(
    spark: SparkSession, tmp_path: Path, problem: SubscriptionProblem
) -> None:
    plan, _ = evolved(problem, tmp_path, 1, time=1e-9)
    first = finished_map(problem, first_state(problem, PARAMS, 3))
    assert plan.map == tidied(problem.interest, first, Kept())
