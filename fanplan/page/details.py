"""What opens on a click: things by kind, with their facts and what they are related to.

Layers tell shelves; the page puts those of one kind together, by name, and packs them: numbers
stand for names, and the whole is compressed. The script of the page knows no kind by itself.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fanplan.core.arrays import NONE, Longs, starts_of
from fanplan.core.result import is_number

Unit = Literal["", "rate", "percent", "words"]
"""How values are written: as they are, as messages in a time that fits, as a share of 1 in
percent, or as words that stand beside the name of a thing wherever it is named."""

MOST_PAIRS = 60_000
"""Pairs of a relation that a page has; of each thing the first are kept."""
DIGITS = 4
"""Of numbers on the page that nobody can read more of."""


@dataclass(frozen=True)
class Fact:
    """What is known of each thing; None: nothing."""

    words: str
    values: Sequence[Any]
    unit: Unit = ""


@dataclass(frozen=True, eq=False)
class Related:
    """To each thing others of a kind: those of thing i are ``items[starts[i]:starts[i + 1]]``.

    Items are positions in ``names``, the most important first. ``columns`` say something of each
    pair. ``back`` is the title of the same relation seen from the other side, if it is to be seen.
    ``totals`` says of how many a thing has more than are told here.
    """

    title: str
    kind: str
    names: Sequence[str]
    starts: Longs
    items: Longs
    columns: Sequence[Fact] = ()
    back: str = ""
    totals: Sequence[int] | None = None
    note: str = ""

    def cut(self) -> Related:
        """As many of each thing as leave the page small."""
        sizes = np.diff(self.starts)
        most = longest(sizes, MOST_PAIRS)
        if sizes.max(initial=0) <= most:
            return self
        rank = np.arange(len(self.items)) - np.repeat(self.starts[:-1], sizes)
        kept = np.flatnonzero(rank < most)
        starts = starts_of(np.minimum(sizes, most))
        columns = [
            Fact(one.words, [one.values[i] for i in kept.tolist()], one.unit)
            for one in self.columns
        ]
        totals = self.totals if self.totals is not None else sizes.tolist()
        about = (self.title, self.kind, self.names, starts, self.items[kept])
        return Related(*about, columns, self.back, totals, self.note)


@dataclass(frozen=True, eq=False)
class Shelf:
    """Things of a kind; several shelves may tell of the same things."""

    kind: str
    names: Sequence[str]
    facts: Sequence[Fact] = ()
    related: Sequence[Related] = ()


def longest(sizes: Longs, limit: int) -> int:
    """The longest that lists may be if all together may not exceed a limit; at least 1."""
    low, high = 1, int(sizes.max(initial=1))
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(sizes, middle).sum() <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def plan_things(shelves: Iterable[Shelf]) -> dict[str, Any]:
    """Shelves of one plan as data: by kind names, facts and relations, all by number."""
    shelves = [replace(shelf, related=[one.cut() for one in shelf.related]) for shelf in shelves]
    numbers: dict[str, dict[str, int]] = {}
    for shelf in shelves:
        number_names(numbers, shelf.kind, shelf.names)
    # What only relations name is a thing as well.
    for shelf in shelves:
        for one in shelf.related:
            used = np.unique(one.items).tolist()
            number_names(numbers, one.kind, [one.names[i] for i in used])
    found: dict[str, Any] = {
        kind: {"names": list(known), "facts": [], "related": []} for kind, known in numbers.items()
    }
    for shelf in shelves:
        known = numbers[shelf.kind]
        at = [known[name] for name in shelf.names]
        for fact in shelf.facts:
            add_fact(found[shelf.kind]["facts"], fact, at, len(known))
        found[shelf.kind]["related"] += [
            related_data(one, at, len(known), numbers[one.kind]) for one in shelf.related
        ]
    return found


def number_names(numbers: dict[str, dict[str, int]], kind: str, names: Sequence[str]) -> None:
    known = numbers.setdefault(kind, {})
    for name in names:
        known.setdefault(name, len(known))


def add_fact(facts: list[list[Any]], fact: Fact, at: list[int], size: int) -> None:
    """What several shelves say in the same words is said once."""
    own = next((one for one in facts if one[0] == fact.words), None)
    if own is None:
        own = [fact.words, fact.unit, [None] * size]
        facts.append(own)
    for place, value in zip(at, fact.values, strict=True):
        own[2][place] = plain(value)


def related_data(one: Related, at: list[int], size: int, of: dict[str, int]) -> dict[str, Any]:
    """Lists in the order of numbers; totals only where something is left out."""
    place = np.array([of.get(name, NONE) for name in one.names], np.int64)
    lists: list[tuple[int, int]] = [(0, 0)] * size
    for i, own in enumerate(at):
        lists[own] = (int(one.starts[i]), int(one.starts[i + 1]))
    rows = np.concatenate([np.arange(*ends) for ends in lists] or [np.arange(0)]).astype(np.int64)
    told: dict[str, Any] = {
        "title": one.title,
        "kind": one.kind,
        "sizes": [end - start for start, end in lists],
        "items": place[one.items[rows]].tolist(),
        "columns": [
            [c.words, c.unit, [plain(c.values[i]) for i in rows.tolist()]] for c in one.columns
        ],
    }
    if one.totals is not None:
        totals = [0] * size
        for total, own in zip(one.totals, at, strict=True):
            totals[own] = int(total)
        told["totals"] = totals
    return told | {k: v for k, v in (("back", one.back), ("note", one.note)) if v}


def plain(value: Any) -> Any:
    """A number with few digits, whole if it is; everything else as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value) or isinstance(value, int):
        return value
    if value != value or abs(value) == float("inf"):
        return None
    return int(value) if value.is_integer() else float(f"{value:.{DIGITS}g}")


def packed(plans: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """All plans with their things as one compressed text; the same things give the same text."""
    told = [{"name": name, "things": things} for name, things in plans]
    content = json.dumps(told, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(content.encode("utf-8"), 9)).decode("ascii")
