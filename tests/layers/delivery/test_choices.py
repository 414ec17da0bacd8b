"""Hundreds of random designs, looked at as a network engineer would: what would one refuse?

The prices of some are extreme, as that is where a wrong price makes an optimiser do odd things.
The list of what was looked for is in docs/decisions/0024-degenerate.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from delivery_worlds import audience_of, delivery_world

from fanplan.core.prices import LedgerPrices
from fanplan.core.stop import never
from fanplan.layers.delivery.ledger import lowest_cost
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.search.joint import JudgedDelivery, joint_delivery
from fanplan.layers.delivery.search.params import DeliveryParams

DESIGNS = 300
ODD = ("direct", "matched", "forwarded", "entry", "control")
"""Prices that are drawn."""


def drawn(seed: int) -> tuple[DeliveryProblem, DeliveryParams]:
    """A world, some classes of it silent, and prices that may be nothing or very much."""
    draw = np.random.default_rng(seed + 50_000)
    problem = delivery_world(
        seed, brokers=int(draw.integers(2, 7)), flows=int(draw.integers(4, 11))
    )
    quiet = draw.random(problem.interest.size) < 0.1
    problem = replace(
        problem,
        interest=replace(
            problem.interest, messages=np.where(quiet, 0.0, problem.interest.messages)
        ),
        messages=np.where(quiet[problem.row], 0.0, problem.messages),
    )
    prices = dict(zip(ODD, draw.choice([0.0, 0.5, 1.0, 1.0, 3.0, 20.0], len(ODD)), strict=True))
    entries = [None, 0, 5][int(draw.integers(3))]
    channels = int(draw.integers(1, 5))
    params = DeliveryParams(channels, entries, swaps=4, prices=LedgerPrices(**prices))
    return problem, params


def refused(problem: DeliveryProblem, found: JudgedDelivery) -> Iterator[str]:
    """What an engineer would not deploy."""
    delivery, map = found.delivery, found.delivery.map
    members = [set(map.members.right[map.members.left == j].tolist()) for j in range(map.channels)]
    classes = [
        set(map.assigned.left[map.assigned.right == j].tolist()) for j in range(map.channels)
    ]
    for own in members:
        if len(own) < 2:
            yield "a channel that is none: fewer than two members"
    for j, (own, sent) in enumerate(zip(members, classes, strict=True)):
        if not problem.interest.messages[list(sent)].sum():
            yield "a channel without traffic"
        if any((own, delivery.domain[j]) == (members[i], delivery.domain[i]) for i in range(j)):
            yield "two channels with the same members"
        wanted = set().union(*(audience_of(problem, row) for row in sent))
        if own - wanted:
            yield "a member that wants nothing on its channel"
    yield from refused_beside_channels(problem, found)


def refused_beside_channels(problem: DeliveryProblem, found: JudgedDelivery) -> Iterator[str]:
    delivery, groups = found.delivery, found.delivery.groups
    for row in np.flatnonzero(delivery.direct).tolist():
        if not problem.interest.messages[row]:
            yield "a silent class sent past the brokers"
    carried = np.bincount(
        groups.group[groups.group >= 0], problem.messages[groups.group >= 0], groups.size
    )
    for group in np.flatnonzero(delivery.selected).tolist():
        if not carried[group]:
            yield "a group without traffic"
        ends = groups.members[groups.starts[group] : groups.starts[group + 1]]
        if set(ends.tolist()) <= {int(problem.trees.root[groups.span[group]])}:
            yield "a group that goes nowhere"


def test_nothing_that_an_engineer_would_refuse() -> None:
    seen, channels, groups = [], 0, 0
    for seed in range(DESIGNS):
        problem, params = drawn(seed)
        best, first = joint_delivery(problem, params, seed, never)
        seen += [f"{seed}: {what}" for what in refused(problem, best)]
        assert best.cost <= first.cost
        assert lowest_cost(problem, params.prices) <= best.cost * (1 + 1e-9)
        channels += best.delivery.map.channels
        groups += int(best.delivery.selected.sum())
    assert seen == []
    assert min(channels, groups) > DESIGNS / 10, "there was something to look at"


def test_the_look_finds_a_lone_channel() -> None:
    """The control: with one member taken away from channels of two, the look must see it."""
    from fanplan.layers.channels.map import map_pairs

    for seed in range(40):
        problem, params = drawn(seed)
        best, _ = joint_delivery(problem, params, seed, never)
        map = best.delivery.map
        sizes = np.bincount(map.members.left, minlength=map.channels)
        if (sizes == 2).any():
            channel = int(np.flatnonzero(sizes == 2)[0])
            keep = np.ones(len(map.members), bool)
            keep[np.flatnonzero(map.members.left == channel)[0]] = False
            fewer = map_pairs(map.members.left[keep], map.members.right[keep])
            worse = replace(best.delivery, map=replace(map, members=fewer))
            assert any(
                "fewer than two" in what for what in refused(problem, replace(best, delivery=worse))
            )
            return
    pytest.fail("no channel with two members")
