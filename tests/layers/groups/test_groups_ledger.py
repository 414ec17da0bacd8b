"""The ledger of groups, by hand on the tree of the paper's Figures 1 to 3."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from overlays import routes_of

from fanplan.layers.groups.ledger import GroupsLedger, groups_ledger
from fanplan.layers.groups.problem.build import MarkedCells, cell_groups, exact_groups
from fanplan.layers.groups.problem.trees import hung_at

# R over K0 and K1, which have L0, L1 and L2, L3.
NAMES = pa.array(["R", "K0", "K1", "L0", "L1", "L2", "L3"])
LINKS = np.array([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)])
TREES = hung_at(LINKS, np.array([0]), 7)

# Two messages to L0 and L2, one to all leaves, four to L3 alone, eight that nobody wants.
ROUTES = routes_of({(0, (3, 5)): 2.0, (0, (3, 4, 5, 6)): 1.0, (0, (6,)): 4.0, (0, ()): 8.0})
PROBLEM = exact_groups(NAMES, TREES, ROUTES)
BY_MEMBERS = [[3, 4, 5, 6], [3, 5], [6]]


def ledger(*members: list[int], shortcuts: bool = True) -> GroupsLedger:
    ends = [PROBLEM.members[a:b].tolist() for a, b in pairwise(PROBLEM.starts)]
    assert sorted(ends) == BY_MEMBERS
    return groups_ledger(PROBLEM, np.array([end in members for end in ends]), shortcuts)


def test_default_routing_matches_at_every_step() -> None:
    found = ledger()
    assert found.received.tolist() == [0, 3, 7, 3, 1, 3, 5]
    assert found.matched.tolist() == [0, 3, 7, 0, 0, 0, 0]
    assert found.arrived.tolist() == [0, 0, 0, 3, 1, 3, 5]
    # Two hops and the matches of R and K.
    assert found.delay_mean == 4.0
    assert (found.messages_share, found.matches_share) == (5 / 15, 5 / 15)
    assert (found.control, found.entries, found.bypassed) == (0, 0, 0)


def test_a_group_is_matched_once() -> None:
    found = ledger([3, 5], shortcuts=False)
    assert found.received.tolist() == ledger().received.tolist()
    assert found.matched.tolist() == [0, 1, 5, 0, 0, 0, 0]
    assert found.delay.tolist() == [0, 0, 0, 2 * 3 + 4, 4, 2 * 3 + 4, 5 * 4]
    # Two members are told, four links get a Group message and an entry.
    assert (found.control, found.entries, found.bypassed) == (2 + 4, 4, 0)


def test_shortcuts_spare_brokers_that_only_forward() -> None:
    found = ledger([3, 5])
    assert found.received.tolist() == [0, 1, 5, 3, 1, 3, 5]
    assert found.delay.tolist() == [0, 0, 0, 2 * 2 + 4, 4, 2 * 2 + 4, 5 * 4]
    # Four Probes and two Replies more; two entries at the root.
    assert (found.control, found.entries, found.bypassed) == (2 + 4 + 4 + 2, 2, 2 * 2)
    assert found.summary()["saving"] == 4


def test_with_all_groups_only_the_root_matches() -> None:
    found = ledger(*BY_MEMBERS)
    assert not found.matched.any()
    assert found.matches == found.publications == 15
    assert found.received.tolist() == [0, 1, 1, 3, 1, 3, 5]
    # The group of all leaves has no shortcut, that of L3 is one.
    assert found.control == 12 + (4 + 6 + 6) + (1 + 2 + 2 + 1)
    assert (found.entries, found.bypassed) == (2 + 6 + 1, 4 + 4)


def test_hops_and_matches_may_take_other_times() -> None:
    found = groups_ledger(PROBLEM, np.zeros(3, bool), hop=10.0, match=0.5)
    assert found.delay_mean == 21.0


def test_marks_by_overlap_reach_some_who_do_not_want_it() -> None:
    cells = MarkedCells(np.zeros(4, np.int32), np.array([0, 3]), np.array([3, 5, 6], np.int32))
    routes = routes_of({(0, (3,)): 2.0, (0, (5, 6)): 1.0, (0, (6,)): 4.0, (0, ()): 8.0})
    problem = cell_groups(NAMES, TREES, routes, cells)
    found = groups_ledger(problem, np.ones(1, bool))
    assert found.arrived.tolist() == [0, 0, 0, 2, 0, 1, 5]
    assert found.unwanted.tolist() == [0, 0, 0, 13, 0, 14, 10]
    assert found.received.tolist() == [0, 0, 15, 15, 0, 15, 15]
    assert problem.unwanted.tolist() == [13 + 14 + 10]
    assert found.delay_mean == pytest.approx((2 * 2 + 6 * 3) / 8)


def test_inner_members_are_not_bypassed_and_a_root_may_want_things_itself() -> None:
    routes = routes_of({(0, (0, 1, 3)): 1.0, (0, (0,)): 1.0})
    problem = exact_groups(NAMES, TREES, routes)
    default = groups_ledger(problem, np.zeros(2, bool))
    # K0 matches before its own clients get the message; L0 has nothing to match.
    assert default.delay.tolist() == [2, 3, 0, 4, 0, 0, 0]
    found = groups_ledger(problem, np.ones(2, bool))
    assert found.delay.tolist() == [2, 2, 0, 3, 0, 0, 0]
    assert (found.control, found.entries, found.bypassed) == (2 + 2 + 2, 2, 0)


def test_every_publisher_may_have_its_own_tree() -> None:
    trees = hung_at(LINKS, np.array([0, 3]), 7)
    problem = exact_groups(NAMES, trees, routes_of({(3, (4, 6)): 1.0, (0, (3,)): 1.0}))
    found = groups_ledger(problem, np.ones(2, bool))
    # From L0 ways part at K0; R and K1 only forward. From R to L0 there is a shortcut.
    assert found.received.tolist() == [0, 1, 0, 1, 1, 0, 1]
    assert found.bypassed == 3
    assert found.inner.tolist() == [True, True, True, False, False, False, False]
