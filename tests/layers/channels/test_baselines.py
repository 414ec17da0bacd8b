"""The baseline planners: what each one decides, and what all of them must do."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from datasets import BY_INTEREST, make_problem, unhurried
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.prices import Weights
from fanplan.core.stop import AnyOf, Interrupt, TimeLimit, never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import MethodParams
from fanplan.layers.channels.methods import METHODS, channels_by_method, find_method
from fanplan.layers.channels.published.plain import random_map, round_robin

PROBLEM = make_problem([{0, 1}, {2}, {0, 1}, {1, 3}], [4.0, 1.0, 2.0, 3.0], subscribers=5)

audience_lists = st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=3, max_size=7)


def plan(
    name: str, channels: int = 2, problem: InterestProblem = PROBLEM, seed: int = 0, **params: Any
) -> Any:
    method = find_method(name)
    return channels_by_method(problem, method, method.params(channels, **params), seed)


def members(map: ChannelMap) -> list[tuple[int, int]]:
    return list(zip(map.members.left.tolist(), map.members.right.tolist(), strict=True))


def test_broadcast_is_one_channel_for_everyone_who_wants_something() -> None:
    result = plan("broadcast")
    assert result.map.channels == 1
    assert result.map.assigned.right.tolist() == [0, 0, 0, 0]
    assert members(result.map) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert result.ledger.sent_multicast == 10.0
    assert result.ledger.received_wanted == 19.0
    assert result.ledger.received_unwanted == 21.0


def test_round_robin_deals_flows_in_turn() -> None:
    map = round_robin(PROBLEM, MethodParams(3), 0, never)
    assert map.assigned.right.tolist() == [0, 1, 2, 0]
    assert members(map) == [(0, 0), (0, 1), (0, 3), (1, 2), (2, 0), (2, 1)]


def test_a_channel_that_round_robin_gives_to_one_is_closed() -> None:
    result = plan("round-robin", channels=3)
    assert result.map.channels == 2
    assert result.map.assigned.right.tolist() == [0, 1, 0]
    assert members(result.map) == [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)]
    assert result.map.unicast.right.tolist() == [2]


def test_unicast_sends_to_each() -> None:
    result = plan("unicast", channels=0)
    assert result.map.channels == 0
    assert result.ledger.sent_unicast == result.ledger.received_wanted == 19.0
    assert result.unicast_fraction == 1.0
    assert result.bound.cost == result.cost == 38.0


def test_random_depends_on_the_seed_alone() -> None:
    problem = make_problem([{0}] * 200, [1.0] * 200, 1)
    one, two = (random_map(problem, MethodParams(5), seed, never) for seed in (1, 2))
    assert one == random_map(problem, MethodParams(5), 1, never)
    assert one != two
    assert set(np.unique(one.assigned.right)) == set(range(5))


@unhurried
@given(audience_lists, st.sampled_from(BY_INTEREST), st.integers(1, 3), st.integers(0, 9))
def test_every_method_reaches_everyone(audiences: Any, name: str, channels: int, seed: int) -> None:
    result = plan(name, channels, make_problem(audiences, [2.0] * len(audiences), 5), seed)
    assert result.ledger.missed == 0
    assert result.bound.cost <= result.cost
    assert result.perfect <= result.cost


@pytest.mark.parametrize("name", ["broadcast", "round-robin", "random"])
def test_multicast_needs_a_channel(name: str) -> None:
    with pytest.raises(InputError, match="0 channels"):
        plan(name, channels=0)


def test_negative_channels_are_refused_by_unicast_too() -> None:
    with pytest.raises(InputError, match="-1"):
        plan("unicast", channels=-1)


@pytest.mark.parametrize("name", ["round-robin", "random"])
def test_more_channels_than_flows_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="5 channels are more than the 4 flows"):
        plan(name, channels=5)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_nothing_to_plan(name: str) -> None:
    with pytest.raises(InputError, match="no flow has an audience"):
        plan(name, 1, make_problem([], [], 0))


def test_unknown_method_names_the_known() -> None:
    with pytest.raises(InputError, match="kmodes, broadcast, round-robin, random, tock"):
        find_method("multicast")


def test_weights_reach_the_cost() -> None:
    assert plan("unicast", weights=Weights(2.0, 1.0, 3.0)).cost == 9 * 19.0


def test_parameters_are_recorded_without_weights() -> None:
    assert MethodParams(4).recorded() == {"channels": 4}


def test_stop_by_any_of_several() -> None:
    assert not never(1.0)
    assert TimeLimit(0.0)(1.0)
    assert not TimeLimit(3600.0)(1.0)
    assert AnyOf(never, TimeLimit(0.0))(1.0)
    assert not AnyOf(never, never)(1.0)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Ctrl-C as in a program of its own: processes that share out the tests ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_interrupt_asks_once_and_gives_the_signal_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as stop:
        assert not stop(1.0)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop(1.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupt_takes_the_signal_back_when_it_is_asked() -> None:
    with Interrupt() as stop:
        # As a Spark session does that starts during the work.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert not stop(1.0)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop(1.0)
