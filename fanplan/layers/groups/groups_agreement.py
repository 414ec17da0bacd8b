"""Whether a run with groups shows what the plan's ledger says."""

from __future__ import annotations

import math

import numpy as np

from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.agreement import TOLERANCE
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.result import SimulationResult
from fanplan.simulation.simulated import Agreement
from fanplan.simulation.spread import Spread


def groups_agreement(
    record: GroupsRecord,
    problem: GroupsProblem,
    ways: Spread,
    messages: Messages,
    result: SimulationResult,
    params: SimulationParams,
) -> Agreement:
    """Compare messages and matches, and delays where hops and matches alone take time, as much.

    If routes have parts of messages, a run cannot have their number, and nothing is compared.
    """
    if (problem.routes.messages % 1 != 0).any():
        return Agreement(())
    here = {
        "publications": float(result.publications),
        "link_messages": float(result.link_messages),
        "matches_total": matched(ways, messages),
    }
    unit = params.latency_ms
    plain = params.congestion == "none" and not params.forward_ms
    if plain and params.match_ms == unit > 0:
        here["delay"] = result.delay_mean_ms / unit
    differences = [
        f"{name}: {value:,.12g} here, {record.ledger.get(name, math.nan):,.12g} in the plan"
        for name, value in here.items()
        if not math.isclose(value, record.ledger.get(name, math.nan), rel_tol=rounding(result))
    ]
    return Agreement(tuple(here), tuple(differences))


def matched(ways: Spread, messages: Messages) -> float:
    """Matches of all messages: the visits of their routes that match."""
    before = np.concatenate(([0], np.cumsum(ways.visits["matched"], dtype=np.int64)))
    each = before[ways.starts[1:]] - before[ways.starts[:-1]]
    return float(each[messages.route].sum())


def rounding(result: SimulationResult) -> float:
    """Times late in a run are known less exactly."""
    return max(TOLERANCE, 1e3 * float(np.spacing(result.ended_ms)))
