"""The marking protocol: right whenever it is at rest, whatever happened; and the check can fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from marking_worlds import figure_2, links, mesh, network, ring_trees, tree_table

from fanplan.core.errors import InputError
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.layers.marking.protocol.churn import (
    ClientMove,
    Event,
    MarkingChurn,
    MarkingChurnResult,
    SchemeRun,
    course_of,
    marking_churn,
    note,
)
from fanplan.layers.marking.protocol.loop import ProtocolLoop
from fanplan.layers.marking.protocol.messages import MarkingClient
from fanplan.layers.marking.protocol.rest import Aim, PresentClients, Rest
from fanplan.layers.marking.protocol.routing import routing_of
from fanplan.layers.marking.protocol.solver import SettledLayer, SolverLayer
from fanplan.layers.marking.protocol.trees import SharedTreeLayer, SourceTreesLayer
from fanplan.layers.marking.search.marking import exact_marking

KINDS = ("shared:n05", "per-source", "given")


def simulated(trees: str, seed: int = 1, **options: Any) -> MarkingChurnResult:
    """A churn on a small network: a mesh, or the random trees of a ring."""
    churn = MarkingChurn(seed=seed, trees=trees, **options)
    if trees == "given":
        world, table = ring_trees(seed)
        return marking_churn(world, churn, table)
    return marking_churn(mesh(seed, side=4), churn)


def one_by_one(run: SchemeRun, events: Iterable[Event]) -> list[Rest]:
    """The network at rest after each event by itself."""
    members, routing = PresentClients({}, {}), run.rules.routing
    for event in events:
        note(members, [event])
        problem = routing.problem(*members.counts(routing.network.size))
        run.go([event], Aim(problem, exact_marking(problem)), members)
    return run.rests


# ---- Figure 2 of the paper, counted by hand

FIGURE_2 = {
    "best": {"mark": 3, "advertise": 4, "subscribe": 1},
    "pub_everywhere": {"advertise": 6},
    "sub_everywhere": {"subscribe": 8},
}


@pytest.mark.parametrize(
    ("trees", "upkeep"),
    [
        # A is flooded over 3 links; C and D graft over 2 links each.
        ("per-source", {"source": 3, "graft": 4}),
        # A, C and D join at the core, which tells each of them what else there is.
        ("shared:B", {"graft": 6}),
    ],
)
def test_messages_of_figure_2(trees: str, upkeep: dict[str, int]) -> None:
    result = marking_churn(figure_2(), MarkingChurn(0, trees=trees, matching=1.0, hold_ms=0.0))
    assert result.right
    for scheme, run in result.runs.items():
        # Both matches, A with C and A with D, are signalled over two links, wherever found.
        assert run.bursts[0] == Counter(upkeep | FIGURE_2[scheme] | {"signal": 4})
    assert [run.rests[0].cost for run in result.runs.values()] == [5, 6, 8]
    assert [run.rests[0].stored for run in result.runs.values()] == [5, 6, 8]


# ---- churn


@pytest.mark.parametrize("hold", [0.0, 20.0])
@pytest.mark.parametrize("trees", KINDS)
def test_after_every_join_and_leave_all_is_right(trees: str, hold: float) -> None:
    result = simulated(trees, events=50, hold_ms=hold)
    best = result.runs["best"]
    assert result.right
    assert len(best.rests) == 51
    assert all(rest.stored == rest.cost == rest.optimum for rest in best.rests)
    assert {rest.pairs > 0 for rest in best.rests} >= {True}
    # Without parts to solve, the trees per source would show nothing.
    assert (best.engine.elections > 3) == (trees != "shared:n05")


@pytest.mark.parametrize("trees", KINDS)
def test_it_gets_right_again_after_losses_restarts_and_bursts(trees: str) -> None:
    result = simulated(trees, seed=3, events=40, loss=0.25, restarts=15, burst=5, hold_ms=10.0)
    assert result.right
    sent = result.runs["best"].sent
    assert min(sent["resend"], sent["hello"], sent["acknowledge"]) > 0


def test_prices_are_heeded() -> None:
    world = mesh(1, side=4)
    storing, sending = (np.arange(16) % 3).astype(float), (np.arange(24) % 4).astype(float) / 2
    priced = replace(world, storing=storing, sending=sending)
    result = marking_churn(priced, MarkingChurn(15, seed=1))
    assert result.right
    assert result.runs["best"].rests[-1].cost != result.runs["best"].rests[-1].stored


def test_a_course_depends_on_the_seed_alone() -> None:
    options: dict[str, Any] = {"events": 10, "loss": 0.1, "restarts": 2}
    first, again = (simulated("given", **options).summary() for _ in range(2))
    assert first == again
    assert first != simulated("given", seed=2, **options).summary()
    assert json.loads(json.dumps(first)) == first
    assert first["joins"] + first["leaves"] == 10


@pytest.mark.parametrize("seed", range(4))
def test_first_marks_alone_are_valid_on_a_shared_tree(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 5 of the paper: clients that come and go one by one leave a marking valid."""
    monkeypatch.setattr(SettledLayer, "work", lambda layer: False)
    world, churn = mesh(seed, side=4), MarkingChurn(40, seed)
    routing = routing_of(world, "shared:n05")
    course = course_of(routing, churn)
    rests = one_by_one(SchemeRun("best", routing, churn), chain(course.start, *course.bursts))
    assert not any(r.invalid or r.disagreeing or r.missed or r.undelivered for r in rests)
    assert any(rest.cost > rest.optimum for rest in rests)


