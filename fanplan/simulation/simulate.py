"""A problem, a tree and messages in; what happened out."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Ints
from fanplan.core.errors import InputError, Problem
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Trees
from fanplan.simulation.events import SIZE, empty_queue, has_room, roomier
from fanplan.simulation.loop import EVENTS, Costs, State, loop, start, still
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import CONGESTION, SimulationParams
from fanplan.simulation.result import SimulationResult
from fanplan.simulation.spread import Network, Spread, Tree, spread


def simulate(
    problem: OverlayProblem, edges: Ints, messages: Messages, params: SimulationParams
) -> SimulationResult:
    """What a tree of the problem's brokers does with messages on the problem's routes.

    Same input, same events. Time O(events × log of what is under way), memory O(arrivals + visits).
    """
    edges = np.asarray(edges, np.int32).reshape(-1, 2)
    require_tree(problem, edges)
    one = np.zeros(problem.size, np.int32)
    return simulate_trees(problem, Trees(edges, (np.arange(len(edges)),), one), messages, params)


def simulate_trees(
    problem: OverlayProblem, trees: Trees, messages: Messages, params: SimulationParams
) -> SimulationResult:
    """The same of several trees, each with the messages that enter where it is taken."""
    require_capacity(problem)
    network = network_of(problem, trees.links, params.latency_ms)
    routed = trees.of[problem.routes.source].astype(np.int64)
    ways = spread(network, problem.routes, [Tree(member) for member in trees.members], routed)
    return run(network, ways, problem.capacity, messages, params)


def require_tree(problem: OverlayProblem, edges: Ints) -> None:
    if len(edges) != problem.size - 1 or not ((edges >= 0) & (edges < problem.size)).all():
        what = f"{len(edges)} links are no tree of {problem.size} brokers"
        remedy = "Give one link less than there are brokers, as positions of brokers"
        raise InputError(Problem("tree", what, remedy))


def require_capacity(problem: OverlayProblem) -> None:
    for broker in np.flatnonzero(~(problem.capacity > 0)):
        where = f"broker {problem.brokers[int(broker)].as_py()!r}"
        remedy = "Give a positive number of messages per second, or leave it out"
        raise InputError(Problem(where, "has no capacity", remedy))


def network_of(problem: OverlayProblem, links: Ints, latency_ms: float) -> Network:
    """Links with what the problem knows of them."""
    if problem.links is None:
        latency = np.full(len(links), latency_ms)
        return Network(problem.size, links, latency, np.zeros(len(links)))
    at = problem.given(links)
    bandwidth = problem.links.bandwidth[at]
    return Network(problem.size, links, problem.links.latency_ms[at], 1000.0 / bandwidth)


def run(
    network: Network,
    ways: Spread,
    capacity: Floats,
    messages: Messages,
    params: SimulationParams,
) -> SimulationResult:
    """Send messages along the visits of their routes.

    ``capacity`` is messages per second, more than 0.
    """
    require_routes(messages, ways)
    messages = messages.in_order()
    sent = messages.route[~messages.control]
    before = np.concatenate(([0], np.cumsum(ways.visits["arrives"], dtype=np.int64)))
    arrivals = (before[ways.starts[sent + 1]] - before[ways.starts[sent]]).sum()
    state = still(network.brokers, len(network.links), int(arrivals))
    ended = play(state, costs_of(network, capacity, params), ways, messages)
    return SimulationResult(
        links=network.links,
        events=int(state.counts[EVENTS]),
        ended_ms=ended,
        publications=len(sent),
        brokers_max=int(np.diff(ways.starts)[sent].max(initial=0)),
        processed=state.processed,
        arrived=state.arrived,
        peak=state.peak,
        waited_ms=state.waited,
        link=state.link.reshape(-1, 2),
        control=state.control.reshape(-1, 2),
        delays_ms=state.delays,
    )


def play(state: State, costs: Costs, ways: Spread, messages: Messages) -> float:
    """Run the events, in a queue that grows as it must; the time of the last."""
    queue = empty_queue(1 + 2 * len(state.link))
    widest = int(ways.visits["copies"].max(initial=0))
    start(ways, messages.time_ms, messages.route, queue)
    ended = 0.0
    while queue.marks[SIZE] > 0:
        while not has_room(queue, widest + 1):
            queue = roomier(queue)
        ended = loop(
            state,
            costs,
            ways,
            messages.time_ms,
            messages.route,
            messages.control,
            queue,
            widest,
        )
    return ended


def require_routes(messages: Messages, ways: Spread) -> None:
    known = len(ways.starts) - 1
    unknown = messages.route[(messages.route < 0) | (messages.route >= known)]
    if len(unknown):
        what = f"a message takes route {unknown[0]}, but there are {known}"
        raise InputError(Problem("messages", what, "Give positions of routes"))


def costs_of(network: Network, capacity: Floats, params: SimulationParams) -> Costs:
    """The parameters as the loop wants them; capacities per window."""
    return Costs(
        CONGESTION.index(params.congestion),
        capacity * (params.unit_ms / 1000.0),
        network.latency_ms,
        network.transmission_ms,
        float(params.match_ms),
        float(params.forward_ms),
        float(params.unit_ms),
    )
