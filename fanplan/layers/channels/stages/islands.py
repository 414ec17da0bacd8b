"""Islands of the genetic planner: populations apart as Spark tasks, whose best maps migrate.

An epoch is one Spark job. Its tasks read the states that the epoch before left in a folder beside
the dataset, let the neighbour's best map in, and go on; the driver holds one state at a time.
"""

from __future__ import annotations

import math
import pickle
import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fanplan.core.errors import InputError, Problem
from fanplan.core.progress import Progress, Stage, quiet
from fanplan.core.stop import AnyOf, FileStop, Stop, TimeLimit, never
from fanplan.data.tasks import run_tasks
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.genetic import (
    GeneticParams,
    State,
    advance,
    best,
    finished_map,
    first_state,
    migrate,
)
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem
from fanplan.layers.channels.stages.restarts import STOP, shared_folder, tell_stop

EPOCH = 50
"""Generations between two migrations."""


@dataclass(frozen=True)
class Evolved:
    """The best map of all islands, and each island's own best in the measure of the search."""

    map: ChannelMap
    costs: tuple[float, ...]


def evolve_islands(
    spark: SparkSession,
    problem: SubscriptionProblem,
    params: GeneticParams,
    seed: int,
    islands: int,
    dataset: Path,
    time: float | None = None,
    progress: Progress | None = None,
    stop: Stop = never,
) -> Evolved:
    """Search on so many islands; one island alone is the plain search with that seed.

    ``time`` is a limit in seconds for all epochs together; when ``stop`` says so, the islands end
    with their best so far. The states lie beside the dataset.
    """
    if islands < 1:
        raise InputError(Problem("restarts", f"{islands} is too few", "Use 1 or more"))
    stage = (progress or quiet()).stage(f"{islands} islands")
    with stage as told, shared_folder(dataset.absolute(), "islands") as folder:
        for island in range(islands):
            save_state(first_state(problem, params, seed, island), state_path(folder, 0, island))
        last, costs = run_epochs(spark, folder, params, islands, time, told, stop)
        winner = load_state(state_path(folder, last, 0))
        for island in range(1, islands):
            winner = best([winner, load_state(state_path(folder, last, island))])
    return Evolved(finished_map(problem, winner), costs)


def run_epochs(
    spark: SparkSession,
    folder: Path,
    params: GeneticParams,
    islands: int,
    time: float | None,
    told: Stage,
    stop: Stop,
) -> tuple[int, tuple[float, ...]]:
    """Epochs until all islands are finished or time is over: the last one, and the costs."""
    began, epochs = clock.monotonic(), max(1, math.ceil(params.iterations / EPOCH))
    for epoch in range(epochs):
        left = None if time is None else time - (clock.monotonic() - began)
        shared = {"folder": str(folder), "epoch": epoch, "islands": islands, "seconds": left}
        items = [shared | {"island": island} for island in range(islands)]
        results = run_tasks(spark, advance_island, items, meanwhile=lambda: tell_stop(folder, stop))
        costs = tuple(result["cost"] for result in results)
        told.update(best=min(costs))
        told.note(f"epoch {epoch + 1} of {epochs}")
        forget(folder, epoch, islands)
        late = time is not None and clock.monotonic() - began >= time
        if late or (folder / STOP).exists() or all(result["finished"] for result in results):
            break
    return epoch + 1, costs


def advance_island(item: dict[str, Any]) -> dict[str, Any]:
    """In a task: one epoch of one island, from the files of the epoch before to one of this."""
    folder, epoch, island = Path(item["folder"]), item["epoch"], item["island"]
    state = load_state(state_path(folder, epoch, island))
    if epoch > 0 and item["islands"] > 1:
        neighbour = load_state(state_path(folder, epoch, (island - 1) % item["islands"]))
        _, state = migrate([neighbour, state])
    limit = never if item["seconds"] is None else TimeLimit(item["seconds"])
    state = advance(state, EPOCH, AnyOf(limit, FileStop(folder / STOP)))
    save_state(state, state_path(folder, epoch + 1, island))
    return {"cost": state.best_cost, "finished": state.finished}


def forget(folder: Path, epoch: int, islands: int) -> None:
    """Remove the states that an epoch began with."""
    for island in range(islands):
        state_path(folder, epoch, island).unlink()


def state_path(folder: Path, epoch: int, island: int) -> Path:
    """Where an island's state at the start of an epoch lies."""
    return folder / f"{epoch}-{island}.pickle"


def save_state(state: State, path: Path) -> None:
    path.write_bytes(pickle.dumps(state))


def load_state(path: Path) -> State:
    state: State = pickle.loads(path.read_bytes())
    return state