# ---- variants that are wrong, and are seen to be


def test_without_a_solver_markings_are_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SolverLayer, "violating", lambda layer, covered: set())
    result = simulated("given", events=40)
    assert not result.right
    wrong = [rest for rest in result.runs["best"].rests if not rest.right]
    assert all(rest.invalid and rest.other for rest in wrong)
    assert any(rest.missed and rest.undelivered and rest.misplaced for rest in wrong)
    assert result.summary()["schemes"]["best"]["wrong_rests"] == len(wrong)


def test_a_node_beside_the_way_would_find_pairs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedTreeLayer, "on_way", lambda *clients: True)
    assert any(rest.repeated for rest in simulated("shared:n05", events=40).runs["best"].rests)


def test_packets_that_are_not_sent_again_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProtocolLoop, "retry", lambda engine, link, packet: None)
    assert not simulated("per-source", events=5, loss=0.3).right


def test_a_restart_that_nobody_hears_of_is_not_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProtocolLoop, "meet_anew", lambda engine, node, packet, back: None)
    assert not simulated("per-source", events=2, restarts=8).right


@pytest.mark.parametrize("loose", [False, True])
def test_descriptors_of_one_who_left_do_not_go_on_in_a_circle(
    loose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tells B, B tells C and C tells A, each for another tree, while Y is in all of them."""
    world = network("ABCY", None, {"A": 1, "B": 1, "C": 1}, {"Y": 1})
    trees = tree_table(A="AC CB BY", B="BA AC CY", C="CB BA AY")
    churn = MarkingChurn(trees="given")
    if loose:
        lift = SourceTreesLayer.lift

        def wrong(*known: Any) -> Any:
            return None if lift(*known) is None else frozenset()

        monkeypatch.setattr(SourceTreesLayer, "lift", wrong)
    run = SchemeRun("sub_everywhere", routing_of(world, "given", trees), churn)
    roots = [
        ClientMove(0.0, MarkingClient(node, node, 1, 0.5), "publisher", True) for node in range(3)
    ]
    first, second = (MarkingClient(name, 3, 1, 0.5) for name in range(2))
    moves = [(first, True), (second, True), (second, False)]
    come = [ClientMove(0.0, client, "subscriber", comes) for client, comes in moves]
    rests = one_by_one(run, [*roots, *come])
    assert [rest.right for rest in rests] == [True] * 5 + [not loose]


# ---- bad input


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"loss": 1.0}, "loss: 1.0 is out of range. Give 0 to below 1"),
        ({"events": -1}, "events: -1 is too little. Give 0 or more"),
        ({"burst": 0}, "burst: 0 is too little. Give 1 or more"),
        ({"matching": 2.0}, "matching: 2.0 is not a chance. Give 0 to 1"),
        ({"trees": "ring"}, "trees: 'ring' is unknown"),
        ({"trees": "shared:x"}, "core: there is no node 'x'"),
        ({"trees": "given"}, "trees: none are given. Give a table root, parent, child"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what.replace(".", r"\.")):
        marking_churn(figure_2(), MarkingChurn(**options))


def test_networks_that_cannot_be_simulated_are_named() -> None:
    world = figure_2()
    with pytest.raises(InputError, match="the network has no subscriber"):
        marking_churn(replace(world, subscribed=np.zeros(4, int)), MarkingChurn(1))
    with pytest.raises(InputError, match="storing: differs between nodes"):
        marking_churn(replace(world, storing=np.arange(4.0)), MarkingChurn(1, trees="shared:B"))
    apart = MarkedNetwork(pa.array(list("ab")), np.array([1, 0]), np.array([0, 1]), links([]))
    with pytest.raises(InputError, match="does not reach 'b'"):
        marking_churn(apart, MarkingChurn(1))
