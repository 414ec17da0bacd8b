"""From one overlay to another: links exchanged, clients moved, brokers started and stopped.

The order is one in which every tree in use is a tree at any time. A link of the new tree closes a
cycle in the old one. Some link of that cycle is not in the new tree, for that has none; it is taken
out in the same change. So each exchange leaves a tree and brings it one link nearer. A broker that
starts is linked as a leaf, one that stops is taken off as a leaf. Clients move when all brokers are
linked, and before any stops.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.overlay.changes.shape import (
    Client,
    Evidence,
    Link,
    Shape,
    evidence,
    judge_overlay,
    matched_trees,
    overlay_shape,
    running_shape,
    way,
)
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.plan.changes import Row, of_rows
from fanplan.plan.steps import Staged, cut
from fanplan.plan.stored import StoredPlan

WHY = "links are exchanged in pairs, and a broker starts or stops with its link"


WHOLE = "several trees over other brokers are changed at once"


Unit = list[Row]
"""changes that belong together"""


@dataclass
class UnitOrder:
    """Units in the order in which they are made; ``now`` is what stands after the last.

    ``degree`` has the most links that a broker may have, where that is limited.
    """

    now: Shape
    new: Shape
    degree: dict[str, int]
    units: list[Unit] = field(default_factory=list)

    def do(self, *rows: Row) -> None:
        for row in rows:
            self.now.apply(row)
        self.units.append(list(rows))


def stage_overlay(old: StoredPlan, new: StoredPlan, dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    With a dataset each state has its ledger. That of plans which allocate clients counts them
    where they stand.
    """
    before, after = overlay_shape(old), overlay_shape(new)
    running = matched_trees(before, after)
    after = running_shape(after, running)
    one, other = old.section(OverlayRecord), new.section(OverlayRecord)
    limits = looser(one.limits, other.limits)
    units = ordered_overlay(before, after, degrees(limits, before.brokers | after.brokers))
    number = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    whole = len(units) == 1 and one.trees + other.trees > 2
    step = cut(number, limit, WHOLE if whole else WHY)
    comparable = one.clients == other.clients
    found = evidence(new, dataset if comparable else None)
    states = tuple(
        judge_overlay(shape, limits, found) for shape in shapes_after(before, units, step)
    )
    moved = {tree: runs for tree, runs in running.items() if tree != runs}
    rows = [row for unit in units for row in unit]
    said = tuple(overlay_notes(found, comparable))
    return Staged("overlay", of_rows(rows), step, states, said, {"trees": moved})


def overlay_notes(found: Evidence, comparable: bool) -> Iterator[str]:
    if not comparable:
        yield "only one of the plans allocates clients, so that messages on links are not counted"
    elif not found.known:
        yield "without the workload messages on links are not counted"


def shapes_after(old: Shape, units: list[Unit], step: Longs) -> Iterator[Shape]:
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


def ordered_overlay(old: Shape, new: Shape, degree: dict[str, int]) -> list[Unit]:
    """All changes from one overlay to another, in units that leave trees trees."""
    if not old.brokers & new.brokers:
        what = "the plans have no broker in common, so that no tree leads from one to the other"
        raise InputError(Problem("overlay", what, "Start the new plan beside the old one"))
    order = UnitOrder(old.copy(), new, degree)
    several = len(old.trees) > 1 or len(new.trees) > 1
    if several and old.brokers != new.brokers:
        order.do(*all_at_once(order))
        return order.units
    build_trees(order)
    exchange_links(order)
    move_clients(order)
    stop_brokers(order)
    end_trees(order)
    return order.units


def build_trees(order: UnitOrder) -> None:
    """Trees that are new are linked before anything takes them."""
    for number in sorted(order.new.trees.keys() - order.now.trees.keys()):
        for link in sorted(order.new.trees[number]):
            order.do(linking("link", number, link))
    for broker in sorted(order.new.brokers & order.now.brokers):
        if order.new.of[broker] != order.now.of[broker]:
            order.do({"action": "source", "broker": broker, "tree": order.new.of[broker]})


def exchange_links(order: UnitOrder) -> None:
    """Bring in the links of the new trees one by one, as far as possible within the degrees."""
    both = order.now.trees.keys() & order.new.trees.keys()
    missing = {(n, link) for n in both for link in order.new.trees[n] - order.now.trees[n]}
    while missing:
        number, link, rows = best_exchange(order, sorted(missing))
        order.do(*rows)
        missing.remove((number, link))


def best_exchange(order: UnitOrder, missing: list[tuple[int, Link]]) -> tuple[int, Link, Unit]:
    """The first link that can come without a degree above its limit; else that with least above."""
    links = order.now.links()
    degrees = Counter(end for link in links for end in link)
    best: tuple[int, int, Link, Unit] | None = None
    for number, link in missing:
        for rows in exchanges(order, number, link):
            above = excess(rows, links, degrees, order.degree)
            if best is None or above < best[0]:
                best = above, number, link, rows
            if above <= 0:
                return number, link, rows
    assert best is not None, "some link of the new tree has an end in the old one"
    return best[1:]


