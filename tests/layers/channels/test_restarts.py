"""Restarts as Spark tasks: the first is the plain run, the best is kept, errors come through."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from datasets import Flow, World, write_dataset
from pyspark.sql import SparkSession

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.ledger import cost
from fanplan.core.owned import HELD
from fanplan.core.stop import Stop, Watch, never
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.interest import load_interest
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import KmodesParams, MethodParams
from fanplan.layers.channels.methods import Run, channels_by_method, find_method
from fanplan.layers.channels.published.genetic.params import AtomicParams
from fanplan.layers.channels.stages.restarts import (
    JOB,
    SEAL_BYTES,
    Seal,
    Searched,
    best_of_restarts,
    rebuilt,
    restart_seeds,
    shared_folder,
    taken_apart,
)
from fanplan.plan.made import Job

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


def restarted(
    dataset: Path, name: str, params: MethodParams, seed: int, restarts: int, stop: Stop = never
) -> Searched:
    job = Job(Dataset(dataset), seed, Watch(None, stop), Engine("local[2]"))
    method = find_method(name)
    return best_of_restarts(job, Run(method, params, method.rows), restarts)


def test_the_best_of_the_single_runs_is_kept(spark: SparkSession, dataset: Path) -> None:
    seeds = restart_seeds(3, 5)
    runs = [plain(dataset, seed) for seed in seeds]
    costs = [cost for cost, _ in runs]
    plan, found = restarted(dataset, "random", PARAMS, 3, 5)
    assert list(found) == costs
    best = costs.index(min(costs))
    assert (best > 0, plan.seed) == (True, seeds[best])
    assert (plan.cost, plan.map) == runs[best]
    assert list(dataset.parent.iterdir()) == [dataset]


def test_one_restart_is_the_plain_run(spark: SparkSession, dataset: Path) -> None:
    method = find_method("random")
    plan, costs = restarted(dataset, "random", PARAMS, 9, 1)
    assert plan == channels_by_method(load_interest(dataset, method.rows), method, PARAMS, 9)
    assert costs == (plan.cost,)


def test_an_error_in_a_task_is_the_planners_own(spark: SparkSession, dataset: Path) -> None:
    params = KmodesParams(1, unicast_limit=0, max_channels_per_subscriber=0)
    with pytest.raises(InfeasibleError, match="max_channels_per_subscriber") as error:
        restarted(dataset, "kmodes", params, 0, 2)
    assert error.value.limit == "max_channels_per_subscriber"
    assert list(dataset.parent.iterdir()) == [dataset]


def test_asked_to_stop_all_searches_end_with_their_best_so_far(
    spark: SparkSession, dataset: Path
) -> None:
    endless = AtomicParams(4, iterations=10_000_000, patience=None)
    plan, costs = restarted(dataset, "genetic-atomic", endless, 0, 2, lambda best: True)
    assert len(costs) == 2
    assert plan.ledger.missed == 0
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


class Harmful:
    """What a stranger would like to be run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_what_others_put_in_the_folder_is_not_unpacked(tmp_path: Path) -> None:
    seal, done = Seal.new(), tmp_path / "done"
    seal.write(tmp_path / JOB, ["ours"])
    assert seal.read(tmp_path / JOB) == ["ours"]
    kept = (tmp_path / JOB).read_bytes()
    harm = pickle.dumps(Harmful(done))
    for content in (harm, kept[:SEAL_BYTES] + harm):
        (tmp_path / JOB).write_bytes(content)
        with pytest.raises(InputError, match="changed by somebody else"):
            seal.read(tmp_path / JOB)
    # Nor is one of our own files taken for another, or one of another run for ours.
    (tmp_path / "0-1.state").write_bytes(kept)
    with pytest.raises(InputError):
        seal.read(tmp_path / "0-1.state")
    (tmp_path / JOB).write_bytes(kept)
    with pytest.raises(InputError):
        Seal.new().read(tmp_path / JOB)
    assert not done.exists()
    assert seal.key.hex() not in repr(seal)


def test_a_killed_search_leaves_no_folder_to_the_next(tmp_path: Path) -> None:
    with shared_folder(tmp_path / "dataset", "restarts") as first:
        with shared_folder(tmp_path / "dataset", "restarts") as second:
            assert first.is_dir()
            assert second.stat().st_mode & 0o777 == 0o700
        # As if its process had been killed.
        os.close(HELD.pop(first))
        with shared_folder(tmp_path / "dataset", "restarts"):
            assert not first.exists()
