"""A feed of options on 96 lines: planned by interest, beside the ways that feeds are split today.

    python benchmarks/options.py [--symbols N] [--underlyings N] [--users N] [--json FILE]

Every symbol is on one line, and a subscriber joins each line that has something it wants. Lines are
given *by name* (ranges of the alphabet with equal traffic), *by underlying* (the heaviest first, to
the emptiest line), in turn (*round-robin*), or *planned* with at most 1.25 times the mean rate on a
line. Unwanted is the share of what is received; balance is the fullest line beside the mean, over
the day and in seconds with bursts, of each underlying for itself. What would be received if every
underlying had a line of its own stands beside it. Then the next day: expiries end and begin,
interest moves, and the plan may move some of the symbols that stay. The whole process runs under a
limit of 4 GB of address space; seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LIMIT = 4 << 30
resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

import numpy as np  # noqa: E402 - the limit must hold before anything is loaded
import pyarrow as pa  # noqa: E402
from scipy.optimize import linear_sum_assignment  # noqa: E402

from fanplan.core.arrays import Floats, Ints, Longs, listed_by, starts_of  # noqa: E402
from fanplan.core.kernels import compiled  # noqa: E402
from fanplan.core.stop import never  # noqa: E402
from fanplan.data.build import equal_audiences  # noqa: E402
from fanplan.data.interest import InterestProblem, take_audiences  # noqa: E402
from fanplan.layers.channels.search.lines import FINE, plan_lines, replan_lines  # noqa: E402
from fanplan.workload.generators.listed_options import (  # noqa: E402
    Listing,
    OptionsParams,
    cell_rates,
    draw_follows,
    draw_listing,
)

LINES = 96
SLACK = 1.25
SECONDS = 500
"""Seconds with bursts."""
CHURN = (0.0, 0.01, 0.05, 0.2)
"""Shares of the symbols that stay which may move overnight."""


@dataclass(frozen=True, eq=False)
class Day:
    """Cells, each a call and a put: who wants it, as classes of equal audiences, and its rate."""

    listing: Listing
    rate: Floats
    underlying: Longs
    key: Longs
    """underlying, expiry and strike in one number, the same on all days"""
    group: Longs
    indptr: Longs
    audience: Ints
    users: int

    @property
    def wanted(self) -> Floats:
        """Messages/s that somebody wants of each cell, at each who does."""
        return self.rate * np.diff(self.indptr)[self.group]


def make_day(params: OptionsParams, seed: int) -> Day:
    listing, follows = draw_listing(params, seed), draw_follows(params, seed)
    cells, count = listing.cells(), params.underlyings
    first = starts_of(cells)
    by, order = listed_by(follows.underlying, count)
    who = (follows.user[order], follows.near[order], follows.lo[order], follows.hi[order])
    indptr, audience = cell_audiences(by, who, first, listing.strikes)
    chosen, group = equal_audiences(indptr, audience, np.arange(len(indptr) - 1))
    own = take_audiences(indptr, audience, chosen)
    sizes = np.diff(indptr)[chosen]
    underlying = np.repeat(np.arange(count), cells)
    inside = np.arange(first[-1]) - np.repeat(first[:-1], cells)
    strikes = listing.strikes[underlying]
    days = np.concatenate(
        [np.repeat(d, k) for d, k in zip(listing.expiries, listing.strikes, strict=True)]
    )
    key = (underlying * 10_000 + days) * 10_000 + inside % strikes
    rate = 2 * cell_rates(params, listing, seed)
    return Day(listing, rate, underlying, key, group, starts_of(sizes), own, params.users)


@compiled
def cell_audiences(
    by: Longs, who: tuple[Longs, Longs, Longs, Longs], first: Longs, strikes: Longs
) -> tuple[Longs, Ints]:
    """The followers of each cell, ascending: cells are expiries × strikes of an underlying."""
    user, near, lo, hi = who
    sizes = np.zeros(first[-1] + 1, np.int64)
    for turn in range(2):
        if turn:
            indptr = np.cumsum(sizes)
            place, audience = indptr[:-1].copy(), np.empty(indptr[-1], np.int32)
        for u in range(len(strikes)):
            for f in range(by[u], by[u + 1]):
                for expiry in range(near[f]):
                    base = first[u] + expiry * strikes[u]
                    for cell in range(base + lo[f], base + hi[f]):
                        if turn:
                            audience[place[cell]] = user[f]
                            place[cell] += 1
                        else:
                            sizes[cell + 1] += 1
    return indptr, audience


@compiled
def joined(
    indptr: Longs, audience: Ints, group: Longs, line: Ints, lines: int, users: int
) -> Longs:
    """Lines × users: 1 who must join; ``line`` is of cells, whose audiences are of groups."""
    there = np.zeros((lines, users), np.int64)
    for cell in range(len(line)):
        for u in audience[indptr[group[cell]] : indptr[group[cell] + 1]]:
            there[line[cell], u] = 1
    return there


def measure(day: Day, lines: tuple[Ints, ...], seed: int) -> dict[str, float]:
    """Of an assignment of calls, and one of puts where they differ."""
    load, there = np.zeros(LINES), np.zeros((LINES, day.users), np.int64)
    share = np.zeros((len(day.listing.strikes), LINES))
    for line in lines:
        part = day.rate / len(lines)
        load += np.bincount(line, part, LINES)
        there |= joined(day.indptr, day.audience, day.group, line, LINES, day.users)
        np.add.at(share, (day.underlying, line), part)
    received = float(load @ there.sum(axis=1))
    random = np.random.default_rng([seed, 9])
    burst = np.exp(random.normal(-0.5, 1.0, (SECONDS, len(share))))
    seconds = burst @ share
    return {
        "unwanted %": 100 * (1 - float(day.wanted.sum()) / received),
        "received per wanted": received / float(day.wanted.sum()),
        "fullest line / mean": float(load.max() / load.mean()),
        "99 % of line-seconds / mean": float(np.quantile(seconds, 0.99) / load.mean()),
        "worst second / mean": float(seconds.max() / load.mean()),
        "lines of an underlying": float((share > 0).sum() / len(share)),
        "lines joined, mean": float(there.sum() / day.users),
    }


def split_by_name(day: Day) -> Ints:
    order = np.argsort(np.array(day.listing.tickers)[day.underlying], kind="stable")
    total = np.cumsum(day.rate[order])
    line = np.empty(len(order), np.int32)
    line[order] = np.minimum(LINES * (total - day.rate[order] / 2) / total[-1], LINES - 1)
    return line


def split_by_underlying(day: Day) -> Ints:
    total, load = np.bincount(day.underlying, day.rate), np.zeros(LINES)
    place = np.empty(len(total), np.int32)
    for u in np.argsort(-total, kind="stable"):
        place[u] = np.argmin(load)
        load[place[u]] += total[u]
    return place[day.underlying]


def own_lines(day: Day) -> dict[str, float]:
    """Received with as many lines as underlyings."""
    total = np.bincount(day.underlying, day.rate)
    line = day.underlying.astype(np.int32)
    there = joined(day.indptr, day.audience, day.group, line, len(total), day.users)
    received = float(total @ there.sum(axis=1)) / float(day.wanted.sum())
    return {"unwanted %": 100 * (1 - 1 / received), "received per wanted": received}


def as_rows(day: Day, cap: float, older: Ints | None = None) -> tuple[InterestProblem, Longs]:
    """Rows of cells with one audience and one older line, none too heavy; and each cell's row."""
    before = np.zeros(len(day.rate), np.int64) if older is None else older.astype(np.int64)
    order = np.lexsort((np.arange(len(before)), before, day.group))
    key = day.group[order] * (LINES + 2) + before[order] + 1
    new = np.append(True, key[1:] != key[:-1])
    total = np.cumsum(day.rate[order]) - day.rate[order]
    inside = total - total[np.flatnonzero(new)][np.cumsum(new) - 1]
    piece = (inside * FINE / cap).astype(np.int64)
    new |= np.append(True, piece[1:] != piece[:-1])
    row = np.empty(len(before), np.int64)
    row[order] = np.cumsum(new) - 1
    group = day.group[order[new]]
    count = len(group)
    messages = np.bincount(row[order], day.rate[order], count).astype(np.float64)
    sizes = np.diff(day.indptr)[group]
    return (
        InterestProblem(
            indptr=starts_of(sizes),
            audience=take_audiences(day.indptr, day.audience, group),
            messages=messages,
            bytes=messages,
            flows=2 * np.bincount(row[order], minlength=count),
            classes=group.astype(np.int32),
            seconds=1.0,
            subscribers=pa.array([f"u{i}" for i in range(day.users)]),
            source="options",
            rows="flow",
        ),
        row,
    )


