"""The two-step framework: channels for everything, then some of it moves to unicast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from fanplan.core.errors import InputError, Problem
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.second_step.greedy import greedy
from fanplan.layers.channels.published.second_step.items import flow_items, pair_items, user_items
from fanplan.layers.channels.published.second_step.iterative import First, Move, iterative, repeated
from fanplan.layers.channels.published.second_step.order import (
    heaviest_first,
    in_order,
    lightest_first,
)

if TYPE_CHECKING:
    from fanplan.core.stop import Stop
    from fanplan.layers.channels.published.params import HybridParams


class Solve(Protocol):
    """Runs a first step, once or more often, and moves a part of its traffic to unicast."""

    def __call__(
        self,
        problem: InterestProblem,
        first: First,
        params: HybridParams,
        seed: int,
        stop: Stop,
    ) -> ChannelMap: ...


@dataclass(frozen=True)
class SecondStep:
    """One heuristic of Bickson et al. (2010), section 4.2."""

    name: str
    solve: Solve
    meaning: str


def once(move: Move) -> Solve:
    """Solve the first step once, then move."""

    def solve(
        problem: InterestProblem, first: First, params: HybridParams, seed: int, stop: Stop
    ) -> ChannelMap:
        return move(problem, first(problem, params, seed, stop), params, stop)

    return solve


ORDERS = {
    "lightest-flow": (flow_items, lightest_first),
    "heaviest-flow": (flow_items, heaviest_first),
    "lightest-user": (user_items, lightest_first),
    "heaviest-user": (user_items, heaviest_first),
}
GREEDY = {"greedy-flow": flow_items, "greedy-user": user_items, "greedy-pair": pair_items}

MOVES: dict[str, Move] = {
    **{name: partial(in_order, *order) for name, order in ORDERS.items()},
    **{name: partial(greedy, items) for name, items in GREEDY.items()},
}
"""The second steps that take a map as it is."""


def every_second_step() -> Iterator[SecondStep]:
    """Each heuristic twice: for the first step's channels as they are, and with new ones."""
    for name, order in ORDERS.items():
        meaning = f"{name.replace('-', ' ')} first"
        yield SecondStep(name, once(MOVES[name]), meaning)
        again = f"{meaning}, channels planned anew after each batch"
        yield SecondStep(f"{name}-iterative", partial(iterative, *order), again)
    for name in GREEDY:
        meaning = f"the {name.removeprefix('greedy-')} that lowers the cost most, while one does"
        yield SecondStep(name, once(MOVES[name]), meaning)
        again = f"{meaning}, repeated with channels planned anew"
        yield SecondStep(f"{name}-iterative", partial(repeated, MOVES[name]), again)


SECOND_STEPS: dict[str, SecondStep] = {step.name: step for step in every_second_step()}


def find_second_step(name: str) -> SecondStep:
    """The second step of that name."""
    if name not in SECOND_STEPS:
        known = ", ".join(SECOND_STEPS)
        raise InputError(Problem("unicast", f"{name!r} is not known", f"Use one of: {known}"))
    return SECOND_STEPS[name]


def two_step(
    problem: InterestProblem,
    first: First,
    second: str,
    params: HybridParams,
    seed: int,
    stop: Stop,
) -> ChannelMap:
    """Section 4: channels by ``first``, then what the second step of that name moves to unicast."""
    return find_second_step(second).solve(problem, first, params, seed, stop)


def hybrid(first: First, second: str) -> First:
    """A first and a second step as one planner."""
    solve = find_second_step(second).solve

    def planner(
        problem: InterestProblem, params: HybridParams, seed: int, stop: Stop
    ) -> ChannelMap:
        return solve(problem, first, params, seed, stop)

    return planner
