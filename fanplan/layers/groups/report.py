"""The section on groups: what is matched once, what that saves, and all groups as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fanplan.layers.groups.params import EntryBudget, Threshold, Top
from fanplan.layers.groups.record import GroupsRecord
from fanplan.page.charts import MOST_POINTS, ChartLine, Frame, chart, chart_lines
from fanplan.page.content import Listing, Picture, Section
from fanplan.page.material import Told, ToldLayer
from fanplan.page.numbers import number, percent, ticks
from fanplan.page.saving import Saving, Step

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
            Listing(f"{planned.name}-groups", "Groups", COLUMNS, groups),
        ],
    )
    return Told(groups_saving(planned, record), section)


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
