"""Explanations name real costs: those of the map with the row or the subscriber moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from datasets import Flow, World, make_problem, plan_dataset, unhurried, write_dataset
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.data.dataset import Dataset
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.explain import explain_name, explain_row, explain_subscriber
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.show import told_flow

USERS, CHANNELS = 5, 3
rows = st.lists(
    st.tuples(
        st.sets(st.integers(0, USERS - 1), min_size=1),
        st.integers(1, 9),
        st.sets(st.integers(0, CHANNELS - 1), max_size=2),
    ),
    min_size=1,
    max_size=6,
)
members = st.sets(st.tuples(st.integers(0, CHANNELS - 1), st.integers(0, USERS - 1)))
weights = st.builds(Weights, *[st.sampled_from([0.5, 1.0, 2.0])] * 3)


def served(problem: InterestProblem, carried: list[set[int]], joined: set[Any]) -> ChannelMap:
    """The map in which whoever wants a row and is on none of its channels gets it by unicast."""
    direct = [
        (row, int(user))
        for row in range(problem.size)
        for user in problem.audience[problem.indptr[row] : problem.indptr[row + 1]]
        if not any((channel, user) in joined for channel in carried[row])
    ]
    assigned = [(row, channel) for row, mine in enumerate(carried) for channel in mine]
    columns = [np.array(list(found)).reshape(-1, 2).T for found in (assigned, joined, direct)]
    return ChannelMap(CHANNELS, *(map_pairs(*both) for both in columns))


def total(problem: InterestProblem, map: ChannelMap, w: Weights) -> float:
    return cost(analytic_ledger(problem, map), w) / problem.seconds


@unhurried
@given(rows, members, weights)
def test_a_row_costs_what_it_adds_and_the_runner_up_is_the_cheapest_other_place(
    instance: Any, joined: Any, w: Weights
) -> None:
    problem = make_problem([a for a, _, _ in instance], [float(m) for _, m, _ in instance], USERS)
    carried = [set(channels) for _, _, channels in instance]
    told = explain_row(problem, served(problem, carried, joined), w, 0)
    others = total(problem, served(problem, carried, joined), w) - told["cost"]
    tried = {
        mine: total(problem, served(problem, [set(mine), *carried[1:]], joined), w) - others
        for mine in [(), *((j,) for j in range(CHANNELS))]
        if set(mine) != carried[0] and (not mine or any(c == mine[0] for c, _ in joined))
    }
    if not tried:
        assert told["runner_up"] == "none"
        return
    assert np.isclose(told["runner_up_cost"], min(tried.values()))
    name: dict[tuple[int, ...], str] = {(j,): f"channel {j}" for j in range(CHANNELS)}
    name[()] = "unicast"
    assert told["runner_up"] in {
        name[mine] for mine, price in tried.items() if np.isclose(price, told["runner_up_cost"])
    }


@unhurried
@given(rows, members, weights, st.integers(0, USERS - 1))
def test_joining_saves_what_leaving_would_cost(
    instance: Any, joined: Any, w: Weights, user: int
) -> None:
    problem = make_problem([a for a, _, _ in instance], [float(m) for _, m, _ in instance], USERS)
    carried = [set(channels) for _, _, channels in instance]
    map = served(problem, carried, joined)
    told = explain_subscriber(problem, map, w, user)
    here = total(problem, map, w)
    assert {option["channel"] for option in told["joined"]} == {
        c for c, who in joined if who == user
    }
    for option in told["joined"]:
        without = served(problem, carried, joined - {(option["channel"], user)})
        assert np.isclose(total(problem, without, w) - here, option["saves"])
    if told["runner_up"] is not None:
        more = served(problem, carried, joined | {(told["runner_up"]["channel"], user)})
        assert np.isclose(here - total(problem, more, w), told["runner_up"]["saves"])


def test_without_unicast_only_channels_that_serve_all_are_other_places() -> None:
    problem = make_problem([{0, 1}], [2.0], USERS)
    joined = {(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)}
    told = explain_row(problem, served(problem, [{0}], joined), Weights(), 0, unicast=False)
    assert (told["runner_up"], told["runner_up_cost"]) == ("channel 2", 8.0)


def test_a_flow_is_told_in_words(tmp_path: Path) -> None:
    flows = (Flow(frozenset()), Flow(frozenset({0})), Flow(frozenset({1, 2}), cell=(4,)))
    dataset = Dataset(write_dataset(tmp_path / "data", World(flows, 3)))
    plan = plan_dataset(dataset.path, "unicast")
    for name, words in (
        ("t1", "all of it; 1 subscriber: s0"),
        ("t2[4]", "a part of it; 2 subscribers: s1 and s2"),
    ):
        (told,) = explain_name(plan, dataset, name)
        assert told["description"] == words
        (lines,) = told_flow(told)
        assert f"  {words}" in lines.lines  # type: ignore[union-attr]
