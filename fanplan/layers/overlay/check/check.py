"""The check of an overlay: trees that are trees, clients in their place, limits that hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs, Position
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.check.evidence import Truth, read_truth
from fanplan.layers.overlay.params import AllocateParams
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.stored import StoredPlan
from fanplan.plan.walks import Proved, prove, way_length


def check_overlay(plan: StoredPlan, dataset: Path, findings: Findings) -> int:
    """Add what is wrong; how many destinations of routes no tree reaches."""
    record = plan.section(OverlayRecord)
    truth = read_truth(plan, dataset, findings)
    if truth is None:
        return 0
    links = plan.read("links", ("a", "b", "weight", "rate"))
    ends = positions_of_ends(links, truth.brokers, "links", findings)
    expected = {"brokers": len(truth.brokers), "links": len(links), "seconds": truth.seconds}
    for name, value in expected.items():
        require_close(f"plan.json: overlay.{name}", getattr(record, name), value, 0.0, findings)
    trees = proved_trees(plan, ends, truth, findings)
    if trees is None:
        return int(np.diff(truth.routes.starts).sum())
    of = tree_sources(plan, truth, len(trees), findings)
    check_links(ends, links, truth, findings)
    check_asked(plan, truth, findings)
    check_tree_limits(record.limits, trees, ends, truth, findings)
    carried = count_carried(dict(enumerate(trees)), of, ends, truth)
    check_ledger(record, carried.ledger, findings)
    check_figures(record, truth, links, findings)
    check_loads(carried, ends, links, truth, findings)
    check_crowded(truth, carried, ends, findings)
    return 0


def positions_of_ends(table: pa.Table, names: pa.Array, what: str, findings: Findings) -> Ints:
    """Ends of links as positions of brokers; unknown ones become violations."""
    found = [Axis("broker", names).positions(whole(table[end])) for end in ("a", "b")]
    ends = np.stack(found, axis=1)
    unknown = [
        whole(table[end]).filter(pa.array(at < 0)) for end, at in zip("ab", ends.T, strict=True)
    ]
    examples = [repr(name.as_py()) for column in unknown for name in column]
    findings.violate(f"{what}: no such broker", len(examples), examples)
    loops = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0))
    told = linked_names(loops, ends, names)
    findings.violate(f"{what}: a broker linked to itself", len(loops), told)
    return ends


def linked_names(rows: np.ndarray, ends: Ints, names: pa.Array) -> list[str]:
    return [
        " and ".join(repr(names[int(end)].as_py()) for end in ends[row]) for row in rows[:EXAMPLES]
    ]


def proved_trees(
    plan: StoredPlan, ends: Ints, truth: Truth, findings: Findings
) -> list[Proved] | None:
    """Every tree must reach every broker without a cycle; None if one does not."""
    if len(ends) and ends.min() < 0:
        return None
    member = [np.arange(len(ends))]
    if plan.section(OverlayRecord).trees > 1:
        member = tree_members(plan, ends, truth, findings)
        unused = np.setdiff1d(np.arange(len(ends)), np.concatenate(member))
        told = linked_names(unused, ends, truth.brokers)
        findings.violate("links: in no tree", len(unused), told)
    trees = [prove(ends, rows, len(truth.brokers)) for rows in member]
    sound = True
    for number, (tree, rows) in enumerate(zip(trees, member, strict=True)):
        apart = tree.apart
        examples = [repr(truth.brokers[int(broker)].as_py()) for broker in apart[:EXAMPLES]]
        first = truth.brokers[0].as_py()
        findings.violate(f"tree {number}: cut off from {first!r}", len(apart), examples)
        if not len(apart) and len(rows) != len(truth.brokers) - 1:
            what = f"{len(rows)} links for {len(truth.brokers)} brokers"
            findings.violate(f"tree {number}: has a cycle", 1, [what])
        sound = sound and not len(apart) and len(rows) == len(truth.brokers) - 1
    return trees if sound else None


def tree_members(
    plan: StoredPlan, ends: Ints, truth: Truth, findings: Findings
) -> list[np.ndarray]:
    """The links of each tree, as rows of the table of links."""
    table = plan.read("tree_links", ("tree", "a", "b"))
    own = positions_of_ends(table, truth.brokers, "tree_links", findings)
    row = {tuple(pair): at for at, pair in enumerate(np.sort(ends, axis=1).tolist())}
    at = np.array([row.get(tuple(pair), -1) for pair in np.sort(own, axis=1).tolist()], int)
    lost = np.flatnonzero((at < 0) & (own >= 0).all(axis=1))
    findings.violate("tree_links: not a link", len(lost), linked_names(lost, own, truth.brokers))
    tree = table["tree"].to_numpy()
    return [at[(tree == number) & (at >= 0)] for number in range(plan.section(OverlayRecord).trees)]


def tree_sources(plan: StoredPlan, truth: Truth, trees: int, findings: Findings) -> Ints:
    """The tree that messages take by where they enter."""
    of = np.zeros(len(truth.brokers), np.int32)
    if trees == 1:
        return of
    table = plan.read("tree_sources", ("broker", "tree"))
    at, tree = Axis("broker", truth.brokers).number(table), table["tree"].to_numpy()
    wrong = (at < 0) | (tree < 0) | (tree >= trees)
    examples = [repr(name.as_py()) for name in whole(table["broker"]).filter(pa.array(wrong))]
    findings.violate("tree_sources: no such broker or tree", len(examples), examples)
    times = np.bincount(at[~wrong], minlength=len(of))
    odd = [repr(truth.brokers[int(i)].as_py()) for i in np.flatnonzero(times != 1)]
    findings.violate("tree_sources: not exactly one tree", len(odd), odd)
    of[at[~wrong]] = tree[~wrong]
    return of


def check_links(ends: Ints, links: pa.Table, truth: Truth, findings: Findings) -> None:
    """Only given links may be used, none twice, with the weights that the dataset says."""
    keys = np.sort(ends, axis=1)
    _, first = np.unique(keys, axis=0, return_index=True)
    twice = np.setdiff1d(np.arange(len(keys)), first)
    findings.violate("links: given twice", len(twice), linked_names(twice, ends, truth.brokers))
    if truth.latency is not None:
        known = [tuple(pair) in truth.latency for pair in keys.tolist()]
        strange = np.flatnonzero(~np.array(known, bool))
        told = linked_names(strange, ends, truth.brokers)
        findings.violate("links: not a given link", len(strange), told)
    counted, stated = truth.weights(ends), links["weight"].to_numpy()
    scale = max(1.0, float(np.abs(counted).max(initial=0.0)))
    wrong = np.flatnonzero(~np.isclose(stated, counted, TOLERANCE, TOLERANCE * scale))
    findings.violate("links: weight", len(wrong), linked_names(wrong, ends, truth.brokers))


def check_asked(plan: StoredPlan, truth: Truth, findings: Findings) -> None:
    """The limits that trees are held to are those that were asked for."""
    record = plan.section(OverlayRecord)
    asked, limits = record.params, record.limits
    same = [(name, getattr(asked, name), getattr(limits, name)) for name in ("degree", "diameter")]
    same.append(("degrees", dict(asked.degrees), limits.degrees))
    most = [("trees", asked.trees, record.trees)]
    if isinstance(asked, AllocateParams) and record.allocation is not None:
        same.append(("lcf", asked.share, record.allocation.lcf))
        most.append(("brokers", asked.brokers or record.brokers, record.brokers))
    over = [name for name, limit, found in most if found > limit]
    for name in over + [name for name, said, held in same if said != held]:
        findings.violate(f"limit: {name}", 1, ["not as it was asked for"])
    known = {*truth.names, *plan.read("clients", ("client",))["client"].to_pylist()}
    named = {name for near, others, _ in asked.within for name in (near, *others)}
    findings.violate("within: nobody", len(named - known), [*map(repr, sorted(named - known))])
    hops, wanted = set(limits.hops), [*asked_hops(plan, truth)]
    lost = [told for *pair, told in wanted if tuple(pair) not in hops]
    findings.violate("limit: hops, asked for but not kept to", len(lost), lost)
    more = sorted(hops - {(one, other, most) for one, other, most, _ in wanted})
    findings.violate("limit: hops, not asked for", len(more), [*map(repr, more)])
    strange = sorted({name for one, other, _ in hops for name in (one, other)} - set(truth.names))
    findings.violate("limit: hops of no broker", len(strange), list(map(repr, strange)))


def asked_hops(plan: StoredPlan, truth: Truth) -> Iterator[tuple[str, str, int, str]]:
    """Pairs of brokers, the most hops between them, and who asked: clients are at their brokers."""
    table = plan.read("clients", ("client", "broker"))
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for client, broker in zip(
        table["client"].to_pylist(), table["broker"].to_pylist(), strict=True
    ):
        homes[client].add(broker)
    homes |= {broker: {broker} for broker in truth.names}
    for near, others, most in plan.section(OverlayRecord).params.within:
        for far in others:
            for one, other in product(homes[near], homes[far]):
                yield one, other, most, f"{near!r} and {far!r}"


def check_tree_limits(
    limits: LimitsRecord, trees: list[Proved], ends: Ints, truth: Truth, findings: Findings
) -> None:
    """Degrees over all links, diameter and hops in every tree."""
    degree = np.bincount(ends.ravel(), minlength=len(truth.brokers))
    most = {broker: limits.degrees.get(broker, limits.degree) for broker in truth.names}
    over = [
        f"{broker!r} has {links} links, {most[broker]} are allowed"
        for broker, links in zip(truth.names, degree.tolist(), strict=True)
        if most[broker] is not None and links > (most[broker] or 0)
    ]
    findings.violate("limit: degree", len(over), over)
    widest = limits.diameter or len(truth.brokers)
    wide = [f"{tree.diameter} hops" for tree in trees if tree.diameter > widest]
    findings.violate("limit: diameter", len(wide), wide)
    at = {name: position for position, name in enumerate(truth.names)}
    far = [
        f"{one!r} and {other!r} are {hops} hops apart in tree {number}, {most_hops} are allowed"
        for one, other, most_hops in limits.hops
        for number, tree in enumerate(trees)
        if {one, other} <= at.keys()
        if (hops := tree.path(at[one], at[other])) > most_hops
    ]
    findings.violate("limit: hops", len(far), far)


class OnLinks(NamedTuple):
    """Messages that brokers process and that cross each link, and the ledger of all trees."""

    processed: Floats
    crossed: Floats
    ledger: dict[str, float]


def count_carried(trees: Mapping[int, Proved], of: np.ndarray, ends: Ints, truth: Truth) -> OnLinks:
    """What trees carry together; messages that enter at broker i take the tree ``of[i]``."""
    counts = [count_tree(tree, of == number, ends, truth) for number, tree in trees.items()]
    processed: Floats = np.sum([found.processed for found in counts], axis=0)
    crossed = np.zeros(len(ends))
    for tree, found in zip(trees.values(), counts, strict=True):
        below = tree.links >= 0
        crossed[tree.links[below]] += found.crossed[below]
    arrived = float(sum(found.arrived.sum() for found in counts))
    ledger = {
        "publications": float(truth.routes.messages.sum()),
        "deliveries": float(truth.routes.deliveries.sum()),
        "arrivals": arrived,
        "link_messages": float(crossed.sum()),
        "processed": float(processed.sum()),
        "forwarded": float(processed.sum()) - arrived,
        "delay": float(sum(found.delay for found in counts)),
    }
    return OnLinks(processed, crossed, ledger)


def check_loads(
    carried: OnLinks, ends: Ints, links: pa.Table, truth: Truth, findings: Findings
) -> None:
    """Loads of brokers and rates of links must be those counted here."""
    wrong = np.flatnonzero(~close(links["rate"].to_numpy(), carried.crossed / truth.seconds))
    findings.violate("links: rate", len(wrong), linked_names(wrong, ends, truth.brokers))
    differing = np.flatnonzero(~close(truth.load, carried.processed / truth.seconds))
    examples = [repr(truth.names[int(i)]) for i in differing[:EXAMPLES]]
    findings.violate("brokers: load", len(differing), examples)


def close(stated: Floats, own: Floats) -> np.ndarray:
    scale = float(np.abs(own).max(initial=0.0))
    return np.isclose(stated, own, rtol=TOLERANCE, atol=TOLERANCE * scale)


def count_tree(tree: Proved, taken: np.ndarray, ends: Ints, truth: Truth) -> CountedTree:
    """What one tree carries of the messages that enter where it is taken."""
    latency = np.zeros(len(tree.parent))
    for broker in np.flatnonzero(tree.links >= 0):
        pair = tuple(np.sort(ends[tree.links[broker]]).tolist())
        latency[broker] = 1.0 if truth.latency is None else truth.latency.get(pair, 0.0)
    r = truth.routes
    mine = taken[r.source]
    return recount_routes(
        tree.parent, tree.depth, latency, r.source, r.starts, r.brokers, r.messages, mine
    )


def check_ledger(record: OverlayRecord, own: dict[str, float], findings: Findings) -> None:
    entries = record.ledger | dict.fromkeys(own.keys() - record.ledger.keys(), float("nan"))
    for name, stated in entries.items():
        require_close(f"ledger: {name}", stated, own.get(name, 0.0), own["processed"], findings)


def check_figures(record: OverlayRecord, truth: Truth, links: pa.Table, findings: Findings) -> None:
    """What plan.json says of all links together; their own weights are proved."""
    counted = {"bound": fewest_on_links(truth), "weight": float(links["weight"].to_numpy().sum())}
    for name, value in counted.items():
        require_close(f"plan.json: overlay.{name}", getattr(record, name), value, value, findings)
    unit = "ms" if truth.timed else "hops"
    if record.latency != unit:
        findings.violate("plan.json: overlay.latency", 1, [f"it is in {unit}"])


def fewest_on_links(truth: Truth) -> float:
    """No tree has fewer: a message crosses a link for each broker that it must reach."""
    routes, ends = truth.routes, np.diff(truth.routes.starts)
    away = routes.brokers != np.repeat(routes.source, ends)
    return float(np.repeat(routes.messages, ends)[away].sum())


def check_crowded(truth: Truth, carried: OnLinks, ends: Ints, findings: Findings) -> None:
    """Links must carry what crosses them; brokers that get too much are named as a warning."""
    if truth.bandwidth is not None:
        most = np.array([truth.bandwidth.get(tuple(p), np.inf) for p in np.sort(ends).tolist()])
        full = np.flatnonzero(carried.crossed / truth.seconds > most * (1 + TOLERANCE))
        told = linked_names(full, ends, truth.brokers)
        findings.violate("links: over their bandwidth", len(full), told)
    load = carried.processed / truth.seconds
    over = np.flatnonzero(load > truth.capacity * (1 + TOLERANCE))
    examples = [
        f"{truth.names[i]!r} processes {load[i]:g} of {truth.capacity[i]:g}/s"
        for i in over[:EXAMPLES]
    ]
    findings.warn("brokers: over their capacity, forwarding included", len(over), examples)


# ---- the check's own count of what trees carry: how many ends of a route lie beyond each link.
# A message crosses a link exactly if some, but not all ends of its route lie beyond it.


class CountedTree(NamedTuple):
    """Per broker: messages processed, arrived, and on the link to its parent; summed delays."""

    processed: Floats
    arrived: Floats
    crossed: Floats
    delay: float


@compiled
def recount_routes(
    parent: Ints,
    depth: Ints,
    latency: Floats,
    source: Ints,
    starts: Longs,
    brokers: Ints,
    messages: Floats,
    mine: np.ndarray,
) -> CountedTree:
    """Count the routes in ``mine``; ``latency`` is that of the link to the parent.

    O(ends of routes × depth).
    """
    size = len(parent)
    processed, arrived, crossed = np.zeros(size), np.zeros(size), np.zeros(size)
    beyond = np.zeros(size, np.int64)
    visited, used = np.full((2, size), -1, np.int64)
    delay = 0.0
    for route in np.flatnonzero(mine):
        weight, own = messages[route], source[route]
        wanted = brokers[starts[route] : starts[route + 1]]
        ends = np.unique(np.append(wanted, own))
        for end in ends:
            climb(parent, beyond, end, 1)
        visit(processed, visited, own, route, weight)
        for end in ends:
            here = end
            while beyond[here] < len(ends) and used[here] != route:
                used[here] = route
                crossed[here] += weight
                visit(processed, visited, here, route, weight)
                here = parent[here]
                visit(processed, visited, here, route, weight)
        for end in ends:
            climb(parent, beyond, end, -1)
        for end in wanted:
            arrived[end] += weight
            delay += weight * way_length(parent, depth, latency, own, end)
    return CountedTree(processed, arrived, crossed, delay)


@compiled
def climb(parent: Ints, beyond: Longs, here: int, step: int) -> None:
    """Count an end at a broker and at all above it."""
    while here >= 0:
        beyond[here] += step
        here = parent[here]


@compiled
def visit(processed: Floats, visited: Longs, here: int, route: Position, weight: float) -> None:
    """A broker processes a message once."""
    if visited[here] != route:
        visited[here] = route
        processed[here] += weight
