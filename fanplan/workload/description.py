"""What ``workload.toml`` says: attributes, topics and their content spaces, grid and limits."""

from __future__ import annotations

import math
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.workload.description_schema import (
    FILE,
    AttributeKind,
    CategoryKeys,
    CoverMode,
    GridKind,
    NumberKeys,
    RateSource,
    TopicKeys,
    TopKeys,
    WorkloadLimits,
    read_keys,
    suggestion,
    toml_string,
    where,
)
from fanplan.workload.space import PLAIN, Attribute, CategoryAttribute, NumberAttribute, Space
from fanplan.workload.tables import PUBLICATIONS
from fanplan.workload.times import Clock, problems_with_format, zone_of
from fanplan.workload.topics import (
    WILDCARDS,
    TopicSyntax,
    is_pattern,
    problem_with_pattern,
    to_regex,
)

MOST_BYTES = 4 << 20
"""Of a description."""

MOST_PARTS = 100
LARGE = 10**300
KEY_PARTS = re.compile(r"""[\w-]+|"[^"\n]*"|'[^'\n]*'""")
BLANKS = re.compile(r"[ \t]+")

CELLS = 16
"""Cells of a number attribute in a grid, where nobody says how many."""


@dataclass(frozen=True)
class TopicEntry:
    """A topic, or a pattern of topics, and the position of its space in the description."""

    pattern: str
    space: int


@dataclass(frozen=True)
class Description:
    """A checked workload description.

    ``spaces[0]`` is the plain space; equal spaces are shared. ``rates`` and ``seconds`` are None
    where the tables decide. ``attributes`` may hold some that no topic uses. A ``grid`` that is
    *exact* has no cells: flows are what the same subscribers want.
    """

    name: str
    topic_syntax: TopicSyntax = "exact"
    rates: RateSource | None = None
    seconds: float | None = None
    grid: GridKind = "exact"
    cover: CoverMode = "overlap"
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    topics: tuple[TopicEntry, ...] = ()
    spaces: tuple[Space, ...] = (PLAIN,)
    limits: WorkloadLimits = WorkloadLimits()
    clock: Clock = Clock()

    @property
    def dimensions(self) -> int:
        """The largest number of attributes of any space."""
        return max(space.dimensions for space in self.spaces)

    def space_of(self, topic: str) -> int | None:
        """Position of a valid topic's space; None if it is not declared.

        Where nothing is declared, every topic is plain.
        """
        exact, patterns = self._declared
        if not self.topics or topic in exact:
            return exact.get(topic, 0)
        return next((space for fits, space in patterns if fits(topic)), None)

    @cached_property
    def _declared(self) -> tuple[dict[str, int], list[tuple[Callable[[str], object], int]]]:
        """Exact entries, which go before patterns, and patterns in the order of the description."""
        syntax = self.topic_syntax
        patterns = [e for e in self.topics if is_pattern(e.pattern, syntax)]
        exact = {e.pattern: e.space for e in self.topics if not is_pattern(e.pattern, syntax)}
        return exact, [(re.compile(to_regex(e.pattern, syntax)).search, e.space) for e in patterns]


def load_description(folder: Path) -> Description:
    """The description in a workload folder; if it has none, the default named after the folder."""
    name = folder.resolve().name or "workload"
    try:
        text = _text_of(folder / FILE)
    except FileNotFoundError:
        return Description(name)
    except (OSError, UnicodeDecodeError) as error:
        what = f"it cannot be read ({error})"
        raise InputError(Problem(str(folder / FILE), what, "Give a UTF-8 text file.")) from None
    return parse_description(text, name)


