"""How a method is run: here, as restarts, as islands, or with its rows on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine

if TYPE_CHECKING:
    from fanplan.data.interest import Rows
    from fanplan.layers.channels.map import ChannelsSection
    from fanplan.layers.channels.method_params import MethodParams
    from fanplan.layers.channels.methods import Method


@dataclass(frozen=True)
class Run:
    """A method with its parameters, ready to run on a dataset."""

    dataset: Dataset
    method: Method
    params: MethodParams
    rows: Rows
    seed: int
    engine: Engine

    def here(self, watch: Watch) -> ChannelsSection:
        """In this process, shown as a stage with its best cost."""
        from fanplan.layers.channels.methods import channels_by_method, load_problem

        with self.engine.progress.stage(f"plan by {self.method.name}") as stage:
            problem = load_problem(self.dataset.path, self.method, self.rows)
            return channels_by_method(
                problem, self.method, self.params, self.seed, watch.telling(stage)
            )

    def restarted(self, restarts: int, watch: Watch) -> tuple[ChannelsSection, tuple[float, ...]]:
        """As independent Spark tasks: the best plan, and the costs of all."""
        from fanplan.layers.channels.stages.restarts import best_of_restarts

        name, _, second = self.method.name.partition("+")
        found = best_of_restarts(
            self.engine.session(),
            self.dataset.path,
            name,
            second or None,
            self.params,
            self.seed,
            restarts,
            watch.time,
            self.engine.progress,
            self.rows,
            watch.asked_to_stop,
        )
        return found.plan, found.costs

    def islands(self, islands: int, watch: Watch) -> tuple[ChannelsSection, tuple[float, ...]]:
        """As populations apart, in Spark tasks, whose best maps migrate."""
        from fanplan.layers.channels.method_params import require_traffic
        from fanplan.layers.channels.methods import planned
        from fanplan.layers.channels.published.genetic.problem import load_subscriptions
        from fanplan.layers.channels.stages.restarts import evolve_islands

        problem = load_subscriptions(self.dataset.path)
        require_traffic(problem.interest)
        found = evolve_islands(
            self.engine.session(),
            problem,
            self.params,  # type: ignore[arg-type]
            self.seed,
            islands,
            self.dataset.path,
            watch.time,
            self.engine.progress,
            watch.asked_to_stop,
        )
        plan = planned(problem.interest, self.method, self.params, self.seed, found.map)
        return plan, found.costs

    def on_spark(self, watch: Watch) -> ChannelsSection:
        """With Lloyd passes and the assignment as Spark jobs, for more rows than fit a search."""
        from fanplan.layers.channels.method_params import KmodesParams
        from fanplan.layers.channels.stages.decisions import as_plan
        from fanplan.layers.channels.stages.restarts import shared_folder
        from fanplan.layers.channels.stages.scale import plan_on_spark

        if not isinstance(self.params, KmodesParams):
            what = f"the method {self.method.name} does not run that way"
            raise InputError(Problem("on_spark", what, "Use the method kmodes, or leave it out"))
        spark, path = self.engine.session(), self.dataset.path
        with shared_folder(path.absolute(), "planning") as folder:
            work = folder / "work"
            decided = plan_on_spark(
                spark, path, self.params, self.seed, work, watch, self.engine.progress
            )
            return as_plan(decided, path, self.params, self.seed)
