"""Messages through brokers and links, event by event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.errors import InputError, Problem
from fanplan.kernels import compiled
from fanplan.problem.interest import Floats, Ints, Longs
from fanplan.problem.overlay import OverlayProblem
from fanplan.simulation.events import SEQUENCE_BITS, drop_first, empty_heap, push, roomy
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import CONGESTION, SimulationParams
from fanplan.simulation.result import SimulationResult
from fanplan.simulation.spread import Network, Spread, Tree, spread

# Kinds of event: a message enters, a copy comes to a broker, a copy is ready for a busy link.
ENTER, ARRIVE, DEPART = range(3)

# Priorities at one time: control messages, then what is under way, then what enters.
CONTROL, COPY, ENTRY = (priority << SEQUENCE_BITS for priority in range(3))

NO_CONGESTION, RULE, QUEUE = (CONGESTION.index(name) for name in ("none", "rule", "queue"))


def simulate(
    problem: OverlayProblem, edges: Ints, messages: Messages, params: SimulationParams
) -> SimulationResult:
    """What a tree of the problem's brokers does with messages on the problem's routes.

    Same input, same events. Time O(events × log of those waiting), memory O(arrivals + visits).
    """
    network = network_of(problem, edges, params.latency_ms)
    visits = spread(network, problem.routes, [Tree(np.arange(len(edges)))])
    return run(network, visits, problem.capacity, messages, params)


def network_of(problem: OverlayProblem, edges: Ints, latency_ms: float) -> Network:
    """The links of a tree with what the problem knows of them."""
    edges = np.asarray(edges, np.int32).reshape(-1, 2)
    if len(edges) != problem.size - 1:
        what = f"{len(edges)} links for {problem.size} brokers"
        raise InputError(Problem("tree", what, "Give one link less than there are brokers"))
    links = problem.links
    if links is None:
        return Network(problem.size, edges, np.full(len(edges), latency_ms), np.zeros(len(edges)))
    known = {ends: at for at, ends in enumerate(zip(links.a.tolist(), links.b.tolist(), strict=True))}
    wanted = [(min(a, b), max(a, b)) for a, b in edges.tolist()]
    for a, b in wanted:
        if (a, b) not in known:
            what = f"no link joins {problem.brokers[a]} and {problem.brokers[b]}"
            raise InputError(Problem("tree", what, "Use links of the table, or add this one"))
    at = np.array([known[ends] for ends in wanted], np.int64)
    return Network(problem.size, edges, links.latency_ms[at], 1000.0 / links.bandwidth[at])


def run(
    network: Network,
    visits: Spread,
    capacity: Floats,
    messages: Messages,
    params: SimulationParams,
) -> SimulationResult:
    """Send the messages through the visits of their routes; capacities are messages per second."""
    messages = messages.in_order()
    if len(messages) and not 0 <= messages.route.min() <= messages.route.max() < len(visits.starts) - 1:
        what = f"a message takes route {messages.route.max()} of {len(visits.starts) - 1}"
        raise InputError(Problem("messages", what, "Give positions of routes"))
    arriving = np.add.reduceat(np.append(visits.arrives, 0), visits.starts[:-1], dtype=np.int64)
    state = State(
        *np.zeros((4, network.brokers), np.int64),
        *np.zeros((3, network.brokers)),
        *np.zeros((2, 2 * len(network.links)), np.int64),
        np.zeros(2 * len(network.links)),
        np.empty(int(arriving[messages.route[~messages.control]].sum())),
    )
    costs = Costs(
        CONGESTION.index(params.congestion),
        capacity * (params.unit_ms / 1000.0),
        network.latency_ms,
        network.transmission_ms,
        params.match_ms,
        params.forward_ms,
        params.unit_ms,
    )
    events, ended = loop(state, costs, visits, messages.time_ms, messages.route, messages.control,
                         empty_heap())  # fmt: skip
    sizes = np.diff(visits.starts)[messages.route[~messages.control]]
    return SimulationResult(
        links=network.links,
        events=events,
        ended_ms=ended,
        publications=len(sizes),
        brokers_max=int(sizes.max(initial=0)),
        processed=state.processed,
        arrived=state.arrived,
        peak=state.peak,
        waited_ms=state.waited,
        link=state.link.reshape(-1, 2),
        control=state.control.reshape(-1, 2),
        delays_ms=state.delays,
    )


class State(NamedTuple):
    """What changes in a run: per broker, per direction of a link, per arrival.

    ``count`` is the load in the current window ``window``; ``held`` is the delay that the next
    message forwarded owes (rule), ``free`` when the broker is idle again (queue).
    """

    processed: Longs
    arrived: Longs
    peak: Longs
    count: Longs
    window: Floats
    held: Floats
    waited: Floats
    link: Longs
    control: Longs
    free: Floats
    delays: Floats
