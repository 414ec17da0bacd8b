"""The simulator: equal to the ledger, to a plain simulation in Python, and to the thesis' text."""

from __future__ import annotations

import heapq
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError
from fanplan.network.brokers import Links, OverlayProblem, Routes, no_similarity
from fanplan.network.carried import overlay_ledger
from fanplan.simulation.messages import Messages, as_publications, publications_of
from fanplan.simulation.params import CONGESTION, SimulationParams
from fanplan.simulation.simulate import SimulationResult, run_messages, simulate_tree
from fanplan.simulation.spread import RouteTree, SimulatedNetwork, spread_routes


def routes(*given: tuple[int, list[int]]) -> Routes:
    source, ends = zip(*given, strict=True)
    return Routes(
        np.array(source, np.int32),
        np.cumsum([0, *map(len, ends)]),
        np.array([end for one in ends for end in one], np.int32),
        np.ones(len(source)),
        np.array([float(len(one)) for one in ends]),
    )


def problem(
    table: Routes, size: int, capacity: float = np.inf, links: Links | None = None
) -> OverlayProblem:
    names = pa.array([f"b{i}" for i in range(size)])
    full = np.full(size, float(capacity))
    return OverlayProblem(
        names, full, np.ones(size), table, no_similarity(size), links, 1.0, "test"
    )


def chain(size: int) -> np.ndarray:
    return np.array([(i, i + 1) for i in range(size - 1)], np.int32).reshape(-1, 2)


def on_route_0(messages: int) -> Longs:
    return np.zeros(messages, np.int64)


def everything(result: SimulationResult) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(result).items()
    }


@st.composite
def trees(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.integers(1, 8))
    names = draw(st.permutations(range(size)))
    edges = [
        draw(st.permutations([names[draw(st.integers(0, i - 1))], names[i]]))
        for i in range(1, size)
    ]
    return np.array(edges, np.int32).reshape(-1, 2)


@st.composite
def runs(draw: st.DrawFn) -> tuple[np.ndarray, Routes, Messages]:
    edges = draw(trees())
    broker = st.integers(0, len(edges))
    table = draw(st.lists(st.tuples(broker, st.sets(broker).map(sorted)), min_size=1, max_size=4))
    message = st.tuples(st.integers(0, 30), st.integers(0, len(table) - 1), st.booleans())
    sent = draw(st.lists(message, max_size=12))
    time, route, control = (np.array([one[i] for one in sent]) for i in range(3))
    messages = Messages(time.astype(float), route.astype(np.int64), control.astype(bool))
    return edges, routes(*table), messages


@given(runs())
def test_on_an_idle_network_it_is_the_ledger(case: tuple[np.ndarray, Routes, Messages]) -> None:
    edges, table, messages = case
    messages = as_publications(messages.time_ms, messages.route)
    count = np.bincount(messages.route, minlength=len(table)).astype(float)
    table = Routes(table.source, table.starts, table.brokers, count, count)
    result = simulate_tree(
        problem(table, len(edges) + 1), edges, messages, SimulationParams("none")
    )
    ledger = overlay_ledger(edges, 100.0, table)
    assert result.link.tolist() == ledger.link.tolist()
    assert result.processed.tolist() == ledger.processed.tolist()
    assert result.arrived.tolist() == ledger.arrived.tolist()
    assert result.delays_ms.sum() == ledger.delay
    assert result.messages_per_publication == ledger.messages_per_publication
    assert result.messages_per_arrival == ledger.messages_per_arrival


