"""A problem, a tree and messages in; what happened out: loads, congestion, every delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.tables import arrow_schema
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import Counts, ratio
from fanplan.network.latency import Timing
from fanplan.network.trees import Trees
from fanplan.simulation.events import SIZE, empty_queue, has_room, roomier
from fanplan.simulation.legs import PERCENTILES
from fanplan.simulation.loop import EVENTS, EventTimes, LoopState, enter_first, loop, still
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import CONGESTION, SimulationParams
from fanplan.simulation.spread import (
    RouteTree,
    RouteVisits,
    SimulatedNetwork,
    load_by_matches,
    spread_routes,
)
from fanplan.simulation.tables import RUN_BROKERS, RUN_LINKS


@dataclass(frozen=True, eq=False)
class SimulationResult(Counts):
    """Counts per broker, per link and per arrival of a run.

    ``peak`` is the most messages of a broker in one window, control messages included,
    ``waited_ms`` the time they spent there for congestion. ``control`` has control messages as
    ``link`` has publications. ``delays_ms`` is in the order of arrival. ``brokers_max`` is the most
    brokers that one publication visited. From the visits ``served`` messages go on to subscribers,
    after ``served_ms``. ``assumed`` says of which links the latency is not known.
    """

    links: Ints
    assumed: Bools
    events: int
    ended_ms: float
    publications: int
    brokers_max: int
    processed: Longs
    arrived: Longs
    peak: Longs
    waited_ms: Floats
    link: Longs
    control: Longs
    delays_ms: Floats
    served: Longs
    served_ms: Floats

    @property
    def delay_mean_ms(self) -> float:
        """Message latency: from entry to the broker of a subscriber."""
        return ratio(float(self.delays_ms.sum()), self.arrivals)

    @property
    def peak_mean(self) -> float:
        """Average peak load, over all brokers, in messages per window."""
        return float(self.peak.mean())

    @property
    def processing_delay_ms(self) -> float:
        """Average processing delay: what congestion costs a publication at a broker it visits."""
        return ratio(float(self.waited_ms.sum()), int(self.processed.sum()))

    @property
    def degree(self) -> Longs:
        """Number of links of each broker."""
        return np.bincount(self.links.ravel(), minlength=len(self.processed))

    def percentiles_ms(self) -> dict[str, float]:
        """Delays that 50, 90 and 99 of a hundred arrivals do not exceed; 0 without arrivals."""
        if not len(self.delays_ms):
            return {f"delay_p{percent}_ms": 0.0 for percent in PERCENTILES}
        values = np.percentile(self.delays_ms, PERCENTILES, method="inverted_cdf")
        return {f"delay_p{p}_ms": float(v) for p, v in zip(PERCENTILES, values, strict=True)}

    def summary(self) -> dict[str, float]:
        """All figures that are one number."""
        return {
            "events": self.events,
            "ended_ms": self.ended_ms,
            "publications": self.publications,
            "arrivals": len(self.delays_ms),
            "link_messages": int(self.link.sum()),
            "control_messages": int(self.control.sum()),
            "messages_per_publication": self.messages_per_publication,
            "messages_per_arrival": self.messages_per_arrival,
            "brokers_per_publication": self.brokers_per_publication,
            "brokers_max": self.brokers_max,
            "delay_mean_ms": self.delay_mean_ms,
            **self.percentiles_ms(),
            "delay_max_ms": float(self.delays_ms.max(initial=0.0)),
            "processed_mean": float(self.processed.mean()),
            "processed_max": int(self.processed.max()),
            "degree_max": int(self.degree.max()),
            "forwarding_ratio": self.forwarding_ratio,
            "peak_mean": self.peak_mean,
            "processing_delay_ms": self.processing_delay_ms,
        }

    def broker_table(self, problem: OverlayProblem) -> pa.Table:
        """One row per broker."""
        counts = self.degree, self.processed, self.arrived, self.forwarded, self.peak
        limits = pa.array(problem.capacity, mask=~np.isfinite(problem.capacity))
        columns = [problem.brokers, *counts, self.waited_ms, limits]
        return pa.table(columns, schema=arrow_schema(RUN_BROKERS))

    def link_table(self, problem: OverlayProblem) -> pa.Table:
        """One row per link, with the messages in each direction."""
        ends = [problem.brokers.take(pa.array(end)) for end in self.links.T]
        return pa.table([*ends, *self.link.T, *self.control.T], schema=arrow_schema(RUN_LINKS))


def simulate_tree(
    problem: OverlayProblem,
    edges: Ints,
    messages: Messages,
    params: SimulationParams,
    matches: Longs | None = None,
) -> SimulationResult:
    """What a tree of the problem's brokers does with messages on the problem's routes.

    A message is one of a broker's load. With ``matches``, for each destination of the routes, one
    from elsewhere counts for every subscriber that it matches (Tajuddin 2011, Eq. 6.2). Same input,
    same events. Time O(events × log of what is under way), memory O(arrivals + visits).
    """
    edges = np.asarray(edges, np.int32).reshape(-1, 2)
    require_spanning(problem, edges)
    one = np.zeros(problem.size, np.int32)
    trees = Trees(edges, (np.arange(len(edges)),), one)
    return simulate_trees(problem, trees, messages, params, matches)


def simulate_trees(
    problem: OverlayProblem,
    trees: Trees,
    messages: Messages,
    params: SimulationParams,
    matches: Longs | None = None,
) -> SimulationResult:
    """The same of several trees, each with the messages that enter where it is taken."""
    require_capacity(problem)
    network = known_network(problem, trees.links, params.latency_ms)
    routed = trees.of[problem.routes.source].astype(np.int64)
    ways = spread_routes(
        network, problem.routes, [RouteTree(member) for member in trees.members], routed
    )
    if matches is not None:
        load_by_matches(ways, problem.routes, matches)
    return run_messages(network, ways, problem.capacity, messages, params)


def require_spanning(problem: OverlayProblem, edges: Ints) -> None:
    if len(edges) != problem.size - 1 or not ((edges >= 0) & (edges < problem.size)).all():
        what = f"{len(edges)} links are no tree of {problem.size} brokers"
        remedy = "Give one link less than there are brokers, as positions of brokers"
        raise InputError(Problem("tree", what, remedy))


def require_capacity(problem: OverlayProblem) -> None:
    for broker in np.flatnonzero(~(problem.capacity > 0)):
        where = f"broker {problem.brokers[int(broker)].as_py()!r}"
        remedy = "Give a positive number of messages per second, or leave it out"
        raise InputError(Problem(where, "has no capacity", remedy))


def known_network(problem: OverlayProblem, links: Ints, latency_ms: float) -> SimulatedNetwork:
    """Links with what the problem knows of them; where it knows no latency, with this one."""
    taken = Timing(problem.size, problem.links, latency_ms).over_links(links)
    busy = np.zeros(len(links))
    if problem.links is not None:
        busy = 1000.0 / problem.links.bandwidth[problem.given(links)]
    return SimulatedNetwork(problem.size, links, taken.ms, busy, taken.assumed)


def run_messages(
    network: SimulatedNetwork,
    ways: RouteVisits,
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
    arrives, serves = ways.visits["arrives"] > 0, ways.visits["serves"] > 0
    before = np.concatenate(([0], np.cumsum(arrives | serves, dtype=np.int64)))
    noted = (before[ways.starts[sent + 1]] - before[ways.starts[sent]]).sum()
    state = still(network.brokers, len(network.links), int(noted))
    ended = play(state, event_times(network, capacity, params), ways, messages)
    going = serves[state.noted]
    return SimulationResult(
        links=network.links,
        assumed=np.zeros(len(network.links), bool) if network.assumed is None else network.assumed,
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
        delays_ms=state.delays[arrives[state.noted]],
        served=state.noted[going],
        served_ms=state.delays[going],
    )


def play(state: LoopState, costs: EventTimes, ways: RouteVisits, messages: Messages) -> float:
    """Run the events, in a queue that grows as it must; the time of the last."""
    queue = empty_queue(1 + 2 * len(state.link))
    widest = int(ways.visits["copies"].max(initial=0))
    enter_first(ways, messages.time_ms, messages.route, queue)
    ended = 0.0
    while queue.marks[SIZE] > 0:
        while not has_room(queue, widest + 1):
            queue = roomier(queue)
        sent = messages.time_ms, messages.route, messages.control
        ended = loop(state, costs, ways, *sent, queue, widest)
    return ended


def require_routes(messages: Messages, ways: RouteVisits) -> None:
    known = len(ways.starts) - 1
    unknown = messages.route[(messages.route < 0) | (messages.route >= known)]
    if len(unknown):
        what = f"a message takes route {unknown[0]}, but there are {known}"
        raise InputError(Problem("messages", what, "Give positions of routes"))


def event_times(
    network: SimulatedNetwork, capacity: Floats, params: SimulationParams
) -> EventTimes:
    """The parameters as the loop wants them; capacities per window."""
    return EventTimes(
        CONGESTION.index(params.congestion),
        capacity * (params.unit_ms / 1000.0),
        network.latency_ms,
        network.transmission_ms,
        float(params.match_ms),
        float(params.forward_ms),
        float(params.unit_ms),
    )
