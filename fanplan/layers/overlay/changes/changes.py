"""From one overlay to another: links exchanged, clients moved, brokers started and stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.overlay.changes.order import Unit, ordered
from fanplan.layers.overlay.changes.shape import Shape, matched_trees, renumbered, shape_of
from fanplan.layers.overlay.changes.states import Evidence, evidence, judge
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.plan.changes import of_rows
from fanplan.plan.steps import Staged, cut
from fanplan.plan.stored import StoredPlan

WHY = "links are exchanged in pairs, and a broker starts or stops with its link"
WHOLE = "several trees over other brokers are changed at once"


def stage_overlay(old: StoredPlan, new: StoredPlan, dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    With a dataset each state has its ledger. That of plans which allocate clients counts them
    where they stand.
    """
    before, after = shape_of(old), shape_of(new)
    running = matched_trees(before, after)
    after = renumbered(after, running)
    one, other = old.section(OverlayRecord), new.section(OverlayRecord)
    limits = looser(one.limits, other.limits)
    units = ordered(before, after, degrees(limits, before.brokers | after.brokers))
    number = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    whole = len(units) == 1 and one.trees + other.trees > 2
    step = cut(number, limit, WHOLE if whole else WHY)
    comparable = one.clients == other.clients
    found = evidence(new, dataset if comparable else None)
    states = tuple(judge(shape, limits, found) for shape in states_of(before, units, step))
    moved = {tree: runs for tree, runs in running.items() if tree != runs}
    rows = [row for unit in units for row in unit]
    said = tuple(notes(found, comparable))
    return Staged("overlay", of_rows(rows), step, states, said, {"trees": moved})


def notes(found: Evidence, comparable: bool) -> Iterator[str]:
    if not comparable:
        yield "only one of the plans allocates clients, so that messages on links are not counted"
    elif not found.known:
        yield "without the workload messages on links are not counted"


def states_of(old: Shape, units: list[Unit], step: Longs) -> Iterator[Shape]:
    """The old overlay, and what stands after each step."""
    now, done = old.copy(), 0
    yield now
    rows = [row for unit in units for row in unit]
    for end in np.flatnonzero(np.diff(step, append=-1)).tolist() if len(step) else []:
        for row in rows[done : end + 1]:
            now.apply(row)
        done = end + 1
        yield now


def looser(old: LimitsRecord, new: LimitsRecord) -> LimitsRecord:
    """Limits that both plans obey."""
    names = old.degrees.keys() | new.degrees.keys()
    degrees = {
        name: most
        for name in sorted(names)
        if (most := highest(*(x.degrees.get(name, x.degree) for x in (old, new)))) is not None
    }
    # A broker with a limit of its own in one plan and none in the other is free of the common one.
    common = highest(old.degree, new.degree)
    free = dict.fromkeys(names - degrees.keys(), 10**9) if common is not None else {}
    pairs = [{(a, b): most for a, b, most in limits.hops} for limits in (old, new)]
    common_pairs = sorted(pairs[0].keys() & pairs[1].keys())
    hops = ((*ends, max(limit[ends] for limit in pairs)) for ends in common_pairs)
    return LimitsRecord(
        degree=common,
        degrees=degrees | free,
        diameter=highest(old.diameter, new.diameter),
        hops=tuple(hops),
    )


def highest(one: int | None, other: int | None) -> int | None:
    """The looser of two limits; none is the loosest."""
    return None if one is None or other is None else max(one, other)


def degrees(limits: LimitsRecord, brokers: set[str]) -> dict[str, int]:
    """The most links of each broker that has a limit."""
    found = {broker: limits.degrees.get(broker, limits.degree) for broker in brokers}
    return {broker: most for broker, most in found.items() if most is not None}