def exchanges(order: UnitOrder, number: int, link: Link) -> Iterator[Unit]:
    """Ways to bring in a link: with a broker that starts, or for another link."""
    started = [end for end in link if end not in order.now.brokers]
    add = linking("link", number, link)
    if len(started) == 1:
        yield [{"action": "start", "broker": started[0]}, add]
    elif not started:
        tree = order.now.trees[number]
        for other in way(tree, *link):
            if other not in order.new.trees[number]:
                yield [linking("unlink", number, other), add]


def excess(rows: Unit, links: Counter[Link], degrees: Counter[str], most: dict[str, int]) -> int:
    """How much further degrees lie above their limits after some changes."""
    more: Counter[str] = Counter()
    for row in rows:
        if row["action"] in ("link", "unlink"):
            ends = row["from_broker"], row["to_broker"]
            change = {"link": links[ends] == 0, "unlink": -(links[ends] == 1)}[row["action"]]
            more.update(dict.fromkeys(ends, int(change)))
    return sum(
        max(0, degrees[end] + change - most[end]) - max(0, degrees[end] - most[end])
        for end, change in more.items()
        if end in most
    )


def move_clients(order: UnitOrder) -> None:
    """Clients go to their new brokers, if possible not to one that is as full as it may get.

    How full is counted in clients: as many as the old or the new plan has there.
    """
    waiting = arrivals(order)
    room = fullest(order)
    room.subtract(home for homes in order.now.clients.values() for home in homes)
    ready = deque(sorted(waiting))
    while waiting:
        broker = ready.popleft() if ready else min(waiting)
        while broker in waiting and (room[broker] > 0 or not ready):
            row = waiting[broker].popleft()
            order.do(row)
            room[broker] -= 1
            if "from_broker" in row:
                room[row["from_broker"]] += 1
                ready.append(row["from_broker"])
            if not waiting[broker]:
                del waiting[broker]
    for client, homes in sorted(order.now.clients.items()):
        for home in sorted(homes - order.new.clients.get(client, set())):
            order.do(client_row(client, "detach", from_broker=home))


def arrivals(order: UnitOrder) -> dict[str, deque[Row]]:
    """For each broker the clients that come to it. One with just one broker moves."""
    waiting: dict[str, deque[Row]] = {}
    for client, homes in sorted(order.new.clients.items()):
        before = order.now.clients.get(client, set())
        if len(before) == len(homes) == 1 and before != homes:
            (old,), (new,) = before, homes
            row = client_row(client, "move", from_broker=old, to_broker=new)
            waiting.setdefault(new, deque()).append(row)
            continue
        for home in sorted(homes - before):
            waiting.setdefault(home, deque()).append(client_row(client, "attach", to_broker=home))
    return waiting


def fullest(order: UnitOrder) -> Counter[str]:
    """The most clients that a broker has in either plan."""
    counts = [
        Counter(home for homes in shape.clients.values() for home in homes)
        for shape in (order.now, order.new)
    ]
    return counts[0] | counts[1]


def stop_brokers(order: UnitOrder) -> None:
    """Brokers that the new plan does without, each when it is a leaf."""
    stopping = order.now.brokers - order.new.brokers
    while stopping:
        tree = order.now.trees[0]
        degrees = Counter(end for link in tree for end in link)
        broker = min(broker for broker in stopping if degrees[broker] == 1)
        (link,) = (link for link in tree if broker in link)
        order.do(linking("unlink", 0, link), {"action": "stop", "broker": broker})
        stopping.remove(broker)


def end_trees(order: UnitOrder) -> None:
    """Trees that nothing takes any more."""
    for number in sorted(order.now.trees.keys() - order.new.trees.keys()):
        for link in sorted(order.now.trees[number]):
            order.do(linking("unlink", number, link))


def all_at_once(order: UnitOrder) -> Iterator[Row]:
    """All changes together: several trees over other brokers."""
    old, new = order.now.copy(), order.new
    yield from ({"action": "start", "broker": b} for b in sorted(new.brokers - old.brokers))
    for number in sorted(old.trees.keys() | new.trees.keys()):
        before, after = (shape.trees.get(number, set()) for shape in (old, new))
        yield from (linking("unlink", number, link) for link in sorted(before - after))
        yield from (linking("link", number, link) for link in sorted(after - before))
    for broker in sorted(new.brokers):
        if new.of[broker] != old.of.get(broker):
            yield {"action": "source", "broker": broker, "tree": new.of[broker]}
    moves = UnitOrder(old.copy(), new, {})
    move_clients(moves)
    yield from (row for unit in moves.units for row in unit)
    yield from ({"action": "stop", "broker": b} for b in sorted(old.brokers - new.brokers))


def linking(action: str, tree: int, link: Link) -> Row:
    return {"action": action, "tree": tree, "from_broker": link[0], "to_broker": link[1]}


def client_row(client: Client, action: str, **ends: str) -> Row:
    return {"action": action, "client": client[0], "role": client[1], **ends}