class Plain:
    """The model once more, as plainly as Python allows: one heap, sets, and tuples as events."""

    def __init__(
        self, network: SimulatedNetwork, table: Routes, capacity: np.ndarray, params: Any
    ) -> None:
        self.network, self.table, self.capacity, self.params = network, table, capacity, params
        self.heap: list[tuple[Any, ...]] = []
        self.sequence = 0
        self.delays: list[float] = []
        self.free: dict[Any, float] = {}
        self.load: dict[tuple[int, int], int] = {}
        self.paid: set[tuple[int, int]] = set()
        self.waited = np.zeros(network.brokers)

    def needs(self, here: int, before: int, route: int) -> list[int]:
        """Neighbours, but the one before, behind which there is a destination."""
        wanted = set(self.table.destinations(route).tolist())
        return [
            there
            for there in self.neighbours(here)
            if there != before and wanted & self.behind(there, here)
        ]

    def neighbours(self, here: int) -> list[int]:
        return [int(sum(ends) - here) for ends in self.network.links if here in ends]

    def behind(self, there: int, here: int) -> set[int]:
        more = [self.behind(next_, there) for next_ in self.neighbours(there) if next_ != here]
        return {there}.union(*more)

    def put(self, time: float, priority: int, *what: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (time, priority, self.sequence, *what))

    def run(self, messages: Messages) -> list[float]:
        for born, route, control in zip(
            messages.time_ms.tolist(), messages.route.tolist(), messages.control, strict=True
        ):
            source = int(self.table.source[route])
            self.put(born, 0 if control else 2, "arrive", route, -1, source, born, control)
        while self.heap:
            time, _, _, kind, *what = heapq.heappop(self.heap)
            self.arrive(time, *what) if kind == "arrive" else self.depart(time, *what)
        return self.delays

    def arrive(
        self, now: float, route: int, before: int, here: int, born: float, control: bool
    ) -> None:
        params, window = self.params, int(now / self.params.unit_ms)
        self.load[here, window] = self.load.get((here, window), 0) + 1
        ready = now
        if params.congestion == "queue":
            begin = max(now, self.free.get(here, 0.0))
            self.waited[here] += begin - now
            ready = self.free[here] = begin + 1000.0 / self.capacity[here]
        ready += params.match_ms
        if here in self.table.destinations(route) and not control:
            self.delays.append(ready - born)
        copies = self.needs(here, before, route)
        free = params.congestion == "rule" and (here, window) in self.paid
        if params.congestion in ("rule", "every") and copies and not free:
            self.paid.add((here, window))
            most = self.capacity[here] * params.unit_ms / 1000.0
            held = max(0.0, self.load.get((here, window - 1), 0) - most)
            ready += held
            self.waited[here] += held
        for there in copies:
            self.put(ready, 0 if control else 1, "depart", route, here, there, born, control)

    def depart(
        self, now: float, route: int, here: int, there: int, born: float, control: bool
    ) -> None:
        ends = [{*pair} for pair in self.network.links.tolist()]
        link = ends.index({here, there})
        clear = max(now, self.free.get((here, there), 0.0)) + self.network.transmission_ms[link]
        self.free[here, there] = clear
        come = clear + self.network.latency_ms[link]
        self.put(come, 0 if control else 1, "arrive", route, here, there, born, control)


@given(runs(), st.sampled_from(CONGESTION), st.integers(0, 3), st.booleans(), st.randoms())
def test_loads_and_waits_are_those_of_a_plain_simulation(
    case: tuple[np.ndarray, Routes, Messages], congestion: Any, match: int, slow: bool, rng: Any
) -> None:
    """Times at which two messages meet by chance could be told apart either way: none here do."""
    edges, table, messages = case
    time = messages.time_ms + np.arange(len(messages)) / 64
    messages = Messages(time, messages.route, messages.control).in_order()
    latency = np.array([7.0 + 2.0 ** -rng.randrange(10, 20) for _ in edges])
    transmission = np.full(len(edges), 3.0 if slow else 0.0)
    network = SimulatedNetwork(len(edges) + 1, edges, latency, transmission)
    capacity = np.array([rng.choice([100.0, 150.0, 300.0]) for _ in range(len(edges) + 1)])
    params = SimulationParams(congestion, match_ms=float(match), unit_ms=10.0)
    ways = spread_routes(network, table, [RouteTree(np.arange(len(edges)))])
    result = run_messages(network, ways, capacity, messages, params)
    plain = Plain(network, table, capacity, params)
    assert sorted(result.delays_ms) == pytest.approx(sorted(plain.run(messages)))
    assert result.waited_ms == pytest.approx(plain.waited)
    peak = np.zeros(len(edges) + 1, int)
    for (broker, _), load in plain.load.items():
        peak[broker] = max(peak[broker], load)
    assert result.peak.tolist() == peak.tolist()


def test_figure_5_4_has_4_and_3_messages_at_two_links_each() -> None:
    given_ = problem(routes((2, [0, 4])), 5)
    for where, count in ((1, 4), (3, 3)):
        edges = np.array([(0, where), (1, 2), (2, 3), (3, 4)], np.int32)
        result = simulate_tree(
            given_, edges, as_publications(np.zeros(1), on_route_0(1)), SimulationParams()
        )
        assert result.link_messages == count
        assert result.delays_ms.tolist() == [200.0, 200.0]


