"""From one marking to another: marks flip in an order that keeps the marking valid.

A marking is valid if nothing but s-links follow an s-link (Ge et al. 2002, Eq. 1): with a link all
that follow it in a tree are s-links. So a link becomes an s-link after those that follow it, and a
p-link after those that it follows. Links that follow each other in turn flip together. What becomes
s and what becomes p do not concern each other, as both markings are valid.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.layers.marking.check import some_links, walk_ways
from fanplan.layers.marking.problem.marking import MarkingProblem, SourceTrees
from fanplan.layers.marking.read import stored_marking
from fanplan.layers.marking.record import MarkingRecord
from fanplan.plan.changes import Row, of_rows
from fanplan.plan.findings import Findings
from fanplan.plan.steps import Staged, State, cut
from fanplan.plan.stored import StoredPlan

Link = tuple[str, str]

TOGETHER = "links that follow each other in turn flip together"
UNKNOWN = "without the workload it is not known which links follow which"
OTHERS = "the plans mark other trees, which are changed at once"


def stage_marking(old: StoredPlan, new: StoredPlan, dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    Which links follow which is in the dataset. Without one there is a single state in between: all
    links that become s-links have flipped, the others not yet.
    """
    before, after = marks_of(old), marks_of(new)
    if before.keys() != after.keys():
        return at_once(old, new, before, after, limit)
    links = sorted(after)
    was, becomes = (p_links(marks, links) for marks in (before, after))
    as_p, as_s = (cost_as(after, links, name) for name in ("sigma", "tau"))
    problem = None if dataset is None else stored_marking(new, dataset)
    if problem is None:
        flips, units = in_two(was, becomes)
    else:
        flips, units = in_order(follows(problem, links), was, becomes, as_s - as_p)
    step = cut(units, limit, UNKNOWN if problem is None else TOGETHER)
    states = [judged_marks(now, as_p, as_s, problem, links) for now in states_of(was, flips, step)]
    rows = [flip(links[i], "p" if becomes[i] else "s") for i in flips.tolist()]
    said = tuple(notes(old, new, problem is not None))
    return Staged("marking", of_rows(rows), step, tuple(states), said)


def notes(old: StoredPlan, new: StoredPlan, known: bool) -> Iterator[str]:
    if old.section(MarkingRecord).params != new.section(MarkingRecord).params:
        yield "the plans count or price descriptors differently; costs here are by the new plan"
    if not known:
        yield "without the workload the state in between is not checked"


def marks_of(plan: StoredPlan) -> dict[Link, Row]:
    """The rows of a plan's table of marks by the ends of links."""
    columns = ("from_node", "to_node", "mark", "sigma", "tau", "price")
    rows = plan.read("marks", columns).to_pylist()
    return {(row["from_node"], row["to_node"]): row for row in rows}


def p_links(marks: dict[Link, Row], links: list[Link]) -> Bools:
    return np.array([marks[link]["mark"] == "p" for link in links], bool)


def in_two(was: Bools, becomes: Bools) -> tuple[Longs, Longs]:
    """All that become s-links, then all that become p-links: valid, whatever follows what."""
    flips = np.concatenate((np.flatnonzero(was & ~becomes), np.flatnonzero(~was & becomes)))
    return flips, np.unique(becomes[flips], return_inverse=True)[1].astype(np.int64)


def cost_as(marks: dict[Link, Row], links: list[Link], count: str) -> Floats:
    return np.array([marks[link][count] * marks[link]["price"] for link in links], float)


def flip(link: Link, mark: str) -> Row:
    return {"action": "mark", "from_broker": link[0], "to_broker": link[1], "mark": mark}


def at_once(
    old: StoredPlan, new: StoredPlan, before: dict[Link, Row], after: dict[Link, Row], limit: int
) -> Staged:
    """Other trees: their marks come and go in one step."""
    old_marks = {link: row["mark"] for link, row in before.items()}
    changed = [link for link in sorted(after) if old_marks.get(link) != after[link]["mark"]]
    rows = [flip(link, after[link]["mark"]) for link in changed]
    for a, b in sorted(before.keys() - after.keys()):
        rows.append({"action": "unmark", "from_broker": a, "to_broker": b})
    units = np.zeros(len(rows), np.int64)
    costs = [{"cost": plan.section(MarkingRecord).cost} for plan in (old, new)]
    return Staged(
        "marking", of_rows(rows), cut(units, limit, OTHERS), tuple(map(State, costs)), (OTHERS,)
    )


