"""Independent restarts of a channel planner, each a Spark task; the best one is kept.

Tasks leave their maps in a folder beside the dataset and report the cost, so that of all maps only
the best comes to the driver.
"""

from __future__ import annotations

import math
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from fanplan.core.errors import FanplanError, InputError, Problem
from fanplan.core.ledger import cost
from fanplan.core.progress import Progress, quiet
from fanplan.core.stop import AnyOf, FileStop, Stop, TimeLimit, never
from fanplan.data.interest import Rows, load_interest
from fanplan.data.tasks import PAYLOAD, run_tasks
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelLayer, ChannelMap, pairs
from fanplan.layers.channels.methods import find_method, planned
from fanplan.layers.channels.params import ChannelParams, require_enough_flows, require_traffic

JOB = "job.pickle"
STOP = "stop"
"""A file in the shared folder that ends all searches; they keep their best so far."""


@dataclass(frozen=True)
class Job:
    """What all restarts have in common. ``time`` is a limit in seconds for each of them."""

    dataset: Path
    method: str
    second_step: str | None
    params: ChannelParams
    rows: Rows
    time: float | None = None


@dataclass(frozen=True)
class Restarted:
    """The best plan, with the seed of its own restart, and the costs of all restarts in order."""

    plan: ChannelLayer
    costs: tuple[float, ...]


def best_of_restarts(
    spark: SparkSession,
    dataset: Path,
    method: str,
    second_step: str | None,
    params: ChannelParams,
    seed: int,
    restarts: int,
    time: float | None = None,
    progress: Progress | None = None,
    rows: Rows | None = None,
    stop: Stop = never,
) -> Restarted:
    """Plan so many times from different seeds; of equally good plans the first is kept.

    A plain run with the seed that the plan records gives the same plan. The problem must fit into
    the memory of each task. When ``stop`` says so, all searches end with their best so far.
    """
    if restarts < 1:
        raise InputError(Problem("restarts", f"{restarts} is too few", "Use 1 or more"))
    found, seeds = find_method(method, second_step), restart_seeds(seed, restarts)
    job = Job(dataset.absolute(), method, second_step, params, rows or found.rows, time)
    problem = load_interest(dataset, job.rows)
    require_traffic(problem)
    require_enough_flows(problem, params.channels)
    stage = (progress or quiet()).stage(f"{restarts} restarts of {found.name}")
    with stage as told, shared_folder(job.dataset, "restarts") as folder:
        (folder / JOB).write_bytes(pickle.dumps(job))
        costs = run_restarts(spark, folder, seeds, told.note, stop)
        best = int(np.argmin(costs))
        told.update(best=costs[best])
        map = load_map(folder / f"{best}.npz")
    return Restarted(planned(problem, found, params, seeds[best], map), costs)


def restart_seeds(seed: int, restarts: int) -> list[int]:
    """A seed for each restart; the first is the given one, so that one restart is a plain run."""
    others = [np.random.SeedSequence([seed, number]) for number in range(1, restarts)]
    return [seed, *(int(other.generate_state(1)[0]) for other in others)]


@contextmanager
def shared_folder(dataset: Path, purpose: str) -> Iterator[Path]:
    """A folder for the length of a ``with`` block that whoever sees the dataset sees too."""
    folder = dataset.with_name(f"{dataset.name}.{purpose}-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
    except OSError as error:
        what = f"cannot be written ({error.strerror})"
        remedy = "Copy the dataset to where there is room beside it"
        raise InputError(Problem(str(folder), what, remedy)) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_restarts(
    spark: SparkSession, folder: Path, seeds: list[int], note: Callable[[str], None], stop: Stop
) -> tuple[float, ...]:
    """The cost of each restart; an error in one of them is raised here."""
    items = [{"folder": str(folder), "number": i, "seed": s} for i, s in enumerate(seeds)]
    results = run_tasks(
        spark,
        restart,
        items,
        lambda done: note(f"{done} of {len(seeds)}"),
        lambda: tell_stop(folder, stop),
    )
    for result in results:
        if PAYLOAD in result:
            raise rebuilt(result[PAYLOAD])
    return tuple(result["cost"] for result in results)


def tell_stop(folder: Path, stop: Stop) -> None:
    """Pass on to the tasks that the search must end."""
    if stop(math.inf):
        (folder / STOP).touch()


def restart(item: dict[str, Any]) -> dict[str, Any]:
    """In a task: one restart, which leaves its map in the folder and reports its cost."""
    folder = Path(item["folder"])
    job: Job = pickle.loads((folder / JOB).read_bytes())
    problem = load_interest(job.dataset, job.rows)
    limit = never if job.time is None else TimeLimit(job.time)
    stop = AnyOf(limit, FileStop(folder / STOP))
    planner = find_method(job.method, job.second_step).planner
    try:
        map = planner(problem, job.params, item["seed"], stop)
    except FanplanError as error:
        return {PAYLOAD: taken_apart(error)}
    save_map(map, folder / f"{item['number']}.npz")
    return {"cost": cost(analytic_ledger(problem, map), job.params.weights)}


def taken_apart(error: FanplanError) -> bytes:
    """An error as bytes. Pickle alone would make a new one from its text."""
    return pickle.dumps((type(error), error.args, vars(error)))


def rebuilt(content: bytes) -> FanplanError:
    kind, args, state = pickle.loads(content)
    error: FanplanError = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def save_map(map: ChannelMap, path: Path) -> None:
    """Write a map as plain arrays."""
    relations = (map.assigned, map.members, map.unicast)
    arrays = [side for relation in relations for side in (relation.left, relation.right)]
    np.savez(path, np.array(map.channels), *arrays)


def load_map(path: Path) -> ChannelMap:
    with np.load(path) as file:
        channels, *sides = (file[f"arr_{i}"] for i in range(7))
    relations = [pairs(sides[i], sides[i + 1]) for i in (0, 2, 4)]
    return ChannelMap(int(channels), *relations)
