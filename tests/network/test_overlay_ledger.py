"""The ledger of a tree: what a hand, or a slow count, finds too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.network.brokers import Routes
from fanplan.network.carried import overlay_ledger, overlay_ledger_of, route_costs
from fanplan.network.trees import Trees


def routes(*given: tuple[int, list[int], float]) -> Routes:
    source, ends, messages = zip(*given, strict=True)
    return Routes(
        np.array(source, np.int32),
        np.cumsum([0, *map(len, ends)]),
        np.array([end for one in ends for end in one], np.int32),
        np.array(messages, np.float64),
        np.array(messages, np.float64) * [len(one) for one in ends],
    )


def path(edges: list[tuple[int, int]], a: int, b: int) -> list[tuple[int, int, int]]:
    """Steps (edge, from, to) from a to b, by depth-first search."""
    todo: list[tuple[int, list[tuple[int, int, int]]]] = [(a, [])]
    while todo:
        here, steps = todo.pop()
        if here == b:
            return steps
        for e, ends in enumerate(edges):
            there = sum(ends) - here
            if here in ends and not any(there == step[1] for step in steps):
                todo.append((there, [*steps, (e, here, there)]))
    raise AssertionError("no path")


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Routes]:
    size = draw(st.integers(1, 9))
    names = draw(st.permutations(range(size)))
    edges = [
        draw(st.permutations([names[draw(st.integers(0, i - 1))], names[i]]))
        for i in range(1, size)
    ]
    latency = [draw(st.integers(0, 9)) for _ in edges]
    broker = st.integers(0, size - 1)
    route = st.tuples(broker, st.sets(broker).map(sorted), st.integers(0, 4).map(float))
    table = draw(st.lists(route, min_size=1, max_size=5))
    return np.array(edges, np.int32).reshape(-1, 2), np.array(latency, float), routes(*table)


@given(cases())
def test_the_ledger_is_what_a_slow_count_finds(case: tuple[Any, ...]) -> None:
    edges, latency, table = case
    pairs = [tuple(pair) for pair in edges.tolist()]
    link, processed = np.zeros((len(edges), 2)), np.zeros(len(edges) + 1)
    arrived, delay = np.zeros(len(edges) + 1), 0.0
    for route in range(len(table)):
        source, count = int(table.source[route]), table.messages[route]
        steps = [path(pairs, source, int(end)) for end in table.destinations(route)]
        delay += count * sum(latency[e] for one in steps for e, _, _ in one)
        arrived[table.destinations(route)] += count
        crossed = {step for one in steps for step in one}
        for e, here, _ in crossed:
            link[e, 0 if pairs[e][0] == here else 1] += count
        processed[[source, *{there for _, _, there in crossed}]] += count
    ledger = overlay_ledger(edges, latency, table)
    assert ledger.link.tolist() == link.tolist()
    assert ledger.processed.tolist() == processed.tolist()
    assert ledger.arrived.tolist() == arrived.tolist()
    assert (ledger.delay, ledger.publications) == (delay, table.messages.sum())


def test_figure_5_4_has_4_and_3_messages_at_two_links_each() -> None:
    table = routes((2, [0, 4], 1.0))
    for where, count in ((1, 4), (3, 3)):
        edges = np.array([(0, where), (1, 2), (2, 3), (3, 4)], np.int32)
        ledger = overlay_ledger(edges, 100.0, table)
        assert ledger.link_messages == ledger.messages_per_publication == count
        assert ledger.messages_per_arrival == count / 2
        assert ledger.delay_mean == 200.0


def test_means_of_nothing_are_0() -> None:
    ledger = overlay_ledger(np.array([(0, 1)], np.int32), 1.0, routes((0, [], 0.0)))
    assert ledger.messages_per_publication == ledger.messages_per_arrival == ledger.delay_mean == 0


@pytest.mark.parametrize("edges", [[(0, 1), (1, 0)], [(0, 1), (2, 2)], [(0, 1), (1, 3)]])
def test_what_is_no_tree_is_refused(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match="tree"):
        overlay_ledger(np.array(edges, np.int32), 1.0, routes((0, [1], 1.0)))


def test_each_source_takes_its_tree_and_shared_links_add_up() -> None:
    table = routes((0, [2], 3.0), (1, [0, 2], 5.0))
    links = np.array([(0, 1), (0, 2), (1, 2)], np.int32)
    members = (np.array([0, 1]), np.array([0, 2]))
    trees = Trees(links, members, np.array([0, 1, 0], np.int32))
    ledger = overlay_ledger_of(trees, np.array([1.0, 10.0, 100.0]), table)
    assert ledger.link.tolist() == [[0.0, 5.0], [3.0, 0.0], [5.0, 0.0]]
    assert ledger.delay == 3 * 10 + 5 * 1 + 5 * 100
    assert ledger.processed.tolist() == [8.0, 5.0, 8.0]
    crossed, delay = route_costs(links[members[1]], np.array([1.0, 100.0]), table)
    assert (crossed.tolist(), delay.tolist()) == ([6.0, 10.0], [303.0, 505.0])


def test_forwarding_is_the_mean_over_busy_brokers() -> None:
    edges = np.array([(0, 1), (1, 2), (2, 3)], np.int32)
    ledger = overlay_ledger(edges, 1.0, routes((0, [0, 2], 2.0)))
    assert ledger.forwarded.tolist() == [0.0, 2.0, 0.0, 0.0]
    assert ledger.forwarding_ratio == 1 / 3
    assert ledger.brokers_per_publication == 3.0
