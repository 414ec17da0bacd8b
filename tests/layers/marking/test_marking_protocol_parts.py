"""Parts of the marking protocol by themselves: links, regions around a violation, messages."""

from __future__ import annotations

import numpy as np
import pytest
from marking_worlds import random_source_problem

from fanplan.layers.marking.ledger import DescriptorCounts
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.protocol.loop import LossyLink
from fanplan.layers.marking.protocol.messages import (
    Branch,
    Graft,
    MarkingClient,
    meet,
    message_kind,
    weight,
)
from fanplan.layers.marking.protocol.solver import (
    Region,
    ends_of_links,
    nodes_of,
    parents_of,
    route_of,
)
from fanplan.layers.marking.protocol.trees import GainTable
from fanplan.layers.marking.search.marking import exact_marking, whole_gains
from fanplan.layers.marking.search.requirements import requirements_of

KEY, OTHER = ("mark", ""), ("source", 1)


def test_only_what_no_later_packet_has_is_sent_again() -> None:
    link = LossyLink(0, 1, latency_ms=5.0)
    first = link.tell({KEY: "p", OTHER: 2})
    second = link.tell({KEY: "s"})
    again = link.again(first.number)
    assert again.entries == {OTHER: 2}
    link.acknowledged(0.0, second.number)
    assert link.open == {OTHER: again.number}
    link.acknowledged(1.0, again.number)  # meant for another life of the sender
    assert link.open
    link.acknowledged(0.0, again.number)
    assert not link.open


def test_what_was_withdrawn_is_withdrawn_again() -> None:
    link = LossyLink(0, 1, latency_ms=5.0)
    link.tell({KEY: "p"})
    gone = link.tell({KEY: None})
    assert link.again(gone.number).entries == {KEY: None}
    assert link.everything().entries == {}


def test_entries_count_as_what_they_change() -> None:
    graft = Graft(3, frozenset({1}))
    client = MarkingClient(0, 2, 7, 0.5)
    assert message_kind(("graft", 5), None, graft) == "graft"
    assert message_kind(("graft", 5), graft, Graft(4, frozenset({1}))) == "count"
    assert message_kind(("graft", 5), graft, Graft(3, frozenset({1, 2}))) == "graft"
    assert message_kind(("branch", ""), Branch(1, 2), Branch(4, 1)) == "count"
    assert message_kind(("branch", ""), Branch(1, 2), Branch(0, 2)) == "graft"
    assert message_kind(("advertisement", 0), None, client) == "advertise"
    assert message_kind(("advertisement", 0), client, None) == "withdraw"
    assert weight(("advertisement", 0), client) == 7
    assert weight(("advertisement", 0), None) == 1


def test_arcs_meet_around_the_ring() -> None:
    early, late = MarkingClient(0, 0, 1, 0.02), MarkingClient(0, 0, 1, 0.97)
    assert meet(early, late, 0.06)
    assert not meet(early, late, 0.04)


def tables_of(problem: MarkingProblem) -> dict[int, GainTable]:
    """What all nodes know when counts have settled, straight from the problem."""
    best, relation = exact_marking(problem), requirements_of(problem)
    gain = whole_gains(problem, DescriptorCounts(best.sigma, best.tau)).tolist()
    links = list(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    pairs = [(links[a], links[b]) for a, b in zip(relation.owners, relation.items, strict=True)]
    return {
        node: GainTable(
            tuple((a, g) for (a, b), g in zip(links, gain, strict=True) if b == node),
            tuple((b, g) for (a, b), g in zip(links, gain, strict=True) if a == node),
            tuple((a[0], b[1]) for a, b in pairs if a[1] == node),
        )
        for node in range(len(problem.nodes))
    }


@pytest.mark.parametrize("seed", range(60))
def test_greedy_marks_with_solved_parts_are_the_exact_marking(seed: int) -> None:
    problem = random_source_problem(seed, nodes=8)
    region = Region(tables_of(problem))
    marks = {edge: "p" if gain < 0 else "s" for edge, gain in region.gain.items()}
    pairs = [(a, b) for a, behind in region.after.items() for b in behind]
    violating = {edge for a, b in pairs if (marks[a], marks[b]) == ("s", "p") for edge in (a, b)}
    marks |= region.solve(region.part(violating))
    edges = zip(problem.tail.tolist(), problem.head.tolist(), strict=True)
    assert [marks[edge] == "p" for edge in edges] == exact_marking(problem).publish.tolist()


def test_routes_reach_all_ends_and_stay_when_links_are_added() -> None:
    edges = {(1, 2), (2, 3), (3, 4)}
    parents = parents_of(1, edges, {})
    assert route_of(1, parents) == ((2, ((3, ((4, ()),)),)),)
    more = parents_of(1, {*edges, (4, 1), (5, 4)}, parents)
    assert {n for step in route_of(1, more) for n in nodes_of(step)} == {2, 3, 4, 5}
    assert parents.items() <= more.items()
    assert ends_of_links({*edges}) <= more.keys()
    assert parents_of(1, {(1, 2)}, more) == {1: 1, 2: 1}
    assert np.all(list(parents_of(1, {(4, 1)}, {}).values()) == np.array([1, 1]))
