"""Restarts as Spark tasks: the first is the plain run, the best is kept, errors come through."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Flow, World, write_dataset
from pyspark.sql import SparkSession

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.ledger import cost
from fanplan.core.stop import never
from fanplan.data.interest import load_interest
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import KmodesParams, MethodParams
from fanplan.layers.channels.methods import channels_by_method, find_method
from fanplan.layers.channels.published.genetic.params import AtomicParams
from fanplan.layers.channels.stages.restarts import (
    best_of_restarts,
    rebuilt,
    restart_seeds,
    taken_apart,
)

FLOWS = tuple(Flow(frozenset({i % 7, i % 5, i % 3}), float(i % 11)) for i in range(40))
PARAMS = MethodParams(4)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset", World(FLOWS, 7))


def plain(dataset: Path, seed: int) -> tuple[float, ChannelMap]:
    """Cost and map of a run without restarts."""
    method = find_method("random")
    problem = load_interest(dataset, method.rows)
    map = method.planner(problem, PARAMS, seed, never)
    return cost(analytic_ledger(problem, map), PARAMS.weights), map


def test_the_best_of_the_single_runs_is_kept(spark: SparkSession, dataset: Path) -> None:
    seeds = restart_seeds(3, 5)
    runs = [plain(dataset, seed) for seed in seeds]
    costs = [cost for cost, _ in runs]
    result = best_of_restarts(spark, dataset, "random", None, PARAMS, 3, 5)
    assert list(result.costs) == costs
    best = costs.index(min(costs))
    assert (best > 0, result.plan.seed) == (True, seeds[best])
    assert (result.plan.cost, result.plan.map) == runs[best]
    assert list(dataset.parent.iterdir()) == [dataset]


def test_one_restart_is_the_plain_run(spark: SparkSession, dataset: Path) -> None:
    method = find_method("random")
    result = best_of_restarts(spark, dataset, "random", None, PARAMS, 9, 1)
    assert result.plan == channels_by_method(load_interest(dataset, method.rows), method, PARAMS, 9)
    assert result.costs == (result.plan.cost,)


def test_an_error_in_a_task_is_the_planners_own(spark: SparkSession, dataset: Path) -> None:
    params = KmodesParams(1, unicast_limit=0, max_channels_per_subscriber=0)
    with pytest.raises(InfeasibleError, match="max_channels_per_subscriber") as error:
        best_of_restarts(spark, dataset, "kmodes", None, params, 0, 2)
    assert error.value.limit == "max_channels_per_subscriber"
    assert list(dataset.parent.iterdir()) == [dataset]


def test_asked_to_stop_all_searches_end_with_their_best_so_far(
    spark: SparkSession, dataset: Path
) -> None:
    endless = AtomicParams(4, iterations=10_000_000, patience=None)
    result = best_of_restarts(
        spark, dataset, "genetic-atomic", None, endless, 0, 2, stop=lambda best: True
    )
    assert len(result.costs) == 2
    assert result.plan.ledger.missed == 0
    assert list(dataset.parent.iterdir()) == [dataset]


def test_errors_keep_their_problems_on_the_way() -> None:
    error = InputError([Problem("a", "is wrong", "Mend it"), Problem("b", "too", "Mend it")])
    other = rebuilt(taken_apart(error))
    assert isinstance(other, InputError)
    assert (other.problems, str(other)) == (error.problems, str(error))


def test_seeds_of_restarts_differ_and_do_not_depend_on_their_number() -> None:
    seeds = restart_seeds(3, 50)
    assert seeds[0] == 3
    assert len(set(seeds)) == 50
    assert restart_seeds(3, 10) == seeds[:10]


def test_at_least_one_restart_is_asked_for(spark: SparkSession, dataset: Path) -> None:
    with pytest.raises(InputError, match="restarts: 0 is too few"):
        best_of_restarts(spark, dataset, "random", None, PARAMS, 0, 0)
