"""Who wants a message, while subscriptions come and go. It needs no plan, no dataset, no Spark.

Subscriptions mean what they mean to `ingest`, message by message. Boxes are held by the pattern of
a subscription, not by the topics that it means: a subscription costs the same however many topics
there are, a topic nothing. A topic is met by few patterns, and each is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fanplan.boxes.changing import ChangingBoxes
from fanplan.core.arrays import Floats
from fanplan.core.errors import InputError, Problem, readable, similar
from fanplan.live.points import Attributes, Topics
from fanplan.workload.description import Description, load_description, parse_description
from fanplan.workload.description_schema import toml_string
from fanplan.workload.selector import SelectorError, attributes_of, meaning_of
from fanplan.workload.space import Box
from fanplan.workload.topics import (
    Patterns,
    TopicSyntax,
    is_pattern,
    overlap,
    problem_with_pattern,
    problem_with_topic,
)

PathLike = str | Path
Place = tuple[str, int]
"""A pattern, and one of the spaces that topics have."""

MOST_KNOWN = 1 << 16
"""Topics whose attributes are remembered."""


class Subscription(NamedTuple):
    """Who wants what. No filter is the empty filter."""

    subscriber: str
    topic: str
    filter: str

    def __str__(self) -> str:
        told = f"{readable(self.subscriber)!r} to {readable(self.topic)!r}"
        return f"subscription of {told}" + (f", {readable(self.filter)}" if self.filter else "")


class Held(NamedTuple):
    """Where a subscription is: the numbers of its boxes, and places of which it wants all."""

    boxes: range
    whole: list[Place]


class Matcher:
    """Subscriptions that come and go: ``add``, ``remove``, and ``match`` for who wants a message.

    ``workload`` is a folder whose ``workload.toml`` says what topics and attributes there are.
    Without one, topics have no attributes, any name is a topic, and ``topic_syntax`` may be given.
    """

    def __init__(
        self, workload: PathLike | None = None, *, topic_syntax: TopicSyntax | None = None
    ) -> None:
        self._description = described(workload, topic_syntax)
        self._known = lru_cache(MOST_KNOWN)(self._topic)
        self._patterns = Patterns(self._description.topic_syntax)
        self._held: dict[Subscription, Held] = {}
        self._boxes = ChangingBoxes()
        self._owner: dict[int, str] = {}
        self._next = 0
        self._whole: defaultdict[Place, set[Subscription]] = defaultdict(set)

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._held)

    # ---- subscriptions

    def add(self, subscriber: str, topic: str, filter: str = "") -> None:
        """Add a subscription to a topic or pattern.

        As for `ingest`, one that is there already is refused, and so is a filter that applies to no
        topic that the pattern can mean. A pattern waits for topics that nothing was sent on yet.
        """
        asked = checked(subscriber, topic, filter)
        if asked in self._held:
            raise InputError(Problem(str(asked), "is already there", "Add it once"))
        first, whole = self._next, []
        for space, boxes in self._meant(asked).items():
            place = (topic, space)
            if boxes == (self._description.spaces[space].whole(),):
                self._whole[place].add(asked)
                whole.append(place)
            else:
                self._put(subscriber, place, boxes)
        self._patterns.add(topic)
        self._held[asked] = Held(range(first, self._next), whole)

    def _put(self, subscriber: str, place: Place, boxes: Sequence[Box]) -> None:
        numbers = range(self._next, self._next + len(boxes))
        lo, hi = (np.array(ends) for ends in zip(*((b.lo, b.hi) for b in boxes), strict=True))
        self._boxes.add(numbers, place, lo, hi)
        self._owner.update(dict.fromkeys(numbers, subscriber))
        self._next = numbers.stop

    def remove(self, subscriber: str, topic: str, filter: str = "") -> None:
        """Remove a subscription, given as it was added."""
        asked = checked(subscriber, topic, filter)
        held = self._held.pop(asked, None)
        if held is None:
            remedy = "Give subscriber, topic and filter as they were added"
            raise InputError(Problem(str(asked), "is not there", remedy))
        for box in held.boxes:
            self._boxes.remove(box)
            del self._owner[box]
        for place in held.whole:
            self._whole[place].remove(asked)
            if not self._whole[place]:
                del self._whole[place]
        self._patterns.remove(topic)

    def _meant(self, asked: Subscription) -> dict[int, tuple[Box, ...]]:
        """The boxes of a subscription in each space where it has some."""
        given, known = self._description, self._description.attributes.keys()
        try:
            attributes_of(asked.filter)
        except SelectorError as error:
            raise refused(asked, str(error)) from None
        found = {
            n: meaning_of(asked.filter, given.spaces[n], given.limits.max_boxes, known)
            for n in self._spaces(asked.topic)
        }
        fitting = [meaning for meaning in found.values() if meaning.applies]
        if wrong := [m.error for m in fitting or found.values() if m.error]:
            raise refused(asked, min(wrong))
        return {n: meaning.boxes for n, meaning in found.items() if meaning.boxes}

    def _spaces(self, pattern: str) -> list[int]:
        """The spaces that topics of a pattern can have."""
        given, syntax = self._description, self._description.topic_syntax
        if problem := problem_with_pattern(pattern, syntax):
            raise InputError(Problem(f"topic {readable(pattern)!r}", problem, "Rename it"))
        if not is_pattern(pattern, syntax):
            return [self._declared(pattern)]
        if not given.topics:
            return [0]
        return sorted({e.space for e in given.topics if overlap(pattern, e.pattern, syntax)})

    # ---- messages

    def match(self, topic: str, attributes: Attributes | None = None) -> list[str]:
        """Names of those who want a message, sorted. It must have all attributes of its topic."""
        topics = self._known(topic)
        x = np.array([topics.point(0, attributes or {})])
        return self._wanting(topic, topics.space_of[0], x)[0]

    def match_columns(
        self, topics: Sequence[str], attributes: Mapping[str, ArrayLike] | None = None
    ) -> list[list[str]]:
        """The same of many messages: a topic and a value of each attribute for each.

        The topics must have the same attributes. This takes less time than one after the other.
        """
        names = tuple(dict.fromkeys(topics))
        spaces = tuple(self._known(name).space_of[0] for name in names)
        together = Topics(names, self._description.spaces, spaces)
        width = max((together.spaces[n].dimensions for n in spaces), default=0)
        numbers, x = together.columns(topics, attributes or {}, width)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(names) + 1))
        result: list[list[str]] = [[] for _ in topics]
        for name, space, (a, b) in zip(names, spaces, pairwise(ends), strict=True):
            for row, wanting in zip(
                order[a:b], self._wanting(name, space, x[order[a:b]]), strict=True
            ):
                result[row] = wanting
        return result

    def _wanting(self, topic: str, space: int, x: Floats) -> list[list[str]]:
        """Those who want messages on a topic, each once."""
        found: list[set[str]] = [set() for _ in x]
        for pattern in self._patterns.meaning(topic):
            place = (pattern, space)
            offsets, boxes = self._boxes.find(place, x)
            owners = [self._owner[box] for box in boxes.tolist()]
            everything = {asked.subscriber for asked in self._whole.get(place, ())}
            for people, (a, b) in zip(found, pairwise(offsets.tolist()), strict=True):
                people.update(owners[a:b], everything)
        return [sorted(people) for people in found]

    def _topic(self, name: str) -> Topics:
        """A topic by itself."""
        if problem := problem_with_topic(name, self._description.topic_syntax):
            raise InputError(Problem(f"topic {readable(name)!r}", problem, "Rename it"))
        return Topics((name,), self._description.spaces, (self._declared(name),))

    def _declared(self, topic: str) -> int:
        """The space of a topic."""
        space = self._description.space_of(topic)
        if space is None:
            remedy = similar(topic, [e.pattern for e in self._description.topics])
            what = "is not declared in workload.toml"
            raise InputError(Problem(f"topic {readable(topic)!r}", what, remedy or "Declare it"))
        return space


def described(workload: PathLike | None, syntax: TopicSyntax | None) -> Description:
    """What a workload folder says, or that there are only topics."""
    if workload is None:
        return parse_description(f"topic_syntax = {toml_string(syntax or 'exact')}", "")
    if syntax is not None:
        what = "is that of the workload"
        raise InputError(Problem("topic_syntax", what, "Set it in workload.toml"))
    if not Path(workload).is_dir():
        raise InputError(Problem(str(workload), "is not a folder", "Name a workload folder"))
    return load_description(Path(workload))


def checked(subscriber: str, topic: str, filter: str | None) -> Subscription:
    """A subscription, if its parts are what they must be."""
    asked = Subscription(subscriber, topic, filter or "")
    for name, value in asked._asdict().items():
        if not isinstance(value, str):
            raise InputError(Problem(name, f"{value!r} is not a text", "Give a text"))
        if not value and name != "filter":
            raise InputError(Problem(name, "no value", "Give one"))
    return asked


def refused(asked: Subscription, why: str) -> InputError:
    return InputError(Problem(f"filter {readable(asked.filter, 60)!r}", why, "Correct the filter"))
