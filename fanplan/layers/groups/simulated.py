"""Simulation of a plan with groups: matched once, over shortcuts; the rest by default routing."""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.data.interest import take_audiences
from fanplan.layers.groups.carried import carried_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.subtrees import shortcuts_of
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.layers.overlay.simulated import TOLERANCE, entering
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.network.dataset import read_brokers, unlike_brokers
from fanplan.network.latency import Latency, Timing
from fanplan.network.trees import downward
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, require_capacity, run_messages
from fanplan.simulation.simulated import (
    Agreement,
    Simulated,
    Times,
    assumed_links,
    choose_times,
    require_no_clients,
)
from fanplan.simulation.spread import RouteTree, RouteVisits, SimulatedNetwork, spread_routes


def simulate_groups(
    plan: StoredPlan,
    dataset: Dataset,
    params: SimulationParams,
    times: Times | None,
    speed: float,
    seed: int,
    engine: Engine,
) -> Simulated:
    """Send traffic over the trees and the groups of a plan."""
    require_no_clients(params)
    record, chosen = plan.section(GroupsRecord), times_of_groups(plan, dataset, times)
    make_traffic(plan, dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        problem = carried_groups(plan, dataset.path).problem
        overlay = brokers_of(problem, dataset)
        require_capacity(overlay)
        everything, timing = np.ones(problem.size, bool), timing_of(overlay, params)
        network, ways = group_ways(problem, everything, record.params.shortcuts, timing)
        messages = entering(problem.routes, dataset, chosen, speed, seed)
        result = run_messages(network, ways, overlay.capacity, messages, params)
        stage.rows(result.events)
    agreed = groups_agreement(record, problem, network, ways, messages, result, params)
    trees, assumed = len(problem.trees.root), assumed_links(result, timing.assumed_ms)
    return Simulated(result, overlay, trees, params, chosen, speed, seed, agreed, assumed)


def times_of_groups(plan: StoredPlan, dataset: Dataset, asked: Times | None) -> Times:
    """Times are known by destinations, not by cells: groups of cells draw them."""
    if plan.section(GroupsRecord).params.grouping.cells is None:
        return choose_times(dataset, asked)
    if asked == "measured":
        what = "times of messages in cells are not known"
        raise InputError(Problem("times", what, "Draw them"))
    return choose_times(dataset, "drawn")


def make_traffic(plan: StoredPlan, dataset: Dataset, times: Times, engine: Engine) -> None:
    from fanplan.layers.overlay.stages.routes import stage_broker_sendings

    make_group_stages(dataset, plan.section(GroupsRecord).params.grouping, engine)
    if times == "measured":
        stage_broker_sendings(derived(dataset, engine))


def brokers_of(problem: GroupsProblem, dataset: Dataset) -> OverlayProblem:
    """The brokers with their capacities, as figures of a run are told by, and the links given."""
    return unlike_brokers(dataset.path, read_brokers(dataset.path), problem.routes)


def timing_of(overlay: OverlayProblem, params: SimulationParams) -> Timing:
    return Timing(overlay.size, overlay.links, params.latency_ms)


def group_ways(
    problem: GroupsProblem, selected: Bools, shortcuts: bool, timing: Timing
) -> tuple[SimulatedNetwork, RouteVisits]:
    """The network, shortcuts included, and the visits of all routes of a problem.

    A route of a group that is set up goes to all its members, on the group's own tree, and is
    matched where it enters. The others take default routing and are matched by all but the ends of
    the tree (Zhang & Hu 2005, section 5.2.1). A link of a tree takes its own latency, a shortcut
    that of the shortest way.
    """
    carrier = carriers(problem, selected)
    trees = [downward(parent) for parent in problem.trees.parent]
    once, tree_of = len(trees), problem.tree.astype(np.int64)
    tree_of[carrier >= 0] += once
    plain = np.concatenate([*trees, np.empty((0, 2), np.int32)])
    trees += trees
    if shortcuts:
        own, groups = shortened(problem, selected)
        number = np.full(problem.size, -1, np.int64)
        number[groups] = len(trees) + np.arange(len(groups))
        mine = np.flatnonzero(carrier >= 0)
        mine = mine[number[carrier[mine]] >= 0]
        tree_of[mine] = number[carrier[mine]]
        trees += own
    ends = np.sort(np.concatenate([*trees, np.empty((0, 2), np.int32)]), axis=1)
    links, place = np.unique(ends, axis=0, return_inverse=True)
    parts = np.split(place.ravel(), np.cumsum([len(tree) for tree in trees]))[:-1]
    taken = latencies(timing, links, plain)
    network = SimulatedNetwork(timing.brokers, links, taken.ms, 0.0 * links[:, 0], taken.assumed)
    chosen = [RouteTree(part, matched_once=i >= once) for i, part in enumerate(parts)]
    ways = spread_routes(network, sent_to(problem, carrier), chosen, tree_of)
    mind_ends(ways, problem, carrier)
    return network, ways


def latencies(timing: Timing, links: Ints, plain: Ints) -> Latency:
    """Of links, of which those of trees are ``plain`` and the others shortcuts."""
    key, known = (ends.astype(np.int64) @ (timing.brokers, 1) for ends in (links, np.sort(plain)))
    own, taken = np.isin(key, known), timing.on_ways(links[:, 0], links[:, 1])
    taken.ms[own], taken.assumed[own] = timing.over_links(links[own])
    return taken


def carriers(problem: GroupsProblem, selected: Bools) -> Ints:
    """The group that carries each route, −1 for default routing."""
    taken = np.append(selected, False)
    return np.where(taken[problem.group], problem.group, -1).astype(np.int32)


def shortened(problem: GroupsProblem, selected: Bools) -> tuple[list[Ints], Longs]:
    """The trees with shortcuts of groups that are set up, but for those of a root alone."""
    short = shortcuts_of(problem)
    groups = np.flatnonzero(selected & (np.diff(short.starts) > 0))
    ends = np.stack((short.tail, short.head), axis=1)
    return [ends[short.starts[group] : short.starts[group + 1]] for group in groups], groups


def sent_to(problem: GroupsProblem, carrier: Ints) -> Routes:
    """Routes with the brokers they are sent to: all members of the group that carries them."""
    routes, count = problem.routes, len(problem.routes)
    starts = np.concatenate((routes.starts, routes.starts[-1] + problem.starts[1:]))
    ends = np.concatenate((routes.brokers, problem.members))
    rows = np.where(carrier >= 0, count + carrier, np.arange(count)).astype(np.int64)
    sizes = np.diff(starts)[rows]
    return Routes(
        routes.source,
        starts_of(sizes),
        take_audiences(starts, ends, rows),
        routes.messages,
        routes.deliveries,
    )


def mind_ends(ways: RouteVisits, problem: GroupsProblem, carrier: Ints) -> None:
    """Ends of a tree match nothing, and only what is wanted arrives."""
    visits, size = ways.visits, len(problem.brokers)
    route = np.repeat(np.arange(len(carrier)), np.diff(ways.starts))
    inner = problem.trees.inner[problem.tree[route], visits["broker"]]
    visits["matched"] &= inner | (visits["link"] < 0)
    wanted = np.repeat(np.arange(len(carrier)), np.diff(problem.routes.starts))
    key = wanted * size + problem.routes.brokers
    visits["arrives"] = np.isin(route * size + visits["broker"], key)


def groups_agreement(
    record: GroupsRecord,
    problem: GroupsProblem,
    network: SimulatedNetwork,
    ways: RouteVisits,
    messages: Messages,
    result: SimulationResult,
    params: SimulationParams,
) -> Agreement:
    """Compare messages and matches, and delays where hops and matches alone take time, as much.

    In the ledger all hops take the same time.

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
    plain &= bool((network.latency_ms == unit).all())
    if plain and params.match_ms == unit > 0:
        here["delay"] = result.delay_mean_ms / unit
    differences = [
        f"{name}: {value:,.12g} here, {record.ledger.get(name, math.nan):,.12g} in the plan"
        for name, value in here.items()
        if not math.isclose(value, record.ledger.get(name, math.nan), rel_tol=rounding(result))
    ]
    return Agreement(tuple(here), tuple(differences))


def matched(ways: RouteVisits, messages: Messages) -> float:
    """Matches of all messages: the visits of their routes that match."""
    before = starts_of(ways.visits["matched"])
    each = before[ways.starts[1:]] - before[ways.starts[:-1]]
    return float(each[messages.route].sum())


def rounding(result: SimulationResult) -> float:
    """Times late in a run are known less exactly."""
    return max(TOLERANCE, 1e3 * float(np.spacing(result.ended_ms)))
