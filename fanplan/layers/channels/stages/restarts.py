"""Several searches at once as Spark tasks: independent restarts, or islands whose maps migrate.

Restarts leave their maps in a folder beside the dataset and report the cost, so that of all maps
only the best comes to the driver. Islands are populations of the genetic planner. An epoch is one
Spark job: its tasks read the states that the epoch before left in such a folder, let the
neighbour's best map in, and go on; the driver holds one state at a time.
"""

from __future__ import annotations

import hmac
import math
import pickle
import secrets
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from fanplan.core.errors import FanplanError, InputError, Problem
from fanplan.core.failures import of_system
from fanplan.core.ledger import cost
from fanplan.core.owned import claim_in, release, sweep
from fanplan.core.progress import StageProgress
from fanplan.core.stop import AnyOf, FileStop, Stop, TimeLimit, Watch, never
from fanplan.data.interest import Rows, load_interest
from fanplan.data.tasks import PAYLOAD, run_tasks
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.lone import kept_by, tidied
from fanplan.layers.channels.map import ChannelMap, ChannelsSection, map_pairs
from fanplan.layers.channels.method_params import (
    MethodParams,
    require_enough_flows,
    require_traffic,
)
from fanplan.layers.channels.methods import Run, find_method, planned
from fanplan.layers.channels.published.genetic.evolve import (
    Generation,
    advance,
    best_generation,
    migrate,
)
from fanplan.layers.channels.published.genetic.params import GeneticParams
from fanplan.layers.channels.published.genetic.plan import finished_map, first_state
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem
from fanplan.plan.made import Job

JOB = "job"
SEAL_BYTES = 32
STOP = "stop"
"""A file in the shared folder that ends all searches; they keep their best so far."""
EPOCH = 50
"""Generations between two migrations."""


@dataclass(frozen=True)
class RestartJob:
    """What all restarts have in common. ``time`` is a limit in seconds for each of them."""

    dataset: Path
    method: str
    params: MethodParams
    rows: Rows
    time: float | None


Searched = tuple[ChannelsSection, tuple[float, ...]]
"""The best plan, and the costs of all searches in order."""


def best_of_restarts(job: Job, run: Run, restarts: int) -> Searched:
    """Plan so many times from different seeds; of equally good plans the first is kept.

    A plain run with the seed that the plan records gives the same plan. The problem must fit into
    the memory of each task. When the job is stopped, all searches end with their best so far.
    """
    spark, dataset = job.engine.session(), job.dataset.path
    problem = load_interest(dataset, run.rows)
    require_traffic(problem)
    require_enough_flows(problem, run.params.channels)
    shared = RestartJob(dataset.absolute(), run.method.name, run.params, run.rows, job.watch.time)
    seeds = restart_seeds(job.seed, restarts)
    stage = job.engine.progress.stage(f"{restarts} restarts of {run.method.name}")
    with stage as told, shared_folder(shared.dataset, "restarts") as folder:
        seal = Seal.new()
        seal.write(folder / JOB, shared)
        costs = run_restarts(spark, folder, seal, seeds, told.note, job.watch.asked_to_stop)
        best = int(np.argmin(costs))
        told.update(best=costs[best])
        map = load_map(folder / f"{best}.npz")
    return planned(problem, run.method, run.params, seeds[best], map), costs


def restart_seeds(seed: int, restarts: int) -> list[int]:
    """A seed for each restart; the first is the given one, so that one restart is a plain run."""
    others = [np.random.SeedSequence([seed, number]) for number in range(1, restarts)]
    return [seed, *(int(other.generate_state(1)[0]) for other in others)]


def run_restarts(
    spark: SparkSession,
    folder: Path,
    seal: Seal,
    seeds: list[int],
    note: Callable[[str], None],
    stop: Stop,
) -> tuple[float, ...]:
    """The cost of each restart; an error in one of them is raised here."""
    items = [{"folder": str(folder), "number": i, "seed": s} for i, s in enumerate(seeds)]
    results = run_tasks(
        spark,
        partial(restart, seal),
        items,
        lambda done: note(f"{done} of {len(seeds)}"),
        lambda: tell_stop(folder, stop),
    )
    for result in results:
        if PAYLOAD in result:
            raise rebuilt(result[PAYLOAD])
    return tuple(result["cost"] for result in results)


def restart(seal: Seal, item: dict[str, Any]) -> dict[str, Any]:
    """In a task: one restart, which leaves its map in the folder and reports its cost."""
    folder = Path(item["folder"])
    job: RestartJob = seal.read(folder / JOB)
    problem = load_interest(job.dataset, job.rows)
    limit = never if job.time is None else TimeLimit(job.time)
    stop = AnyOf(limit, FileStop(folder / STOP))
    planner = find_method(*job.method.split("+", 1)).planner
    try:
        map = planner(problem, job.params, item["seed"], stop)
    except FanplanError as error:
        return {PAYLOAD: taken_apart(error)}
    map = tidied(problem, map, kept_by(job.params))
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
    relations = [map_pairs(sides[i], sides[i + 1]) for i in (0, 2, 4)]
    return ChannelMap(int(channels), *relations)


