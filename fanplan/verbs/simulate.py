"""Simulation: what brokers and links go through when a plan meets its traffic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.layer import Simulate
from fanplan.layers.registry import first_able, load_plan
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import require_dataset_of
from fanplan.simulation.simulated import Simulated, Times
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan
    from fanplan.simulation.params import Congestion


@in_our_words
def simulate(
    plan: AnyPlan,
    dataset: AnyDataset,
    *,
    congestion: str = "rule",
    latency_ms: float = 100.0,
    match_ms: float = 0.0,
    forward_ms: float = 0.0,
    unit_ms: float = 1000.0,
    client_ms: float = 0.0,
    times: Times | None = None,
    speed: float = 1.0,
    seed: int = 0,
    engine: Engine = EMBEDDED,
) -> Simulated:
    """Send the traffic of a dataset through the brokers of a stored plan, event by event.

    ``congestion`` is rule (Tajuddin 2011, section 6.4.1), every, queue or none. ``latency_ms`` is
    that of a link if the workload says none of any, ``client_ms`` that from a broker to its clients
    in a plan of all layers. ``times`` are measured where every publication has one, else drawn.
    Spark starts only if the dataset lacks stages that are needed.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    from fanplan.simulation.params import SimulationParams

    kind = cast("Congestion", congestion)
    params = SimulationParams(kind, latency_ms, match_ms, forward_ms, unit_ms, client_ms)
    stored = load_plan(Path(plan))
    require_untouched(stored)
    run = simulating(stored)
    require_sense(stored, dataset, speed)
    return run(stored, dataset, params, times, speed, seed, engine)


def simulating(plan: StoredPlan) -> Simulate:
    """How a plan is simulated; an error if it cannot be."""
    layer = first_able(plan, lambda layer: layer if layer.simulate else None)
    if layer.require_simulated:
        layer.require_simulated(plan)
    assert layer.simulate
    return layer.simulate


def require_sense(plan: StoredPlan, dataset: Dataset, speed: float) -> None:
    """A plan for this dataset, at a speed that moves."""
    require_dataset_of(plan, dataset.path)
    if not 0 < speed < float("inf"):
        raise InputError(Problem("speed", f"{speed} is not a speed", "Give more than 0"))