def older_lines(today: Day, yesterday: Day, line: Ints) -> Ints:
    """The line that each cell had; -1 for one that was not listed."""
    order = np.argsort(yesterday.key)
    at = np.searchsorted(yesterday.key[order], today.key)
    at = order[np.minimum(at, len(order) - 1)]
    return np.where(yesterday.key[at] == today.key, line[at], -1).astype(np.int32)


def changes(today: Day, older: Ints, line: Ints, before: Longs) -> dict[str, float]:
    """Symbols that stay and move, and how members of lines change."""
    there = joined(today.indptr, today.audience, today.group, line, LINES, today.users)
    old = older >= 0
    return {
        "moved % of those that stay": 100 * float((line[old] != older[old]).mean()),
        "joins and leaves %": 100 * float((there != before).sum() / before.sum()),
    }


def renamed(line: Ints, older: Ints) -> Ints:
    """Lines of a plan made afresh, numbered so that most symbols stay."""
    old = older >= 0
    common = np.zeros((LINES, LINES))
    np.add.at(common, (line[old], older[old]), 1)
    numbers: Ints = linear_sum_assignment(-common)[1].astype(np.int32)[line]
    return numbers


class Clock:
    """Prints each row with the processor seconds since the last one."""

    def __init__(self) -> None:
        self.last, self.rows = time.process_time(), list[dict[str, Any]]()

    def row(self, name: str, **figures: float) -> None:
        now = time.process_time()
        row: dict[str, Any] = {
            "way": name,
            **{k: round(v, 3) for k, v in figures.items()},
            "cpu s": now - self.last,
        }
        self.last = now
        self.rows.append(row)
        print(", ".join(f"{k} {v:.3f}" if k != "way" else v for k, v in row.items()), flush=True)


