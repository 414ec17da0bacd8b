"""Simulation: what brokers and links go through when a plan meets its traffic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.overlay.simulated import entering, make_traffic
from fanplan.simulation.simulated import Simulated, Times, choose_times

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan
    from fanplan.simulation.params import Congestion


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
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.layers.overlay.record import OverlayRecord
    from fanplan.layers.overlay.simulated import agreement, read_overlay
    from fanplan.layers.registry import load_plan
    from fanplan.simulation.params import SimulationParams
    from fanplan.simulation.simulate import simulate_trees

    kind = cast("Congestion", congestion)
    params = SimulationParams(kind, latency_ms, match_ms, forward_ms, unit_ms)
    stored = load_plan(Path(plan))
    require_sense(stored, dataset, speed)
    if stored.has(DeliveryRecord):
        from fanplan.layers.delivery.simulated import simulate_delivery

        return simulate_delivery(stored, dataset, params, times, speed, seed, engine)
    if stored.has(GroupsRecord) and not stored.has(OverlayRecord):
        from fanplan.layers.groups.simulated import simulate_groups

        return simulate_groups(stored, dataset, params, times, speed, seed, engine)
    chosen = choose_times(dataset, times)
    make_traffic(stored, dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        overlay = read_overlay(stored, dataset.path)
        messages = entering(overlay, stored, dataset, chosen, speed, seed)
        result = simulate_trees(overlay.problem, overlay.trees, messages, params)
        stage.rows(result.events)
    agreed = agreement(
        stored.section(OverlayRecord), overlay.problem, result, params, overlay.rates
    )
    trees = len(overlay.trees.members)
    return Simulated(result, overlay.problem, trees, params, chosen, speed, seed, agreed)


def require_sense(plan: StoredPlan, dataset: Dataset, speed: float) -> None:
    """A plan with an overlay or groups, for this dataset, at a speed that moves."""
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.layers.overlay.record import OverlayRecord

    _ = plan.find(GroupsRecord) or plan.has(DeliveryRecord) or plan.section(OverlayRecord)
    if plan.record.input.key != dataset.manifest.key:
        what = "was planned for other input than this dataset"
        remedy = "Simulate it with the dataset it was made for"
        raise InputError(Problem(str(plan.folder), what, remedy))
    if not 0 < speed < float("inf"):
        raise InputError(Problem("speed", f"{speed} is no speed", "Give more than 0"))