def follows(problem: MarkingProblem, links: list[Link]) -> scipy.sparse.csr_array:
    """1 where a link (row) is directly followed by another (column) on some way."""
    place = link_positions(problem, links)
    size = len(links)
    if isinstance(problem.trees, SourceTrees):
        inner = np.flatnonzero(problem.trees.above >= 0)
        first = problem.trees.link[problem.trees.above[inner]]
        second = problem.trees.link[inner]
    else:
        first, second = shared_followers(problem)
    ones = np.ones(len(first), bool)
    pairs = (place[first], place[second])
    return scipy.sparse.coo_array((ones, pairs), shape=(size, size)).tocsr()


def shared_followers(problem: MarkingProblem) -> tuple[Ints, Ints]:
    """On a shared tree all links from a head follow a link but the one that leads back."""
    shape = (problem.size, len(problem.nodes))
    every, ones = np.arange(problem.size), np.ones(problem.size, bool)
    heads = scipy.sparse.csr_array((ones, (every, problem.head)), shape=shape)
    tails = scipy.sparse.csr_array((ones, (every, problem.tail)), shape=shape)
    pairs = (heads @ tails.T).tocoo()
    ahead = problem.head[pairs.col] != problem.tail[pairs.row]
    return pairs.row[ahead], pairs.col[ahead]


def link_positions(problem: MarkingProblem, links: list[Link]) -> Longs:
    """Where the problem's links stand in a list of all of them by name."""
    at = {link: place for place, link in enumerate(links)}
    return np.array([at[link] for link in named_links(problem)], np.int64)


def named_links(problem: MarkingProblem) -> list[Link]:
    """The ends of the problem's links, in its order."""
    names = problem.nodes.to_pylist()
    ends = zip(problem.tail.tolist(), problem.head.tolist(), strict=True)
    return [(names[a], names[b]) for a, b in ends]


def in_order(
    follows: scipy.sparse.csr_array, old: Bools, new: Bools, dearer_as_s: Floats
) -> tuple[Longs, Longs]:
    """Links that flip, in order, and the unit of each: those that follow each other in turn.

    Of units that may flip next the one that saves most does.
    """
    _, part = connected_components(follows, directed=True, connection="strong")
    flips = np.flatnonzero(old != new)
    first, second = scipy.sparse.coo_array(follows).coords
    both = (old != new)[first] & (old != new)[second] & (new[first] == new[second])
    both &= part[first] != part[second]
    # To s: the follower first. To p: what it follows first.
    to_s = ~new[first[both]]
    before = np.where(to_s, part[second[both]], part[first[both]])
    later = np.where(to_s, part[first[both]], part[second[both]])
    dearer = np.where(old != new, np.where(new, -1.0, 1.0) * dearer_as_s, 0.0)
    change: Floats = np.bincount(part, dearer).astype(np.float64)
    place = {unit: at for at, unit in enumerate(topological(part[flips], before, later, change))}
    units = np.array([place[unit] for unit in part[flips].tolist()], np.int64)
    order = np.argsort(units, kind="stable")
    return flips[order], units[order]


def topological(units: Longs, before: Longs, later: Longs, change: Floats) -> Iterator[int]:
    """Units in an order that has each after those it waits for, cheapest first where it may."""
    waits = dict.fromkeys(units.tolist(), 0)
    next_: dict[int, list[int]] = {}
    for first, second in set(zip(before.tolist(), later.tolist(), strict=True)):
        waits[second] += 1
        next_.setdefault(first, []).append(second)
    ready = [(change[unit], unit) for unit, count in waits.items() if not count]
    heapq.heapify(ready)
    while ready:
        _, unit = heapq.heappop(ready)
        yield unit
        for other in next_.get(unit, ()):
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, (change[other], other))


def states_of(publish: Bools, flips: Longs, step: Longs) -> Iterator[Bools]:
    """The p-links of the old marking, and after each step."""
    now = publish.copy()
    yield now
    for number in range(int(step.max(initial=-1)) + 1):
        now[flips[step == number]] ^= True
        yield now


def judged_marks(
    publish: Bools, as_p: Floats, as_s: Floats, problem: MarkingProblem | None, links: list[Link]
) -> State:
    """The cost, and Eq. 1 by the check's own walk along every way."""
    figures = {"cost": float(np.where(publish, as_p, as_s).sum()), "p_links": float(publish.sum())}
    if problem is None:
        return State(figures)
    findings = Findings()
    broken = np.flatnonzero(walk_ways(problem, publish[link_positions(problem, links)]).broken)
    findings.violate("p-link behind an s-link", len(broken), some_links(broken, problem))
    return State(figures, tuple(findings.violations))