def test_the_rule_delays_the_next_message_by_what_was_too_much() -> None:
    """Section 6.4.1: 1250 messages at a capacity of 1000 delay the next message by 250 ticks."""
    time = np.concatenate((0.75 * np.arange(1250), [1000.0, 1001.0, 2000.0]))
    given_ = problem(routes((0, [1])), 2, capacity=1000.0)
    result = simulate_tree(
        given_, chain(2), as_publications(time, on_route_0(len(time))), SimulationParams()
    )
    late = result.delays_ms[result.delays_ms != 100.0]
    assert late.tolist() == [350.0]
    assert (result.waited_ms.tolist(), result.peak.tolist()) == ([250.0, 0.0], [1250, 1200])


def test_every_message_of_the_unit_may_be_delayed() -> None:
    """Appendix 8.1.2: each outgoing message waits a tick for every one too much, not the next."""
    time = np.concatenate((0.75 * np.arange(1250), [1000.0, 1001.0, 2000.0]))
    given_ = problem(routes((0, [1])), 2, capacity=1000.0)
    sent = as_publications(time, on_route_0(len(time)))
    result = simulate_tree(given_, chain(2), sent, SimulationParams("every"))
    assert result.delays_ms[result.delays_ms != 100.0].tolist() == [350.0, 350.0]
    assert result.waited_ms.tolist() == [500.0, 0.0]


def test_a_message_may_count_once_for_each_subscriber_that_it_matches() -> None:
    """Eq. 6.2: not where it is published, and a broker that only forwards counts it once."""
    given_ = problem(routes((0, [0, 2]), (1, [2])), 3)
    sent = as_publications(np.zeros(2), np.array([0, 1]))
    matches = np.array([5, 7, 3])
    result = simulate_tree(given_, chain(3), sent, SimulationParams("none"), matches)
    assert result.peak.tolist() == [1, 2, 10]
    assert result.processed.tolist() == [1, 2, 2]


def test_a_queue_serves_one_message_at_a_time() -> None:
    given_ = problem(routes((0, [0])), 1, capacity=10.0)
    sent = as_publications(np.array([0.0, 0.0, 50.0, 900.0]), on_route_0(4))
    result = simulate_tree(given_, chain(1), sent, SimulationParams("queue"))
    assert result.delays_ms.tolist() == [100.0, 200.0, 250.0, 100.0]
    assert result.processing_delay_ms == (100 + 150) / 4


def test_links_have_their_own_latency_and_bandwidth() -> None:
    a, b = np.array([(0, 1), (0, 2), (1, 2)], np.int32).T
    bandwidth = np.array([np.inf, 1.0, 100.0])
    links = Links(a, b, np.array([5.0, 9.0, 7.0]), bandwidth, np.ones(3))
    given_ = problem(routes((0, [2])), 3, links=links)
    sent = as_publications(np.array([0.0, 1.0]), on_route_0(2))
    result = simulate_tree(given_, np.array([(2, 1), (1, 0)]), sent, SimulationParams())
    assert result.delays_ms.tolist() == [5 + 10 + 7, 5 + (10 + 9) + 7]
    no_links = Links(a[:0], b[:0], *np.zeros((3, 0)))
    with pytest.raises(InputError, match="'b2' and 'b1' are linked, but no such"):
        simulate_tree(problem(given_.routes, 3, links=no_links), np.array([(2, 1), (1, 0)]), sent,
                 SimulationParams())  # fmt: skip
    with pytest.raises(InputError, match="'b2' and 'b2' are linked, but no such"):
        simulate_tree(given_, np.array([(2, 2), (0, 0)]), sent, SimulationParams())


def test_matching_and_forwarding_take_time() -> None:
    star = np.array([(0, 1), (0, 2), (0, 3)], np.int32)
    params = SimulationParams("none", match_ms=2.0, forward_ms=10.0)
    sent = as_publications(np.zeros(1), on_route_0(1))
    result = simulate_tree(problem(routes((0, [0, 1, 2, 3])), 4), star, sent, params)
    assert result.delays_ms.tolist() == [2.0, 114.0, 124.0, 134.0]


def test_a_group_may_take_a_shortcut_and_is_matched_once() -> None:
    links = np.array([(0, 1), (1, 2), (2, 3), (0, 3)], np.int32)
    network = SimulatedNetwork(4, links, np.full(4, 10.0), np.zeros(4))
    ways = spread_routes(
        network,
        routes((0, [3]), (0, [3])),
        [RouteTree(np.arange(3)), RouteTree(np.array([3]), matched_once=True)],
        np.array([0, 1]),
    )
    sent = as_publications(np.zeros(2), np.arange(2))
    result = run_messages(network, ways, np.ones(4), sent, SimulationParams("none", match_ms=1.0))
    assert result.delays_ms.tolist() == [10 + 1, 30 + 4]
    assert result.link.tolist() == [[1, 0], [1, 0], [1, 0], [1, 0]]
    with pytest.raises(InputError, match="broker 2 of route 0 is not in the route's tree"):
        spread_routes(network, routes((0, [2])), [RouteTree(np.array([3]))])


