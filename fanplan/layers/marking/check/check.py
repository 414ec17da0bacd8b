"""The check of a marking: marks for all links of trees, valid, with counts and costs as told."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.layers.marking.check.count import recount, walk_ways
from fanplan.layers.marking.problem.covers import read_covers
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.read import stored_problem
from fanplan.layers.marking.record import MarkingRecord, MergedRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.stored import StoredPlan
from fanplan.plan.tables import MARKS


def check_marking(plan: StoredPlan, dataset: Path, findings: Findings) -> int:
    """Add what is wrong; how many links there are at which both sides do not meet."""
    record = plan.section(MarkingRecord)
    problem = stored_problem(plan, dataset)
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