def run(params: OptionsParams, seed: int) -> list[dict[str, Any]]:
    clock, began = Clock(), time.perf_counter()
    day = make_day(params, seed)
    cap = SLACK * day.rate.sum() / LINES
    pairs = 2 * float(np.diff(day.indptr)[day.group].sum())
    clock.row("day 0", symbols=2 * len(day.rate), pairs=pairs, audiences=len(day.indptr) - 1)
    deal = np.arange(2 * len(day.rate)) % LINES
    clock.row(
        "round-robin",
        **measure(day, (deal[::2].astype(np.int32), deal[1::2].astype(np.int32)), seed),
    )
    clock.row("by name", **measure(day, (split_by_name(day),), seed))
    clock.row("by underlying", **measure(day, (split_by_underlying(day),), seed))
    clock.row("a line for each underlying", **own_lines(day))
    problem, row = as_rows(day, cap)
    planned = plan_lines(problem, LINES, cap, seed, never)[row]
    clock.row("planned", **measure(day, (planned,), seed), rows=problem.size)
    members = joined(day.indptr, day.audience, day.group, planned, LINES, day.users)
    overnight(replace(params, day=1), seed, day, planned, members, clock)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    clock.row("all", wall=time.perf_counter() - began, gigabytes=peak)
    return clock.rows


def overnight(
    params: OptionsParams, seed: int, before: Day, line: Ints, members: Longs, clock: Clock
) -> None:
    """The next day: with so many moves at most, and planned afresh."""
    day = make_day(params, seed)
    cap = SLACK * day.rate.sum() / LINES
    older = older_lines(day, before, line)
    stay = 100 * float((older >= 0).mean())
    clock.row("day 1", symbols=2 * len(day.rate), stay=stay)
    problem, row = as_rows(day, cap, older)
    start = np.full(problem.size, -1, np.int32)
    start[row] = older
    for share in CHURN:
        most = share * 2 * float((older >= 0).sum())
        found = replan_lines(problem, LINES, cap, start, most, never)[row]
        told = measure(day, (found,), seed) | changes(day, older, found, members)
        clock.row(f"at most {100 * share:g} % moved", **told)
    problem, row = as_rows(day, cap)
    fresh = renamed(plan_lines(problem, LINES, cap, seed, never)[row], older)
    told = measure(day, (fresh,), seed) | changes(day, older, fresh, members)
    clock.row("planned afresh", **told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("symbols", "underlyings", "users"):
        parser.add_argument(f"--{name}", type=int, default=getattr(OptionsParams(), name))
    parser.add_argument("--seed", type=int, default=1001)
    parser.add_argument("--json", type=Path)
    given = vars(parser.parse_args())
    seed, file = given.pop("seed"), given.pop("json")
    rows = run(OptionsParams(**given), seed)
    if file:
        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