@contextmanager
def shared_folder(dataset: Path, purpose: str) -> Iterator[Path]:
    """A folder for the length of a ``with`` block that whoever sees the dataset sees too."""
    prefix = f"{dataset.name}.{purpose}-"
    sweep(dataset.parent, prefix)
    try:
        folder = claim_in(dataset.parent, prefix)
    except OSError as error:
        raise of_system(str(dataset.parent), error, "cannot be written") from error
    try:
        yield folder
    finally:
        release(folder)


def tell_stop(folder: Path, stop: Stop) -> None:
    """Pass on to the tasks that the search must end."""
    if stop(math.inf):
        (folder / STOP).touch()


def evolve_islands(job: Job, run: Run, problem: SubscriptionProblem, islands: int) -> Searched:
    """Search on so many islands; one island alone is the plain search with that seed.

    The time of the job is for all epochs together; when it is stopped, the islands end with their
    best so far. The states lie beside the dataset. Costs are in the measure of the search.
    """
    require_traffic(problem.interest)
    spark, params = job.engine.session(), run.params
    assert isinstance(params, GeneticParams)
    stage = job.engine.progress.stage(f"{islands} islands")
    with stage as told, shared_folder(job.dataset.path.absolute(), "islands") as folder:
        sea = Sea(folder, Seal.new(), islands)
        for island in range(islands):
            sea.save(first_state(problem, params, job.seed, island), 0, island)
        last, costs = run_epochs(spark, sea, params, job.watch, told)
        winner = best_generation(sea.load(last, island) for island in range(islands))
    map = finished_map(problem, winner)
    return planned(problem.interest, run.method, params, job.seed, map), costs


def run_epochs(
    spark: SparkSession, sea: Sea, params: GeneticParams, watch: Watch, told: StageProgress
) -> tuple[int, tuple[float, ...]]:
    """Epochs until all islands are finished or time is over: the last one, and the costs."""
    began, epochs = clock.monotonic(), max(1, math.ceil(params.iterations / EPOCH))
    time = math.inf if watch.time is None else watch.time
    for epoch in range(epochs):
        left = time - (clock.monotonic() - began)
        items = [{"epoch": epoch, "seconds": left, "island": i} for i in range(sea.islands)]
        results = run_tasks(
            spark,
            partial(advance_island, sea),
            items,
            meanwhile=lambda: tell_stop(sea.folder, watch.asked_to_stop),
        )
        costs = tuple(result["cost"] for result in results)
        told.update(best=min(costs))
        told.note(f"epoch {epoch + 1} of {epochs}")
        # The states that the epoch began with are of no more use.
        for island in range(sea.islands):
            sea.place(epoch, island).unlink()
        late = clock.monotonic() - began >= time
        if late or (sea.folder / STOP).exists() or all(result["finished"] for result in results):
            break
    return epoch + 1, costs


def advance_island(sea: Sea, item: dict[str, Any]) -> dict[str, Any]:
    """In a task: one epoch of one island, from the files of the epoch before to one of this."""
    epoch, island = item["epoch"], item["island"]
    state = sea.load(epoch, island)
    if epoch > 0 and sea.islands > 1:
        neighbour = sea.load(epoch, (island - 1) % sea.islands)
        _, state = migrate([neighbour, state])
    stop = AnyOf(TimeLimit(item["seconds"]), FileStop(sea.folder / STOP))
    state = advance(state, EPOCH, stop)
    sea.save(state, epoch + 1, island)
    return {"cost": state.best_cost, "finished": state.finished}


@dataclass(frozen=True)
class Seal:
    """Objects in files that others could replace: only those written with the key are read.

    Reading a pickle runs what it says. The key goes to tasks with their work, never into a file.
    """

    key: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Seal:
        return cls(secrets.token_bytes(SEAL_BYTES))

    def write(self, path: Path, content: object) -> None:
        packed = pickle.dumps(content)
        path.write_bytes(self.mark(path, packed) + packed)

    def read(self, path: Path) -> Any:
        whole = path.read_bytes()
        if not hmac.compare_digest(whole[:SEAL_BYTES], self.mark(path, whole[SEAL_BYTES:])):
            what, remedy = "was changed by somebody else", "Plan beside a dataset of your own"
            raise InputError(Problem(str(path), what, remedy))
        return pickle.loads(whole[SEAL_BYTES:])

    def mark(self, path: Path, packed: bytes) -> bytes:
        """Of the content and its place: a file is not taken for another of the same run."""
        return hmac.digest(self.key, path.name.encode() + b"\0" + packed, "sha256")


@dataclass(frozen=True)
class Sea:
    """The islands of a search, and where their states lie."""

    folder: Path
    seal: Seal
    islands: int

    def place(self, epoch: int, island: int) -> Path:
        """Where an island's state at the start of an epoch lies."""
        return self.folder / f"{epoch}-{island}.state"

    def save(self, state: Generation, epoch: int, island: int) -> None:
        self.seal.write(self.place(epoch, island), state)

    def load(self, epoch: int, island: int) -> Generation:
        state: Generation = self.seal.read(self.place(epoch, island))
        return state
