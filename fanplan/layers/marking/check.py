"""The check of a marking: marks for all links of trees, valid, with counts and costs as told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Ints, Longs, listed_by
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.covers import BothCovers, Covers, read_covers
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.layers.marking.read import stored_marking
from fanplan.layers.marking.record import MarkingRecord, MergedRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.stored import StoredPlan
from fanplan.plan.tables import MARKS
from fanplan.plan.walks import at_or_below, climbed


def check_marking(plan: StoredPlan, dataset: Path, findings: Findings) -> int:
    """Add what is wrong; how many links there are at which both sides do not meet."""
    record = plan.section(MarkingRecord)
    problem = stored_marking(plan, dataset)
    marks = plan.read("marks", tuple(column.name for column in MARKS.columns))
    rows = rows_of_links(marks, problem, findings)
    if rows is None:
        return problem.size
    marks = marks.take(pa.array(rows))
    publish = stated_p_links(marks, problem, findings)
    counted = walk_ways(problem, publish)
    broken = np.flatnonzero(counted.broken)
    findings.violate("marks: p-link behind an s-link", len(broken), some_links(broken, problem))
    price = problem.sending + record.params.prices.stored
    for column, own in (("sigma", counted.sigma), ("tau", counted.tau), ("price", price)):
        stated = marks[column].to_numpy()
        wrong = np.flatnonzero(~np.isclose(stated, own, rtol=TOLERANCE, atol=0.0))
        findings.violate(f"marks: {column}", len(wrong), some_links(wrong, problem))
    check_marking_record(record, problem, publish, findings)
    if record.params.merge != (record.merged is not None):
        findings.violate("plan.json: marking.merged", 1, ["there, or not, against what was asked"])
    as_p, as_s = counted.sigma * price, counted.tau * price
    costs = check_marking_costs("marking", record, publish, as_p, as_s, findings)
    if record.merged:
        check_merged(record, dataset, problem, publish, marks, findings)
    else:
        require_cheapest("marking", costs, findings)
    return len(broken)


def rows_of_links(marks: pa.Table, problem: MarkingProblem, findings: Findings) -> Longs | None:
    """The row of each link of the trees; None, and violations, unless each has just one."""
    size, known = len(problem.nodes), len(findings.violations)
    stated = link_keys(marks, problem, findings)
    own = problem.tail.astype(np.int64) * size + problem.head
    missing = np.flatnonzero(~np.isin(own, stated))
    findings.violate("marks: missing", len(missing), some_links(missing, problem))
    order = np.argsort(stated, kind="stable")
    twice = order[1:][(np.diff(stated[order]) == 0) & (stated[order[1:]] >= 0)]
    findings.violate("marks: given twice", len(twice), named_rows(marks, twice))
    strange = np.flatnonzero((stated >= 0) & ~np.isin(stated, own))
    findings.violate("marks: in no tree", len(strange), named_rows(marks, strange))
    if len(findings.violations) > known:
        return None
    return order[np.searchsorted(stated[order], own)]


def link_keys(marks: pa.Table, problem: MarkingProblem, findings: Findings) -> Longs:
    """A number for the ends of each row, −1 if one of them is unknown."""
    ends = [Axis(end, problem.nodes).number(marks).astype(np.int64) for end in MARKS.key]
    for end, at in zip(MARKS.key, ends, strict=True):
        unknown = whole(marks[end]).filter(pa.array(at < 0)).unique().to_pylist()
        findings.violate(f"marks: no such {end}", len(unknown), [*map(repr, unknown)])
    return np.where(np.minimum(*ends) < 0, -1, ends[0] * len(problem.nodes) + ends[1])


def some_links(links: Longs, problem: MarkingProblem) -> list[str]:
    """Some links of the trees by their ends."""
    ends = ((problem.tail[link], problem.head[link]) for link in links[:EXAMPLES])
    names = problem.nodes
    return [f"{names[int(a)].as_py()!r} to {names[int(b)].as_py()!r}" for a, b in ends]


def named_rows(marks: pa.Table, rows: Longs) -> list[str]:
    """Some rows of the table by their ends."""
    some = marks.take(pa.array(rows[:EXAMPLES])).select(MARKS.key).to_pylist()
    return [f"{row['from_node']!r} to {row['to_node']!r}" for row in some]


def stated_p_links(marks: pa.Table, problem: MarkingProblem, findings: Findings) -> Bools:
    """Which links are p-links; every mark must be p or s."""
    mark = np.array(marks["mark"].to_pylist(), dtype=object)
    publish: Bools = mark == "p"
    wrong = np.flatnonzero(~publish & (mark != "s"))
    findings.violate("marks: neither p nor s", len(wrong), some_links(wrong, problem))
    return publish


def check_marking_record(
    record: MarkingRecord, problem: MarkingProblem, publish: Bools, findings: Findings
) -> None:
    own = {
        "nodes": len(problem.nodes),
        "publishers": (problem.published > 0).sum(),
        "subscribers": (problem.subscribed > 0).sum(),
        "published": problem.published.sum(),
        "subscribed": problem.subscribed.sum(),
        "links": problem.size,
        "p_links": publish.sum(),
        "s_links": problem.size - publish.sum(),
    }
    for name, value in own.items():
        require_close(f"plan.json: marking.{name}", getattr(record, name), value, 0.0, findings)


def check_marking_costs(
    section: str,
    record: MarkingRecord | MergedRecord,
    publish: Bools,
    as_p: Floats,
    as_s: Floats,
    findings: Findings,
) -> dict[str, float]:
    """Costs of the marking and of both broadcasts, as the check counts them."""
    own = {
        "cost": float(as_p[publish].sum() + as_s[~publish].sum()),
        "pub_everywhere": float(as_p.sum()),
        "sub_everywhere": float(as_s.sum()),
    }
    for name, value in own.items():
        require_close(f"plan.json: {section}.{name}", getattr(record, name), value, 0.0, findings)
    return own


def require_cheapest(section: str, own: dict[str, float], findings: Findings) -> None:
    """The best marking is no dearer than a broadcast."""
    cheapest = min(own["pub_everywhere"], own["sub_everywhere"])
    if own["cost"] > cheapest * (1 + TOLERANCE):
        what = f"{own['cost']} is more than the {cheapest} of broadcasting"
        findings.violate(f"plan.json: {section}.cost", 1, [what])


def check_merged(
    record: MarkingRecord,
    dataset: Path,
    problem: MarkingProblem,
    publish: Bools,
    marks: pa.Table,
    findings: Findings,
) -> None:
    """Merged counts of links and costs, and that merging pays."""
    merged = record.merged
    assert merged is not None
    stated = [marks[name].fill_null(-1).to_numpy() for name in ("merged_sigma", "merged_tau")]
    links, own = recount(problem, read_covers(dataset, problem.nodes))
    for name, told_, counted in zip(("merged_sigma", "merged_tau"), stated, own, strict=True):
        wrong = links[told_[links] != counted]
        findings.violate(f"marks: {name}", len(wrong), some_links(wrong, problem))
    price = problem.sending + record.params.prices.stored
    as_p, as_s = (count * price for count in stated)
    costs = check_marking_costs("marking.merged", merged, publish, as_p, as_s, findings)
    require_cheapest("marking.merged", costs, findings)
    rising = (merged.cost, merged.plain_merged, merged.plain, record.cost)
    if any(one > other * (1 + TOLERANCE) for one, other in itertools.pairwise(rising)):
        what = f"merged {rising[0]}, plain {rising[1]} and {rising[2]}, unmerged {rising[3]}"
        findings.violate("plan.json: marking.merged: costs do not rise", 1, [what])


# ---- the check's own count of descriptors: along every way, without sums over subtrees


MOST_NODES = 300_000_000
"""Nodes on links that are looked at; if there are more, some links are counted for all."""


class Walked(NamedTuple):
    """Descriptors on each link, and the p-links that directly follow an s-link on some way."""

    sigma: Longs
    tau: Longs
    broken: Bools


Sides = Callable[[int], tuple[Longs, Longs]]
"""The publishing nodes before a link, and the nodes behind it."""


def walk_ways(problem: MarkingProblem, publish: Bools) -> Walked:
    """σ and τ of all links (Ge et al. 2002, Eq. 3 and 6), and where Eq. 1 does not hold."""
    if isinstance(problem.trees, SharedTree):
        return walk_shared(problem, problem.trees, publish)
    return walk_sources(problem, problem.trees, publish)


def walk_sources(problem: MarkingProblem, trees: SourceTrees, publish: Bools) -> Walked:
    """From each subscriber up to each publisher. O(pairs of them × depth)."""
    ends, entries = listed_by(problem.head[trees.link], len(problem.nodes))
    f = np.repeat(problem.published[trees.root], np.diff(trees.starts))
    return Walked(
        *climb_sources(publish, trees.link, trees.above, f, entries, ends, problem.subscribed)
    )


@compiled
def climb_sources(
    publish: Bools, link: Ints, above: Longs, f: Longs, entries: Longs, ends: Longs, g: Longs
) -> tuple[Longs, Longs, Bools]:
    """``f`` is per entry of a tree; ``entries[ends[n]:ends[n + 1]]`` are those that lead to n."""
    sigma, tau = np.zeros((2, len(publish)), np.int64)
    broken, used = np.zeros(len(publish), np.bool_), np.zeros(len(link), np.bool_)
    last = np.full(len(publish), -1, np.int64)
    for node in np.flatnonzero(g):
        for entry in entries[ends[node] : ends[node + 1]]:
            at, below = entry, link[entry]
            while at >= 0:
                here = link[at]
                broken[below] |= publish[below] and not publish[here]
                if last[here] != node:
                    last[here] = node
                    tau[here] += g[node]
                if not used[at]:
                    used[at] = True
                    sigma[here] += f[at]
                at, below = above[at], here
    return sigma, tau, broken


def walk_shared(problem: MarkingProblem, tree: SharedTree, publish: Bools) -> Walked:
    """From each publisher and each subscriber up to the core. O(those × depth)."""
    sigma, tau = np.zeros((2, problem.size), np.int64)
    for count, own, other in (
        (problem.published, sigma, (tree.up, tree.down)),
        (problem.subscribed, tau, (tree.down, tree.up)),
    ):
        below = climbed(tree.parent, count)
        for way, behind in zip(other, (below, count.sum() - below), strict=True):
            used = way >= 0
            own[way[used]] = behind[used]
    return Walked(sigma, tau, turned_links(problem, publish))


def turned_links(problem: MarkingProblem, publish: Bools) -> Bools:
    """On a shared tree every link follows all into its tail but the one from its own head."""
    tail, head = problem.tail.tolist(), problem.head.tolist()
    arriving: dict[int, set[int]] = {}
    for link in np.flatnonzero(~publish).tolist():
        arriving.setdefault(head[link], set()).add(tail[link])
    broken = np.zeros(problem.size, bool)
    for link in np.flatnonzero(publish).tolist():
        before = arriving.get(tail[link], set())
        broken[link] = len(before) > (head[link] in before)
    return broken


# ---- merged descriptors, counted link by link, from who is on it


def recount(problem: MarkingProblem, covers: BothCovers) -> tuple[Longs, tuple[Longs, Longs]]:
    """Links, all or evenly chosen ones, and their merged σ and τ."""
    if isinstance(problem.trees, SharedTree):
        sides, work = shared_sides(problem, problem.trees), problem.size * len(problem.nodes)
    else:
        sides, work = source_sides(problem, problem.trees)
    links = np.arange(0, problem.size, 1 + work // MOST_NODES)
    roles = [
        (many, listed_by(own.home, len(problem.nodes)))
        for many, own in zip((problem.published, problem.subscribed), covers, strict=True)
    ]
    found = np.zeros((2, len(links)), np.int64)
    marked = np.zeros(len(problem.nodes), np.bool_)
    for at, link in enumerate(links.tolist()):
        for role, nodes in enumerate(sides(link)):
            many, (starts, rows) = roles[role]
            found[role, at] = joint(nodes, many, starts, rows, covers[role], marked)
    return links, (found[0], found[1])


@compiled
def joint(
    nodes: Longs, many: Longs, starts: Longs, rows: Longs, covers: Covers, marked: np.ndarray
) -> int:
    """Descriptors of some different nodes together; ``marked`` is empty, and left so."""
    total: int = many[nodes].sum()
    marked[nodes] = True
    for node in nodes:
        for row in rows[starts[node] : starts[node + 1]]:
            if marked[covers.nodes[covers.starts[row] : covers.starts[row + 1]]].any():
                total -= covers.many[row]
    marked[nodes] = False
    return total


def source_sides(problem: MarkingProblem, trees: SourceTrees) -> tuple[Sides, int]:
    """Roots of the trees that have a link, and all nodes below it in one of them."""
    end = ends_below(trees.above)
    root = np.repeat(trees.root, np.diff(trees.starts)).astype(np.int64)
    first, order = listed_by(trees.link, problem.size)
    head = problem.head[trees.link].astype(np.int64)

    def sides(link: int) -> tuple[Longs, Longs]:
        entries = order[first[link] : first[link + 1]]
        below = [head[entry : end[entry]] for entry in entries]
        return root[entries], np.unique(np.concatenate(below))

    return sides, int((end - np.arange(len(end))).sum())


@compiled
def ends_below(above: Longs) -> Longs:
    """The first entry after those below each entry."""
    end = np.arange(1, len(above) + 1)
    for entry in range(len(above) - 1, -1, -1):
        if above[entry] >= 0:
            end[above[entry]] = max(end[above[entry]], end[entry])
    return end


def shared_sides(problem: MarkingProblem, tree: SharedTree) -> Sides:
    """All nodes on the one side of a link, and all on the other."""
    order, parent = tree.order.astype(np.int64), tree.parent.astype(np.int64)

    def sides(link: int) -> tuple[Longs, Longs]:
        tail, head = int(problem.tail[link]), int(problem.head[link])
        falls = parent[head] == tail
        inside = at_or_below(order, parent, head if falls else tail)
        far, near = order[inside[order]], order[~inside[order]]
        return (near, far) if falls else (far, near)

    return sides
