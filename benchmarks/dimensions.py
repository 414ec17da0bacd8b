"""Events against subscriptions with many attributes: Fanplan's matcher and its peers, in one run.

    python benchmarks/dimensions.py [--quick] [--sizes 65536 262144 1000000] [--json FILE]

Every subscription has predicates on some of the attributes, an event has a value of each. All
methods run on one thread, are compiled, and must find the same subscriptions; each gets as many
events as it does in about ``BUDGET`` seconds, and processor time counts. Fanplan's matcher runs
twice: on a batch of events, which is how ingest, replay and groups use it, and on one event at a
time. Peers take one event at a time, as they are published.

- scan: every subscription until a predicate fails.
- R-tree: of the library `rtree`, for up to ``TREE_MOST`` subscriptions: it takes too long to build.
- REIN (Qian et al., 2014): the ends of predicates sorted by attribute; all that fail are marked.
- HEM (Shi et al., 2022): the same with the marks of whole buckets kept as bit sets.

Then some subscriptions go and others come, without a new index.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fanplan.boxes.changing import ChangingBoxes
from fanplan.boxes.matching import find_boxes, index_boxes
from fanplan.core.arrays import Bools, Bytes, Floats, Ints, Longs, Words
from fanplan.core.bits import clear_bit, lowest_bit, set_bit
from fanplan.core.kernels import compiled

ATTRIBUTES, PREDICATES = 20, 10
BUDGET, BATCH, CHECKED = 4.0, 8192, 64
TREE_MOST = 65_536
CHANGED = 2000
"""Subscriptions that come, and others that go."""
SEED = 25
PART = 1024
"""Words of a bit set that HEM handles at a time."""
GOALS = (("Fanplan, batches", "REIN", 24.0), ("Fanplan, batches", "HEM", 2.0),
         ("Fanplan, single", "HEM", 1.0))  # fmt: skip
"""Times the rate of a peer, at least."""


@dataclass(frozen=True)
class Shape:
    """How subscriptions are drawn: which attributes they name, and how wide their ranges are."""

    name: str
    zipf: float = 0.0
    widths: tuple[float, float] = (0.5, 0.5)
    narrow: float = 1.0
    """Widths are drawn between the two, to this power: above 1 most are narrow."""


SHAPES = (
    Shape("uniform"),
    Shape("Zipf", zipf=1.0),
    Shape("skewed widths", widths=(0.05, 1.0), narrow=3.0),
)


def draw(shape: Shape, count: int, seed: int) -> tuple[Floats, Floats, Bools]:
    """Low and high ends, open where there is no predicate, and where there is one."""
    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, ATTRIBUTES + 1) ** shape.zipf
    # The largest of random keys are a draw without replacement by weight (Efraimidis & Spirakis).
    keys = random.random((count, ATTRIBUTES)) ** (1 / weight)
    chosen = np.argpartition(-keys, PREDICATES, axis=1)[:, :PREDICATES]
    has = np.zeros((count, ATTRIBUTES), np.bool_)
    np.put_along_axis(has, chosen, True, axis=1)
    least, most = shape.widths
    width = least + (most - least) * random.random((count, ATTRIBUTES)) ** shape.narrow
    low = random.random((count, ATTRIBUTES)) * (1 - width)
    return np.where(has, low, 0.0), np.where(has, low + width, 1.0), has


# ---- peers


@compiled
def scan(lo: Floats, hi: Floats, event: Floats, found: Ints) -> int:
    used = 0
    for row in range(len(lo)):
        axis = 0
        while axis < len(event) and lo[row, axis] <= event[axis] < hi[row, axis]:
            axis += 1
        if axis == len(event):
            found[used] = row
            used += 1
    return used


class Rein(NamedTuple):
    """Ends of the predicates on each attribute, ascending, and whose they are."""

    start: Longs
    low: Floats
    low_of: Ints
    high: Floats
    high_of: Ints
    marked: Bytes


def make_rein(lo: Floats, hi: Floats, has: Bools) -> Rein:
    parts = []
    for axis in range(lo.shape[1]):
        rows = np.flatnonzero(has[:, axis]).astype(np.int32)
        up, down = np.argsort(lo[rows, axis]), np.argsort(hi[rows, axis])
        parts.append((lo[rows[up], axis], rows[up], hi[rows[down], axis], rows[down]))
    start = np.append(0, np.cumsum([len(part[0]) for part in parts]))
    low, low_of, high, high_of = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Rein(start, low, low_of, high, high_of, np.zeros(len(lo), np.uint8))


@compiled
def rein(index: Rein, event: Floats, found: Ints) -> int:
    index.marked[:] = 0
    for axis in range(len(event)):
        a, b = index.start[axis], index.start[axis + 1]
        for k in range(a + np.searchsorted(index.low[a:b], event[axis], side="right"), b):
            index.marked[index.low_of[k]] = 1
        for k in range(a, a + np.searchsorted(index.high[a:b], event[axis], side="right")):
            index.marked[index.high_of[k]] = 1
    used = 0
    for row in range(len(index.marked)):
        found[used] = row
        used += 1 - index.marked[row]
    return used


class Hem(NamedTuple):
    """Bit sets of the subscriptions that fail in a whole bucket, and the ends within each."""

    rein: Rein
    buckets: int
    fails: Words
    low_first: Longs
    high_first: Longs
    left: Words


def make_hem(lo: Floats, hi: Floats, has: Bools, memory: int = 400 << 20) -> Hem:
    """As many buckets as fit into the memory, at most 256."""
    index, words = make_rein(lo, hi, has), -(len(lo) // -64)
    buckets = int(np.clip(memory // (8 * words * lo.shape[1]), 8, 256))
    edges = np.arange(buckets + 1) / buckets
    first = np.empty((2, lo.shape[1], buckets + 1), np.int64)
    for axis in range(lo.shape[1]):
        own = slice(index.start[axis], index.start[axis + 1])
        for side, ends in enumerate((index.low[own], index.high[own])):
            first[side, axis] = index.start[axis] + np.searchsorted(ends, edges)
    fails = np.zeros((lo.shape[1], buckets, words), np.uint64)
    fill_fails(index, first[0], first[1], fails)
    return Hem(index, buckets, fails, first[0], first[1], np.empty(words, np.uint64))


@compiled
def fill_fails(index: Rein, low_first: Longs, high_first: Longs, fails: Words) -> None:
    """From bucket to bucket ranges begin, and fail no longer, or have ended."""
    for axis in range(fails.shape[0]):
        for k in range(low_first[axis, 1], index.start[axis + 1]):
            set_bit(fails[axis, 0], index.low_of[k])
        for bucket in range(1, fails.shape[1]):
            now = fails[axis, bucket]
            now[:] = fails[axis, bucket - 1]
            for k in range(low_first[axis, bucket], low_first[axis, bucket + 1]):
                clear_bit(now, index.low_of[k])
            for k in range(high_first[axis, bucket - 1], high_first[axis, bucket]):
                set_bit(now, index.high_of[k])


@compiled
def hem(index: Hem, event: Floats, found: Ints) -> int:
    """Whole buckets first, part by part of the result, so that it stays in the cache."""
    left, ends = index.left, index.rein
    for start in range(0, len(left), PART):
        part = left[start : start + PART]
        part[:] = 0
        for axis in range(len(event)):
            row = index.fails[axis, int(event[axis] * index.buckets), start : start + PART]
            for word in range(len(part)):
                part[word] |= row[word]
    for axis in range(len(event)):
        bucket = int(event[axis] * index.buckets)
        a, b = index.low_first[axis, bucket], index.low_first[axis, bucket + 1]
        for k in range(a + np.searchsorted(ends.low[a:b], event[axis], side="right"), b):
            set_bit(left, ends.low_of[k])
        a, b = index.high_first[axis, bucket], index.high_first[axis, bucket + 1]
        for k in range(a, a + np.searchsorted(ends.high[a:b], event[axis], side="right")):
            set_bit(left, ends.high_of[k])
    used = 0
    for word in range(len(left)):
        some = ~left[word]
        while some != 0:
            row = 64 * word + lowest_bit(some)
            some &= some - np.uint64(1)
            if row < len(found) - 1:
                found[used] = row
                used += 1
    return used


# ---- all on the same events

Matcher = Callable[[Floats], list[Ints]]
"""Events to the subscriptions that each of them meets, ascending."""


def fanplan_matcher(lo: Floats, hi: Floats) -> Matcher:
    count, zeros = len(lo), np.zeros(len(lo), np.int64)
    numbers = np.arange(count)
    index = index_boxes(zeros, np.full(count, lo.shape[1], np.int32), lo, hi, numbers, numbers)

    def match(events: Floats) -> list[Ints]:
        order, offsets, boxes = find_boxes(index, np.zeros(len(events), np.int64), events)
        given = index.given[boxes]
        rows: list[Ints] = [np.empty(0, np.int32)] * len(events)
        for place, event in enumerate(order):
            rows[event] = given[offsets[place] : offsets[place + 1]]
        return rows

    return match


def one_at_a_time(match: Callable[[Floats, Ints], int], count: int) -> Matcher:
    found = np.empty(count + 1, np.int32)

    def matched(events: Floats) -> list[Ints]:
        return [found[: match(event, found)].copy() for event in events]

    return matched


def tree_matcher(lo: Floats, hi: Floats) -> Matcher:
    from rtree import index

    stream = ((row, (*lo[row], *hi[row]), None) for row in range(len(lo)))
    tree = index.Index(stream, properties=index.Property(dimension=lo.shape[1]))
    # The tree's boxes are closed, ours are open above: no end equals a value drawn here.
    return lambda events: [
        np.fromiter(tree.intersection((*event, *event)), np.int32) for event in events
    ]


def matchers(
    lo: Floats, hi: Floats, has: Bools
) -> Iterator[tuple[str, int, Callable[[], Matcher]]]:
    """Names, events at a time, and what builds them: one after another, as memory is dear."""
    count = len(lo)

    def with_index(
        make: Callable[..., NamedTuple], ask: Callable[..., int]
    ) -> Callable[[], Matcher]:
        def build() -> Matcher:
            index = make(lo, hi, has)
            return one_at_a_time(lambda event, found: ask(index, event, found), count)

        return build

    yield "Fanplan, batches", BATCH, lambda: fanplan_matcher(lo, hi)
    yield "Fanplan, single", 1, lambda: fanplan_matcher(lo, hi)
    yield "HEM", 1, with_index(make_hem, hem)
    yield "REIN", 1, with_index(make_rein, rein)
    yield (
        "scan", 1,
        lambda: one_at_a_time(lambda event, found: scan(lo, hi, event, found), count),
    )  # fmt: skip
    if count <= TREE_MOST:
        yield "R-tree", 1, lambda: tree_matcher(lo, hi)


@dataclass(frozen=True)
class Row:
    """What a method did; seconds of processor time."""

    shape: str
    subscriptions: int
    method: str
    build: float
    event: float
    matches: float


def rate(match: Matcher, events: Floats, batch: int) -> float:
    """Seconds an event, over as many events as fit into the budget."""
    match(events[:batch])
    done, spent = 0, 0.0
    while spent < BUDGET and done < 20 * len(events):
        first = done % len(events)
        start = time.process_time()
        done += len(match(events[first : first + batch]))
        spent += time.process_time() - start
    return spent / done


def measure(shape: Shape, count: int) -> Iterator[Row]:
    lo, hi, has = draw(shape, count, SEED)
    events = np.random.default_rng(SEED + 1).random((4 * BATCH, ATTRIBUTES))
    known: list[list[int]] | None = None
    for name, batch, build in matchers(lo, hi, has):
        start = time.process_time()
        match = build()
        built = time.process_time() - start
        found = [np.sort(each).tolist() for each in match(events[:CHECKED])]
        if known is not None and found != known:
            raise SystemExit(f"{name} finds other subscriptions than the first method")
        known = found
        matches = sum(map(len, found)) / CHECKED
        yield Row(shape.name, count, name, built, rate(match, events, batch), matches)


def tell_goals(seconds: dict[str, float]) -> None:
    for ours, peer, goal in GOALS:
        ratio = seconds[peer] / seconds[ours]
        met = "met" if ratio >= goal else "NOT met"
        print(f"  Goal: {ours}, at least {goal:g} × {peer}: {ratio:.1f}, {met}", flush=True)


# ---- subscriptions that come and go


def changes(shape: Shape, count: int) -> str:
    """Some go and others come, one by one; then answers are held against those of a scan."""
    lo, hi, _ = draw(shape, count + CHANGED, SEED)
    boxes = ChangingBoxes()
    start = time.process_time()
    boxes.add(range(count), 0, lo[:count], hi[:count])
    built = time.process_time() - start
    boxes.find(0, lo[:1])
    boxes.add([count], 0, lo[count : count + 1], hi[count : count + 1])  # compiles
    start = time.process_time()
    for row in range(count + 1, count + CHANGED):
        boxes.add([row], 0, lo[row : row + 1], hi[row : row + 1])
    added = time.process_time() - start
    gone = np.random.default_rng(SEED).choice(count, CHANGED, replace=False)
    start = time.process_time()
    for row in gone.tolist():
        boxes.remove(row)
    removed = time.process_time() - start
    hi[gone] = -np.inf
    events = np.random.default_rng(SEED + 1).random((CHECKED, ATTRIBUTES))
    offsets, found = boxes.find(0, events)
    known = one_at_a_time(lambda event, out: scan(lo, hi, event, out), len(lo))(events)
    for event, rows in enumerate(known):
        if not np.array_equal(found[offsets[event] : offsets[event + 1]], rows):
            raise SystemExit("After changes other subscriptions are found than by a scan")
    each = [1e6 * seconds / CHANGED for seconds in (added, removed)]
    return f"| {count:,} | {shape.name} | {built:.1f} | {each[0]:.0f} | {each[1]:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[TREE_MOST, 262_144, 1_000_000])
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    list(measure(SHAPES[0], 256))  # compiles
    rows = []
    print("| subscriptions | shape | matches | method | build, s | ms an event | × REIN |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in [8192] if options.quick else options.sizes:
        for shape in SHAPES:
            some = list(measure(shape, count))
            rows += some
            theirs = next(row.event for row in some if row.method == "REIN")
            for row in some:
                print(
                    f"| {count:,} | {shape.name} | {row.matches:,.0f} | {row.method} | "
                    f"{row.build:.1f} | {1000 * row.event:.4f} | {theirs / row.event:.1f} |"
                )
            tell_goals({row.method: row.event for row in some})
    print("\n| subscriptions | shape | build, s | µs to add one | µs to remove one |")
    print("| --- | --- | --- | --- | --- |")
    for count in [8192] if options.quick else options.sizes:
        print(changes(SHAPES[0], count), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
