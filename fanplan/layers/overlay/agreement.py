"""Whether a run shows what a plan says: the simulator against the ledger that the plan records."""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.brokers import OverlayProblem
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.result import SimulationResult
from fanplan.simulation.simulated import Agreement

TOLERANCE = 1e-9


def agreement(
    record: OverlayRecord,
    problem: OverlayProblem,
    result: SimulationResult,
    params: SimulationParams,
    rates: Floats,
) -> Agreement:
    """Compare messages, and delays if nothing but distance delays; ``rates`` are those of links.

    If routes have parts of messages, a run cannot have their number, and nothing is compared.
    """
    if (problem.routes.messages % 1 != 0).any():
        return Agreement(())
    here = counted(result)
    said = {name: record.ledger.get(name, math.nan) for name in (*here, "delay")}
    rounding = dict.fromkeys(here, 0.0)
    if idle(problem, result, params):
        here["delay"] = float(result.delays_ms.sum())
        said["delay"] *= params.latency_ms if record.latency == "hops" else 1.0
        # Times late in a run are known less exactly.
        rounding["delay"] = result.arrivals * float(np.spacing(result.ended_ms))
    differences = [
        f"{name}: {value:,.12g} here, {said[name]:,.12g} in the plan"
        for name, value in here.items()
        if not math.isclose(value, said[name], rel_tol=TOLERANCE, abs_tol=rounding[name])
    ]
    differences += link_differences(problem, result, rates)
    return Agreement((*here, "links"), tuple(differences))


def counted(result: SimulationResult) -> dict[str, float]:
    """Entries of the ledger as the run has them."""
    return {
        "publications": result.publications,
        "arrivals": result.arrivals,
        "link_messages": result.link_messages,
        "processed": int(result.processed.sum()),
        "forwarded": int(result.forwarded.sum()),
    }


def idle(problem: OverlayProblem, result: SimulationResult, params: SimulationParams) -> bool:
    """Whether nothing but the latency of links takes time."""
    if params.congestion != "none" or params.match_ms or params.forward_ms:
        return False
    if problem.links is None:
        return True
    return bool(np.isinf(problem.links.bandwidth[problem.given(result.links)]).all())


def link_differences(problem: OverlayProblem, result: SimulationResult, rates: Floats) -> list[str]:
    """Links that carry other numbers of messages than the plan's rates say."""
    carried, said = result.link.sum(axis=1), rates * problem.seconds
    wrong = np.flatnonzero(~np.isclose(carried, said, TOLERANCE, TOLERANCE))
    names = problem.brokers.to_pylist()
    return [
        f"link {' and '.join(repr(names[end]) for end in result.links[link])}: "
        f"{carried[link]:,} here, {said[link]:,.12g} in the plan"
        for link in wrong
    ]