def test_control_messages_go_first_and_are_counted_apart() -> None:
    sent = Messages(np.zeros(2), np.zeros(2, np.int64), np.array([False, True]))
    given_ = problem(routes((0, [1])), 2, capacity=100.0)
    result = simulate_tree(given_, chain(2), sent, SimulationParams("queue"))
    assert result.delays_ms.tolist() == [20.0 + 100.0 + 10.0]
    assert (result.link.tolist(), result.control.tolist()) == ([[1, 0]], [[1, 0]])
    assert (result.publications, result.processed.tolist(), result.events) == (1, [1, 1], 4)


def test_same_input_same_events_and_the_queue_grows() -> None:
    size = 3000
    star = np.array([(0, i) for i in range(1, size)], np.int32)
    given_ = problem(routes((0, list(range(1, size))), (5, list(range(size)))), size, 1000.0)
    sent = publications_of(given_.routes, 0.001, seed=3)
    results = [simulate_tree(given_, star, sent, SimulationParams("queue")) for _ in range(2)]
    assert everything(results[0]) == everything(results[1])
    assert results[0].events == 2 * size
    assert results[0].brokers_max == size


def test_publications_of_routes_are_as_many_as_their_messages() -> None:
    table = routes((0, [0]), (0, []))
    table = Routes(table.source, table.starts, table.brokers, np.array([3.0, 400.5]), np.ones(2))
    sent = publications_of(table, 10.0, seed=1)
    counts = {int((publications_of(table, 1.0, seed).route == 1).sum()) for seed in range(20)}
    assert (sent.route == 0).sum() == 3
    assert counts == {400, 401}
    assert 0 <= sent.time_ms.min() < sent.time_ms.max() < 10_000


def test_the_tables_and_the_summary_add_up() -> None:
    table = routes((1, [0, 3]), (2, []))
    given_ = problem(table, 4)
    sent = as_publications(np.array([0.0, 5.0, 6.0]), np.array([0, 0, 1]))
    result = simulate_tree(given_, chain(4), sent, SimulationParams())
    brokers = result.broker_table(given_).to_pydict()
    assert brokers["processed"] == [2, 2, 3, 2]
    assert brokers["forwarded"] == [0, 2, 3, 0]
    assert brokers["degree"] == [1, 2, 2, 1]
    links = result.link_table(given_).to_pydict()
    assert (links["a"], links["a_to_b"]) == (["b0", "b1", "b2"], [0, 2, 2])
    assert links["b_to_a"] == [2, 0, 0]
    summary = result.summary()
    assert summary["link_messages"] == sum(links["a_to_b"]) + sum(links["b_to_a"])
    assert summary["messages_per_publication"] == 6 / 3
    assert summary["messages_per_arrival"] == 6 / 4
    assert (summary["delay_mean_ms"], summary["delay_p50_ms"]) == (150.0, 100.0)
    assert summary["forwarding_ratio"] == (0 + 1 + 1 + 0) / 4
    assert summary["brokers_per_publication"] == 9 / 3


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda p, m: simulate_tree(p, chain(3), m, SimulationParams()),
         "2 links are no tree of 2"),
        (lambda p, m: simulate_tree(p, chain(2) + 1, m, SimulationParams()), "no tree"),
        (lambda p, m: simulate_tree(problem(p.routes, 2, 0.0), chain(2), m, SimulationParams()),
         "broker 'b0': has no capacity"),
        (lambda p, m: simulate_tree(p, chain(2), as_publications(m.time_ms, m.route + 1),
                               SimulationParams()), "route 1, but there are 1"),
        (lambda p, m: as_publications(m.time_ms - 1, m.route), "negative"),
        (lambda p, m: as_publications(np.zeros(2), m.route), "2 times, 1 routes"),
        (lambda p, m: SimulationParams(cast(Any, "jam")),
         "'jam' is unknown. Use one of: rule, every, queue, none"),
        (lambda p, m: SimulationParams(unit_ms=0.0, match_ms=-1.0), "(?s)match_ms.*unit_ms"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(what: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        what(problem(routes((0, [1])), 2), as_publications(np.zeros(1), on_route_0(1)))
