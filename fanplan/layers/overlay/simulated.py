"""A stored overlay as the simulator wants it: brokers, trees, and where clients are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.overlay.check.evidence import between_brokers
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.network.dataset import (
    publisher_names,
    read_brokers,
    read_routes,
    subscriber_names,
    unlike_brokers,
)
from fanplan.network.latency import Timing
from fanplan.network.trees import Trees, trees_of
from fanplan.plan.axis import Axis
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.messages import (
    Messages,
    as_publications,
    merged_routes,
    publications_of,
    read_sendings,
)
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, simulate_trees
from fanplan.simulation.simulated import (
    Agreement,
    Simulated,
    Times,
    assumed_links,
    choose_times,
    require_messages,
    require_no_clients,
)

CHECK = "See what `fanplan check` says of the plan"


class Sendings(NamedTuple):
    """The stage that has the times of ``traffic``, and what its routes are among those that run."""

    stage: str
    traffic: Routes
    route: Longs


@dataclass(frozen=True, eq=False)
class StoredOverlay:
    """What a plan and its dataset say together.

    ``problem`` has the plan's brokers and no similarity. ``rates`` are messages per second on the
    links of the trees, as the plan says.
    """

    problem: OverlayProblem
    trees: Trees
    rates: Floats
    sent: Sendings


def read_overlay(plan: StoredPlan, dataset: Path) -> StoredOverlay:
    """Read trees, links and traffic, after the pipeline made the stage of routes."""
    brokers = read_brokers(dataset)
    used = plan.read("brokers", ("broker",))
    brokers = brokers.take(np.sort(positions(plan, "broker", used["broker"], brokers.names)))
    names, given = brokers.names, plan.section(OverlayRecord).clients == "given"
    traffic = read_routes(dataset, "routes" if given else "client_routes")
    routes, route = merged_routes(at_homes(plan, dataset, traffic, names))
    trees = read_trees(plan, names)
    sent = Sendings("sendings" if given else "client_sendings", traffic, route)
    problem = unlike_brokers(dataset, brokers, routes)
    return StoredOverlay(problem, trees, link_rates(plan, names, trees), sent)


def at_homes(plan: StoredPlan, dataset: Path, traffic: Routes, brokers: pa.Array) -> Routes:
    """Routes between brokers; those between clients by where the plan has the clients."""
    if plan.section(OverlayRecord).clients == "given":
        return traffic
    sending = homes(plan, "publisher", publisher_names(dataset), brokers)
    wanting = homes(plan, "subscriber", subscriber_names(dataset), brokers)
    return between_brokers(traffic, sending, wanting)


def homes(plan: StoredPlan, role: str, clients: pa.Array, brokers: pa.Array) -> Ints:
    """The broker of each client of a role."""
    table = plan.read("clients", ("client", "role", "broker"))
    table = table.filter(pc.equal(table["role"], role))
    home = np.full(len(clients), -1, np.int32)
    at = positions(plan, "broker", table["broker"], brokers)
    home[positions(plan, role, table["client"], clients)] = at
    for lost in np.flatnonzero(home < 0):
        what = f"{role} {clients[int(lost)].as_py()!r} is at no broker"
        raise InputError(Problem(str(plan.folder), what, CHECK))
    return home


def positions(plan: StoredPlan, what: str, names: pa.ChunkedArray, known: pa.Array) -> Ints:
    """Where names stand among known ones; an error if one does not."""
    found = Axis(what, known).positions(names)
    for unknown in np.flatnonzero(found < 0):
        told = f"{what} {names[int(unknown)].as_py()!r} is unknown"
        raise InputError(Problem(str(plan.folder), told, CHECK))
    return found


def read_trees(plan: StoredPlan, brokers: pa.Array) -> Trees:
    """The links of each tree, and the tree that takes what enters at each broker."""
    count = plan.section(OverlayRecord).trees
    if count == 1:
        links = ends(plan, plan.read("links", ("a", "b")), brokers)
        return trees_of((links,), np.zeros(len(brokers), np.int32))
    table = plan.read("tree_links", ("tree", "a", "b"))
    links, tree = ends(plan, table, brokers), table["tree"].to_numpy()
    sources = plan.read("tree_sources", ("broker", "tree"))
    of = np.full(len(brokers), -1, np.int32)
    of[positions(plan, "broker", sources["broker"], brokers)] = sources["tree"].to_numpy()
    for lost in np.flatnonzero((of < 0) | (of >= count)):
        what = f"broker {brokers[int(lost)].as_py()!r} has no tree"
        raise InputError(Problem(str(plan.folder), what, CHECK))
    return trees_of(tuple(links[tree == number] for number in range(count)), of)


def ends(plan: StoredPlan, links: pa.Table, brokers: pa.Array) -> Ints:
    """A row of two positions per link."""
    found = [positions(plan, "broker", links[end], brokers) for end in ("a", "b")]
    return np.stack(found, axis=1).astype(np.int32)


def link_rates(plan: StoredPlan, brokers: pa.Array, trees: Trees) -> Floats:
    """The stated rate of each link of the trees; not a number where the plan states none."""
    table = plan.read("links", ("a", "b", "rate"))
    pairs = map(tuple, np.sort(ends(plan, table, brokers)).tolist())
    rates = dict(zip(pairs, table["rate"].to_pylist(), strict=True))
    return np.array([rates.get(tuple(pair), np.nan) for pair in trees.links.tolist()])


def make_traffic(plan: StoredPlan, dataset: Dataset, times: Times, engine: Engine) -> None:
    """The stages of routes and, for measured times, of sendings."""
    from fanplan.layers.overlay.stages import routes

    source, given = derived(dataset, engine), plan.section(OverlayRecord).clients == "given"
    (routes.stage_broker_routes if given else routes.stage_client_routes)(source)
    if times == "measured":
        (routes.stage_broker_sendings if given else routes.stage_client_sendings)(source)


def entering(
    routes: Routes,
    dataset: Dataset,
    times: Times,
    speed: float,
    seed: int,
    measured: Sendings | None = None,
) -> Messages:
    """The messages that enter; the first measured time is 0.

    Times are of the routes themselves, unless it is told what was ``measured``.
    """
    require_messages(routes, dataset)
    if times == "drawn":
        return publications_of(routes, dataset.manifest.seconds / speed, seed)
    sent = measured or Sendings("sendings", routes, np.arange(len(routes)))
    time, route = read_sendings(dataset.path, sent.stage, sent.traffic)
    return as_publications((time - time[0]) * (1000.0 / speed), sent.route[route])


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
    here = ledger_counts(result)
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


def ledger_counts(result: SimulationResult) -> dict[str, float]:
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


def simulate_overlay(
    plan: StoredPlan,
    dataset: Dataset,
    params: SimulationParams,
    times: Times | None,
    speed: float,
    seed: int,
    engine: Engine,
) -> Simulated:
    """Send traffic over the trees of a plan."""
    require_no_clients(params)
    record, chosen = plan.section(OverlayRecord), choose_times(dataset, times)
    make_traffic(plan, dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        overlay = read_overlay(plan, dataset.path)
        problem, trees = overlay.problem, len(overlay.trees.members)
        messages = entering(problem.routes, dataset, chosen, speed, seed, overlay.sent)
        result = simulate_trees(problem, overlay.trees, messages, params)
        stage.rows(result.events)
    agreed = agreement(record, problem, result, params, overlay.rates)
    timing = Timing(problem.size, problem.links, params.latency_ms)
    assumed = assumed_links(result, timing.assumed_ms)
    return Simulated(result, problem, trees, params, chosen, speed, seed, agreed, assumed)
