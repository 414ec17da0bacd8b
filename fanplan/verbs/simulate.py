"""Simulation: what brokers and links go through when a plan meets its traffic."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from fanplan.core.errors import InputError, Problem
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.datasets import Dataset, PathLike
from fanplan.verbs.stages import derived

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.layers.overlay.agreement import Agreement
    from fanplan.layers.overlay.simulated import StoredOverlay
    from fanplan.network.brokers import OverlayProblem, Routes
    from fanplan.plan.stored import StoredPlan
    from fanplan.simulation.messages import Messages
    from fanplan.simulation.params import Congestion, SimulationParams
    from fanplan.simulation.result import SimulationResult

Times = Literal["measured", "drawn"]


@dataclass(frozen=True, eq=False)
class Simulated:
    """What a run showed, and what it was told.

    ``times`` says when messages entered: as measured, or drawn evenly over the window with
    ``seed``. They follow each other ``speed`` times as fast. ``naive`` is a run with the same
    messages by content-based routing alone, of a plan whose delivery leaves less to brokers;
    ``notes`` say what is simulated then.
    """

    result: SimulationResult
    problem: OverlayProblem
    trees: int
    params: SimulationParams
    times: Times
    speed: float
    seed: int
    agreement: Agreement
    naive: SimulationResult | None = None
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool | None:
        """Whether the run agrees with the plan's ledger; None if they cannot be compared."""
        return self.agreement.agrees

    def summary(self) -> dict[str, Any]:
        """All figures that are one number, as JSON."""
        drawn = {"seed": self.seed} if self.times == "drawn" else {}
        beside = {} if self.naive is None else {"naive": self.naive.summary()}
        return {
            **asdict(self.params),
            "times": self.times,
            **drawn,
            "speed": self.speed,
            "brokers": self.problem.size,
            "links": len(self.result.links),
            "trees": self.trees,
            **self.result.summary(),
            "agrees": self.agrees,
            "compared": list(self.agreement.compared),
            "differences": list(self.agreement.differences),
            **beside,
        }

    @property
    def broker_table(self) -> pa.Table:
        """One row per broker; ``capacity`` is messages per second, null if not limited."""
        import numpy as np
        import pyarrow as pa

        capacity = self.problem.capacity
        limits = pa.array(capacity, mask=~np.isfinite(capacity))
        return self.result.broker_table(self.problem.brokers).append_column("capacity", limits)

    @property
    def link_table(self) -> pa.Table:
        """One row per link, with the messages in each direction."""
        return self.result.link_table(self.problem.brokers)

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write summary.json and the tables as Parquet, whole or not at all."""
        import pyarrow.parquet as pq

        from fanplan.core.folder import SIMULATION, whole_folder

        with whole_folder(Path(out), SIMULATION, replace) as folder:
            for name, table in (("brokers", self.broker_table), ("links", self.link_table)):
                pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
            text = json.dumps(self.summary(), indent=2, allow_nan=False)
            (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
        return Path(out)


def simulate(
    plan: PathLike,
    dataset: Dataset,
    *,
    congestion: str = "rule",
    latency_ms: float = 100.0,
    match_ms: float = 0.0,
    forward_ms: float = 0.0,
    unit_ms: float = 1000.0,
    times: Times | None = None,
    speed: float = 1.0,
    seed: int = 0,
    engine: Engine = EMBEDDED,
) -> Simulated:
    """Send the traffic of a dataset through the brokers of a stored plan, event by event.

    ``congestion`` is rule (Tajuddin 2011, section 6.4.1), queue or none. ``latency_ms`` is for
    links that the workload says nothing of. ``times`` are measured where every publication has
    one, else drawn. Spark starts only if the dataset lacks stages that are needed.
    """
    from fanplan.layers.overlay.agreement import agreement
    from fanplan.layers.overlay.simulated import read_overlay
    from fanplan.plan.stored import load_plan
    from fanplan.simulation.params import SimulationParams
    from fanplan.simulation.simulate import simulate_trees

    kind = cast("Congestion", congestion)
    params = SimulationParams(kind, latency_ms, match_ms, forward_ms, unit_ms)
    stored = load_plan(Path(plan))
    require_sense(stored, dataset, speed)
    if stored.record.delivery:
        from fanplan.layers.delivery.delivery_simulations import simulate_delivery

        return simulate_delivery(stored, dataset, params, times, speed, seed, engine)
    if stored.record.groups and not stored.record.overlay:
        from fanplan.layers.groups.simulated import simulate_groups

        return simulate_groups(stored, dataset, params, times, speed, seed, engine)
    chosen = choose_times(dataset, times)
    make_traffic(stored, dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        overlay = read_overlay(stored, dataset.path)
        messages = entering(overlay, stored, dataset, chosen, speed, seed)
        result = simulate_trees(overlay.problem, overlay.trees, messages, params)
        stage.rows(result.events)
    agreed = agreement(stored.overlay, overlay.problem, result, params, overlay.rates)
    trees = len(overlay.trees.members)
    return Simulated(result, overlay.problem, trees, params, chosen, speed, seed, agreed)


def require_sense(plan: StoredPlan, dataset: Dataset, speed: float) -> None:
    """A plan with an overlay or groups, for this dataset, at a speed that moves."""
    _ = plan.record.groups or plan.record.delivery or plan.overlay
    if plan.record.input.key != dataset.manifest.key:
        what = "was planned for other input than this dataset"
        remedy = "Simulate it with the dataset it was made for"
        raise InputError(Problem(str(plan.folder), what, remedy))
    if not 0 < speed < float("inf"):
        raise InputError(Problem("speed", f"{speed} is no speed", "Give more than 0"))


def choose_times(dataset: Dataset, asked: str | None) -> Times:
    """Measured times where they are known, unless drawn ones are asked for."""
    from fanplan.simulation.traffic import times_known

    if asked not in (None, "measured", "drawn"):
        raise InputError(Problem("times", f"{asked!r} is unknown", "Use measured or drawn"))
    if asked == "drawn":
        return "drawn"
    known = times_known(dataset.path)
    if asked == "measured" and not known:
        what = "not every message has a measured time"
        raise InputError(Problem("times", what, "Give publications with times, or draw them"))
    return "measured" if known else "drawn"


def make_traffic(plan: StoredPlan, dataset: Dataset, times: Times, engine: Engine) -> None:
    """The stages of routes and, for measured times, of sendings."""
    from fanplan.layers.overlay.stages import routes

    source, given = derived(dataset, engine), plan.overlay.clients == "given"
    (routes.broker_routes if given else routes.client_routes)(source)
    if times == "measured":
        (routes.broker_sendings if given else routes.client_sendings)(source)


def entering(
    overlay: StoredOverlay,
    plan: StoredPlan,
    dataset: Dataset,
    times: Times,
    speed: float,
    seed: int,
) -> Messages:
    """The messages that enter; the first measured time is 0."""
    from fanplan.simulation.messages import publications, publications_of
    from fanplan.simulation.traffic import read_sendings

    require_traffic(overlay.problem.routes, dataset)
    if times == "drawn":
        return publications_of(overlay.problem.routes, overlay.problem.seconds / speed, seed)
    stage = "sendings" if plan.overlay.clients == "given" else "client_sendings"
    time, route = read_sendings(dataset.path, stage, overlay.traffic)
    return publications((time - time[0]) * (1000.0 / speed), overlay.route[route])


def require_traffic(routes: Routes, dataset: Dataset) -> None:
    if not routes.messages.any():
        what = "there is no traffic to simulate"
        remedy = "Add publications, or advertisements with rates"
        raise InputError(Problem(str(dataset.path), what, remedy))
