"""The model: messages through brokers and links, event by event, in one compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Longs
from fanplan.core.kernels import bare, compiled
from fanplan.simulation.events import SEQUENCE_BITS, SIZE, Queue, drop, has_room, put_event
from fanplan.simulation.params import CONGESTION
from fanplan.simulation.spread import RouteVisits

# Kinds of event: a message enters, a copy comes to a broker, a copy is ready for a slow link.
ENTER, ARRIVE, DEPART = range(3)

# Priorities at one time: control messages, then what is under way, then what enters.
CONTROL, COPY, ENTRY = (priority << SEQUENCE_BITS for priority in range(3))

# The line of messages that wait for nothing.
COMMON = 0

# Positions of the counts of a run.
EVENTS, SEQUENCE, NOTED = range(3)

RULE, QUEUE, EVERY = (CONGESTION.index(kind) for kind in ("rule", "queue", "every"))


class EventTimes(NamedTuple):
    """What takes time. ``capacity`` is messages per window of ``unit``; all times are ms."""

    congestion: int
    capacity: Floats
    latency: Floats
    transmission: Floats
    match: float
    forward: float
    unit: float


class LoopState(NamedTuple):
    """What changes in a run: per broker, per direction of a link, per arrival.

    ``load`` counts messages in the current ``window``. ``held`` is the delay that the next message
    forwarded owes (rule), ``idle`` when the broker will be free (queue), ``clear`` when the
    direction of a link will be. ``delays`` are those of visits that arrive or serve, which are
    ``noted``. ``counts`` are events, events ever put in, and visits that are noted.
    """

    processed: Longs
    arrived: Longs
    peak: Longs
    load: Longs
    window: Longs
    held: Floats
    idle: Floats
    waited: Floats
    link: Longs
    control: Longs
    clear: Floats
    delays: Floats
    noted: Longs
    counts: Longs


def still(brokers: int, links: int, noted: int) -> LoopState:
    """Nothing has happened yet."""
    processed, arrived, peak, load, window = np.zeros((5, brokers), np.int64)
    held, idle, waited = np.zeros((3, brokers))
    link, control = np.zeros((2, 2 * links), np.int64)
    clear, delays, visits = np.zeros(2 * links), np.zeros(noted), np.zeros(noted, np.int64)
    counts = np.zeros(3, np.int64)
    return LoopState(
        processed, arrived, peak, load, window, held, idle, waited, link, control, clear, delays,
        visits, counts,
    )  # fmt: skip


def enter_first(ways: RouteVisits, time: Floats, route: Longs, queue: Queue) -> None:
    """Let the first message enter."""
    if len(route):
        put_event(queue, NONE, NONE, time[0], ENTRY, ENTER, 0, ways.starts[route[0]])


@compiled(_nrt=False)
def loop(
    state: LoopState,
    costs: EventTimes,
    ways: RouteVisits,
    time: Floats,
    route: Longs,
    control: np.ndarray,
    queue: Queue,
    widest: int,
) -> float:
    """Run until nothing is under way, or the queue may lack room; the time of the last event.

    Messages come in order, and only the next one to enter is in the queue. No visit causes more
    than ``widest`` copies. The loop may be entered again with a roomier queue.
    """
    now = 0.0
    while queue.marks[SIZE] > 0 and has_room(queue, widest + 1):
        event = queue.slots[queue.heap[0].slot]
        now, hop, message, kind = event.time, event.hop, event.message, event.kind
        drop(queue)
        visit = ways.visits[hop]
        state.counts[EVENTS] += 1
        if kind == DEPART:
            come = transmit(state, costs, visit.link, now)
            rank = next_rank(state, CONTROL if control[message] else COPY)
            put_event(queue, NONE, 1 + visit.link, come, rank, ARRIVE, message, hop)
            continue
        if kind == ENTER and message + 1 < len(route):
            coming = message + 1
            rank = next_rank(state, CONTROL if control[coming] else ENTRY)
            put_event(
                queue, NONE, NONE, time[coming], rank, ENTER, coming, ways.starts[route[coming]]
            )
        ready, waited = process(state, costs, visit, now, control[message])
        if (visit.arrives or visit.serves) and not control[message]:
            state.delays[state.counts[NOTED]] = ready - time[message]
            state.noted[state.counts[NOTED]] = hop
            state.counts[NOTED] += 1
        send_copies(state, costs, ways, hop, ready, waited, message, control[message], queue)
    return now


@bare
def next_rank(state: LoopState, priority: int) -> int:
    """The rank of the next event to be put in."""
    state.counts[SEQUENCE] += 1
    result: int = priority + state.counts[SEQUENCE]
    return result


@bare
def process(
    state: LoopState, costs: EventTimes, visit: np.record, now: float, control: bool
) -> tuple[float, bool]:
    """A broker takes up a message; when it has served and matched it, and whether it waited."""
    broker = visit.broker
    count_load(state, costs, broker, now, visit.load)
    if not control:
        state.processed[broker] += 1
        state.arrived[broker] += visit.arrives
    begin, service = now, 0.0
    if costs.congestion == QUEUE:
        begin = max(now, state.idle[broker])
        service = costs.unit / costs.capacity[broker]
        state.idle[broker] = begin + service
        state.waited[broker] += begin - now
    return begin + service + (costs.match if visit.matched else 0.0), begin > now


@bare
def count_load(state: LoopState, costs: EventTimes, broker: int, now: float, load: int) -> None:
    """One message more in the window; a new window knows how far the last was over capacity.

    Tajuddin (2011), section 6.4.1: for every message above its capacity in the previous time unit,
    the next message that the broker forwards waits one tick, or by the appendix each of them.
    """
    window = int(now / costs.unit)
    if window != state.window[broker]:
        last = state.load[broker] if window == state.window[broker] + 1 else 0
        state.held[broker] = max(0.0, last - costs.capacity[broker])
        state.window[broker], state.load[broker] = window, 0
    state.load[broker] += load
    state.peak[broker] = max(state.peak[broker], state.load[broker])


@bare
def send_copies(
    state: LoopState,
    costs: EventTimes,
    ways: RouteVisits,
    hop: int,
    ready: float,
    waited: bool,
    message: int,
    control: bool,
    queue: Queue,
) -> None:
    """Send the copies of a visit one after another.

    What waits for nothing comes in the order it is sent, or nearly so: it stands in a common line.
    The rest has a line for each direction of a link, and one more for copies that wait for it. What
    the rule holds up is overtaken by what follows, so it stands in no line.
    """
    visit = ways.visits[hop]
    if visit.copies == 0:
        return
    broker = visit.broker
    ruled = costs.congestion == RULE or costs.congestion == EVERY
    held = state.held[broker] if ruled else 0.0
    ready += held
    state.waited[broker] += held
    if costs.congestion == RULE:
        state.held[broker] = 0.0
    common = NONE if waited or held > 0.0 else COMMON
    for copy in range(visit.first, visit.first + visit.copies):
        link = ways.visits[copy].link
        state.link[link] += not control
        state.control[link] += control
        ready += costs.forward
        rank = next_rank(state, CONTROL if control else COPY)
        # A slow link must see its copies in the order they leave: that takes an event of its own.
        if costs.transmission[link >> 1] > 0.0:
            own = NONE if held > 0.0 else 1 + len(state.link) + link
            put_event(queue, NONE, own, ready, rank, DEPART, message, copy)
        else:
            own = NONE if held > 0.0 else 1 + link
            come = ready + costs.latency[link >> 1]
            put_event(queue, common, own, come, rank, ARRIVE, message, copy)


@bare
def transmit(state: LoopState, costs: EventTimes, link: int, now: float) -> float:
    """Put a copy on a slow link, after those that went before; when it comes to the other end."""
    state.clear[link] = max(now, state.clear[link]) + costs.transmission[link >> 1]
    result: float = state.clear[link] + costs.latency[link >> 1]
    return result