def _text_of(path: Path) -> str:
    """The text of a file, unless waiting for it would never end or it is far too large."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it is not a file")
    if found.st_size > MOST_BYTES:
        raise OSError(f"it has more than {MOST_BYTES >> 20} MB")
    return path.read_text(encoding="utf-8")


def parse_description(text: str, name: str) -> Description:
    """Read the text of a ``workload.toml``; ``name`` is for a file that gives none.

    Raises InputError with every problem of the file.
    """
    return _Reader(_toml(text)).description(name)


def with_overrides(
    description: Description,
    *,
    grid: GridKind | None = None,
    cover: CoverMode | None = None,
    cells: int | None = None,
    rates: RateSource | None = None,
) -> Description:
    """The description with options of the command line in place of what the file says.

    ``cells`` is for every number attribute of every topic; who gives them asks for a grid. Raises
    InputError for a word that is none of an option's choices, or if there are too many cells.
    """
    _require_choices(
        {"grid": (grid, GridKind), "cover": (cover, CoverMode), "rates": (rates, RateSource)}
    )
    changed = replace(
        description,
        grid=grid or asked_grid(description.grid, cells is not None or cover == "full"),
        cover=cover or description.cover,
        rates=rates or description.rates,
    )
    if cells is not None:
        if cells < 1:
            raise InputError(
                Problem("cells", f"{cells} is below 1", "Give a number of at least 1.")
            )
        if changed.grid == "exact":
            what = "exact flows have no cells"
            raise InputError(Problem("cells", what, "Leave them out, or use another grid."))
        changed = _with_cells(changed, cells)
    problems = [
        problem
        for entry in changed.topics
        for problem in _cells_problems(
            entry.pattern, changed.spaces[entry.space], changed.grid, changed.limits
        )
    ]
    if problems:
        raise InputError(problems)
    return changed


def asked_grid(kind: GridKind | None, implied: bool) -> GridKind:
    """Flows are exact unless a grid is asked for, by its name, its cells or how these count."""
    if kind in (None, "exact"):
        return "uniform" if implied else "exact"
    return kind


def _require_choices(given: Mapping[str, tuple[str | None, Any]]) -> None:
    problems = [
        Problem(name, f"{word!r} is not known", f"Use one of: {', '.join(get_args(choices))}")
        for name, (word, choices) in given.items()
        if word is not None and word not in get_args(choices)
    ]
    if problems:
        raise InputError(problems)


def _with_cells(description: Description, cells: int) -> Description:
    old = [description.spaces[entry.space] for entry in description.topics]
    new = [_space(space.attributes, {}, cells) for space in old]
    spaces, topics = _with_shared_spaces(new, [entry.pattern for entry in description.topics])
    return replace(description, topics=topics, spaces=spaces)


def to_toml(description: Description) -> str:
    """The canonical text of a description: reading it gives the same description."""
    lines = [f"name = {toml_string(description.name)}"]
    for key in ("topic_syntax", "rates", "grid", "cover"):
        value = getattr(description, key)
        lines += [f"{key} = {toml_string(value)}"] if value else []
    lines += [f"seconds = {description.seconds!r}"] if description.seconds else []
    for key, value in asdict(description.clock).items():
        lines += [f"time_{key} = {toml_string(value)}"] if value else []
    lines += ["", "[limits]"]
    lines += [f"{key} = {value}" for key, value in description.limits.model_dump().items()]
    lines += ["", "[attributes]"]
    lines += [_attribute_line(attribute) for attribute in description.attributes.values()]
    for entry in description.topics:
        lines += ["", *_topic_lines(entry.pattern, description.spaces[entry.space])]
    return "\n".join(lines) + "\n"


def _attribute_line(attribute: Attribute) -> str:
    if isinstance(attribute, CategoryAttribute):
        values = ", ".join(map(toml_string, attribute.values))
        content = f'type = "category", values = [{values}]'
    else:
        content = f'type = "number", min = {attribute.min!r}, max = {attribute.max!r}'
        content += f", unit = {toml_string(attribute.unit)}" if attribute.unit else ""
    return f"{toml_string(attribute.name)} = {{ {content} }}"


def _topic_lines(pattern: str, space: Space) -> Iterator[str]:
    yield f"[topics.{toml_string(pattern)}]"
    if not space.attributes:
        return
    yield f"attributes = [{', '.join(map(toml_string, space.axes))}]"
    cells = [
        f"{toml_string(attribute.name)} = {count}"
        for attribute, count in zip(space.attributes, space.cells, strict=True)
        if isinstance(attribute, NumberAttribute)
    ]
    if cells:
        yield f"grid = {{ {', '.join(cells)} }}"


def _space(attributes: tuple[Attribute, ...], grid: Mapping[str, int], default: int) -> Space:
    """A space with its cells per axis: as given, by default, or one per value of a category."""
    cells = [
        len(attribute.values)
        if isinstance(attribute, CategoryAttribute)
        else grid.get(attribute.name, default)
        for attribute in attributes
    ]
    return Space(attributes, tuple(cells))


def _with_shared_spaces(
    spaces: list[Space], patterns: list[str]
) -> tuple[tuple[Space, ...], tuple[TopicEntry, ...]]:
    """All different spaces, the plain one first, and the entries that refer to them."""
    numbers = {space: number for number, space in enumerate(dict.fromkeys([PLAIN, *spaces]))}
    entries = [TopicEntry(p, numbers[space]) for p, space in zip(patterns, spaces, strict=True)]
    return tuple(numbers), tuple(entries)


def _cells_problems(
    pattern: str, space: Space, grid: GridKind, limits: WorkloadLimits
) -> Iterator[Problem]:
    cells = math.prod(space.cells)
    if grid in ("uniform", "quantile") and cells > limits.max_cells:
        yield Problem(
            where("topics", pattern),
            f"its grid has {' × '.join(map(str, space.cells))} cells, more than "
            f"limits.max_cells = {limits.max_cells}",
            "Give it fewer cells, or raise the limit.",
        )


def _toml(text: str) -> dict[str, Any]:
    try:
        # The time and memory that a key takes grow with the square of its parts.
        if "k." * MOST_PARTS in KEY_PARTS.sub("k", BLANKS.sub("", text)):
            raise ValueError(f"a key has more than {MOST_PARTS} parts")
        found = tomllib.loads(text)
        if _beyond(found):
            raise ValueError("a whole number has more than 300 digits")
        return found
    except (ValueError, RecursionError) as error:  # A number may be too long for Python.
        last = f"line {text.count(chr(10)) + 1}"
        what = f"it is not valid TOML: {error}".replace("end of document", last)
        raise InputError(Problem(FILE, what, "Correct the text at that place.")) from None


def _beyond(value: Any) -> bool:
    """Whether a whole number is beyond all that can be counted with."""
    if isinstance(value, dict):
        return any(map(_beyond, value.values()))
    if isinstance(value, list):
        return any(map(_beyond, value))
    return isinstance(value, int) and abs(value) >= LARGE


class _Reader:
    """Reads a file piece by piece, so that one wrong piece does not hide another."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.problems: list[Problem] = []
        self.top = read_keys(TopKeys, raw, (), self.problems) or TopKeys()
        self.top_is_right = not self.problems
        limits = read_keys(WorkloadLimits, self._table("limits"), ("limits",), self.problems)
        self.limits = limits or WorkloadLimits()

    def description(self, name: str) -> Description:
        attributes = dict(self._attributes())
        patterns = list(self._table("topics"))
        spaces = [self._topic(pattern, attributes) for pattern in patterns]
        clock = self._clock()
        if self.problems:
            raise InputError(self.problems)
        shared, topics = _with_shared_spaces(spaces, patterns)
        return Description(
            name=self.top.name or name,
            topic_syntax=self.top.topic_syntax,
            rates=self.top.rates,
            seconds=self.top.seconds,
            grid=self.grid,
            cover=self.top.cover,
            attributes=attributes,
            topics=topics,
            spaces=shared,
            limits=self.limits,
            clock=clock,
        )

    def _clock(self) -> Clock:
        """How times are written."""
        clock = Clock(self.top.time_format, self.top.time_zone, self.top.time_unit)
        for what, remedy in problems_with_format(clock.format) if clock.format else ():
            self._add(("time_format",), what, f"{remedy}.")
        if clock.zone and zone_of(clock.zone) is None:
            remedy = "Write a name such as Europe/Berlin, or an offset such as +02:00."
            self._add(("time_zone",), f"the zone {toml_string(clock.zone)} is not known", remedy)
        return clock

    @property
    def grid(self) -> GridKind:
        """The grid that is named; else the one that cells stand for."""
        topics = self._table("topics").values()
        cells = self.top.cells or any(isinstance(t, dict) and t.get("grid") for t in topics)
        return self.top.grid or asked_grid(None, bool(cells) or self.top.cover == "full")

    def _table(self, key: str) -> dict[str, Any]:
        """A table of the file; its problem, if it is something else, is known already."""
        table = self.raw.get(key, {})
        return table if isinstance(table, dict) else {}

    def _add(self, path: tuple[str, ...], what: str, remedy: str) -> None:
        self.problems.append(Problem(where(*path), what, remedy))

    def _attributes(self) -> Iterator[tuple[str, Attribute]]:
        """The attributes that are right."""
        seen = {column.name: "a column of publications" for column in PUBLICATIONS.columns}
        for name, raw in self._table("attributes").items():
            path = ("attributes", name)
            if not name:
                self._add(path, "its name is empty", "Give it a name.")
            elif name.lower() in seen:
                self._add(path, f"its name is that of {seen[name.lower()]}", "Rename it.")
            seen[name.lower()] = f"the attribute {name}, apart from capitals"
            if attribute := self._attribute(name, raw):
                yield name, attribute

    def _attribute(self, name: str, raw: Any) -> Attribute | None:
        path = ("attributes", name)
        kind = read_keys(AttributeKind, raw, path, self.problems)
        if kind is None:
            return None
        if kind.type == "number":
            number = read_keys(NumberKeys, raw, path, self.problems)
            return self._number(name, number) if number else None
        category = read_keys(CategoryKeys, raw, path, self.problems)
        return self._category(name, category) if category else None

    def _number(self, name: str, keys: NumberKeys) -> NumberAttribute | None:
        if keys.min < keys.max and math.isfinite(keys.max - keys.min):
            # + 0.0: a domain never starts or ends at -0.0
            return NumberAttribute(name, keys.min + 0.0, keys.max + 0.0, keys.unit)
        wrong = "not below" if keys.min >= keys.max else "too far from"
        what = f"min = {keys.min!r} is {wrong} max = {keys.max!r}"
        self._add(("attributes", name), what, "Correct the two ends of the domain.")
        return None

    def _category(self, name: str, keys: CategoryKeys) -> CategoryAttribute:
        for value in _twice(keys.values):
            path = ("attributes", name, "values")
            self._add(path, f"the value {toml_string(value)} is there twice", "Remove one.")
        return CategoryAttribute(name, tuple(keys.values))

    def _topic(self, pattern: str, attributes: dict[str, Attribute]) -> Space:
        """The space of an entry; PLAIN where the entry is wrong."""
        path = ("topics", pattern)
        self._check_pattern(pattern)
        keys = read_keys(TopicKeys, self._table("topics")[pattern], path, self.problems)
        if keys is None:
            return PLAIN
        self._check_topic(path, keys, attributes)
        if not attributes.keys() >= set(keys.attributes):
            return PLAIN
        own = tuple(attributes[name] for name in dict.fromkeys(keys.attributes))
        space = _space(own, keys.grid, self.top.cells or CELLS)
        if self.top_is_right:
            self.problems += _cells_problems(pattern, space, self.grid, self.limits)
        return space

    def _check_pattern(self, pattern: str) -> None:
        own = self.top.topic_syntax
        if "topic_syntax" in self.raw and "topic_syntax" not in self.top.model_fields_set:
            return  # it is wrong, and known to be
        if problem := problem_with_pattern(pattern, own):
            self._add(("topics", pattern), f"bad topic for {own}: {problem}", "Rename it.")
        for syntax in WILDCARDS:
            if own == "exact" and is_pattern(pattern, syntax):
                what = "a pattern is not possible with exact topics"
                self._add(("topics", pattern), what, f'Set topic_syntax = "{syntax}".')

    def _check_topic(
        self, path: tuple[str, ...], keys: TopicKeys, attributes: dict[str, Attribute]
    ) -> None:
        declared = self._table("attributes")
        for name in _twice(keys.attributes):
            self._add((*path, "attributes"), f"{name} is there twice", "Remove one.")
        for name in keys.attributes:
            if name not in declared:
                what = f"{name} is not declared under [attributes]"
                self._add((*path, "attributes"), what, suggestion(name, declared))
        for name in keys.grid:
            if name not in keys.attributes:
                what = f"the topic has no attribute {name}"
                self._add((*path, "grid", name), what, suggestion(name, keys.attributes))
            elif isinstance(attributes.get(name), CategoryAttribute):
                what = "a category has one cell per value"
                self._add((*path, "grid", name), what, "Remove it.")


def _twice(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
