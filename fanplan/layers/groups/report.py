"""The section on groups: what is matched once, what that saves, and all groups as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import listed_by
from fanplan.layers.groups.params import EntryBudget, Threshold, Top
from fanplan.layers.groups.record import GroupsRecord
from fanplan.page.charts import MOST_POINTS, ChartLine, Frame, chart, chart_lines
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.details import Fact, Related, Shelf
from fanplan.page.material import Told, ToldLayer
from fanplan.page.network import link_name
from fanplan.page.numbers import number, percent, ticks
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan

LEAD = (
    "Which messages are matched only once, where they enter, and then forwarded by the number of "
    "their group. Everything else is matched at every broker on its way."
)
FIGURES = {
    "matches_total": "matches",
    "link_messages": "messages on links",
    "delay": "mean delay, hops and matches",
    "unwanted": "unwanted messages",
    "entries": "forwarding entries",
    "overhead": "control messages",
}
"""Figures of the ledger in words."""
COLUMNS = ("group", "root", "members", "messages", "unwanted", "entries", "control", "benefit")

MOST_GROUPS = 1000
"""Groups that open on a click: the best."""


def tell_groups(planned: ToldLayer) -> Told:
    plan, record = planned.plan, planned.plan.section(GroupsRecord)
    groups = [tuple(row.values()) for row in plan.read("virtual_groups", COLUMNS).to_pylist()]
    benefit = np.array([row[-1] for row in groups], np.float64)
    section = Section(
        planned.name,
        planned.title,
        LEAD,
        groups_facts(record),
        [benefit_picture(planned.name, benefit)] if np.any(benefit > 0) else [],
        [
            figure_listing(planned.name, record),
            Listing(
                f"{planned.name}-groups",
                "Groups",
                COLUMNS,
                groups,
                opens={"group": "group", "root": "broker"},
            ),
        ],
    )
    return Told(groups_saving(planned, record), section, shelves=[group_shelf(plan, groups)])


def group_shelf(plan: StoredPlan, groups: list[tuple[Any, ...]]) -> Shelf:
    """The best groups with the brokers they are sent to, and the links they use."""
    shown = groups[:MOST_GROUPS]
    names, seconds = [str(row[0]) for row in shown], plan.record.input.seconds
    of = dict(zip(COLUMNS, zip(*shown, strict=True), strict=True)) if shown else {}
    facts = [Fact("where it enters", of.get("root", ()))]
    facts += [
        Fact(words, [value / seconds for value in of.get(column, ())], "rate")
        for column, words in (("messages", "sent"), ("unwanted", "unwanted"))
    ]
    facts += [Fact(column, of.get(column, ())) for column in ("entries", "control", "benefit")]
    members = plan.read("group_members", ("group", "broker")).to_pylist()
    used = [
        (row["group"], link_name(row["from_broker"], row["to_broker"]))
        for table in ("group_links", "shortcuts")
        for row in plan.read(table, ("group", "from_broker", "to_broker")).to_pylist()
    ]
    sent_to = [(row["group"], row["broker"]) for row in members]
    about = ("Brokers it is sent to", "broker", "Groups"), ("Links", "link", "Groups on it")
    related = [
        group_related(names, title, kind, back, pairs)
        for (title, kind, back), pairs in zip(about, (sent_to, used), strict=True)
    ]
    return Shelf("group", names, facts, related)


def group_related(
    names: list[str], title: str, kind: str, back: str, pairs: list[tuple[int, str]]
) -> Related:
    """What belongs to each group, by name."""
    own = [(group, name) for group, name in pairs if group < len(names)]
    known = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in own))}
    group, item = np.array([(g, known[n]) for g, n in own], np.int64).reshape(-1, 2).T
    starts, order = listed_by(group, len(names))
    return Related(title, kind, list(known), starts, item[order], back=back)


def groups_saving(planned: ToldLayer, record: GroupsRecord) -> Saving:
    return Saving(
        name=planned.name,
        layer="Groups",
        plan=planned.folder,
        unit="matches",
        steps=(
            Step("matching at every broker", record.default["matches_total"]),
            Step("this plan", record.ledger["matches_total"]),
        ),
        gains=("matching once",),
    )


def groups_facts(record: GroupsRecord) -> list[tuple[str, Any]]:
    return [
        ("trees", record.params.trees),
        ("brokers", record.brokers),
        ("groups found", record.groups),
        ("groups set up", record.selected),
        ("chosen", rule(record)),
        ("ranked by", record.params.rank),
        ("messages in groups", percent(record.covered)),
        ("benefit", record.value),
        ("no choice by this rule exceeds", record.bound),
        ("shortcuts", record.params.shortcuts),
    ]


def rule(record: GroupsRecord) -> str:
    """By which rule groups were chosen, in words."""
    match record.params.choice.select:
        case Top(share):
            return f"the best {percent(share)}"
        case Threshold(least):
            return f"those with a benefit above {number(least)}"
        case EntryBudget(entries):
            return f"the best for {number(entries)} entries"


def figure_listing(name: str, record: GroupsRecord) -> Listing:
    """Default routing beside the plan."""
    rows = []
    for key, words in FIGURES.items():
        before, after = record.default[key], record.ledger[key]
        saved = round(100 * (before - after) / before, 1) if before else None
        rows.append((words, before, after, before - after, saved))
    header = ("figure", "default routing", "with groups", "saved", "saved %")
    return Listing(f"{name}-figures", "With and without groups", header, rows, mixed=True)


def benefit_picture(name: str, benefit: NDArray[np.float64]) -> Picture:
    """How much the best groups bring of what all bring: few are enough, or many are needed.

    Groups that cost more than they save are told apart.
    """
    paying = np.sort(benefit[benefit > 0])[::-1]
    shares = 100 * np.cumsum(paying) / paying.sum()
    marks = ticks(len(paying))
    title = "What the best groups bring"
    frame = Frame(
        lambda x: x / marks[-1], marks, "number of groups", ticks(100), "% of the benefit"
    )
    kept = np.unique(np.linspace(0, len(paying) - 1, MOST_POINTS).astype(int)).tolist()
    points = [(0.0, 0.0), *((i + 1.0, float(shares[i])) for i in kept)]
    half = int(np.searchsorted(shares, 50.0)) + 1
    rest = len(benefit) - len(paying)
    vain = f" {number(rest)} of those set up bring nothing or cost more than that." if rest else ""
    return Picture(
        f"{name}-benefit",
        title,
        chart(frame, title, *chart_lines(frame, [ChartLine(points, "planned")])),
        f"{number(half)} of {number(len(paying))} groups bring half of the benefit.{vain}",
    )
