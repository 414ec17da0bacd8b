"""Topic names and patterns: exact, NATS (``*``, ``>``) or MQTT (``+``, ``#``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TopicSyntax = Literal["exact", "nats", "mqtt"]


@dataclass(frozen=True)
class Wildcards:
    """The special characters of a syntax: between tokens, for one token, for the rest."""

    separator: str
    one: str
    rest: str


WILDCARDS: dict[TopicSyntax, Wildcards] = {
    "nats": Wildcards(".", "*", ">"),
    "mqtt": Wildcards("/", "+", "#"),
}
MQTT_MAX_BYTES = 65_535


def separator(syntax: TopicSyntax) -> str | None:
    """What stands between the tokens of a topic; None if topics are not divided."""
    return WILDCARDS[syntax].separator if syntax in WILDCARDS else None


def tokens(name: str, syntax: TopicSyntax) -> list[str]:
    """The parts of a topic or pattern; the whole name if topics are not divided."""
    between = separator(syntax)
    return [name] if between is None else name.split(between)


def is_pattern(name: str, syntax: TopicSyntax) -> bool:
    """Whether a name has a token that is a wildcard."""
    if syntax == "exact":
        return False
    special = WILDCARDS[syntax]
    return any(token in (special.one, special.rest) for token in tokens(name, syntax))


def problem_with_pattern(pattern: str, syntax: TopicSyntax) -> str | None:
    """Why nobody can subscribe to this name or pattern, or None."""
    problem = problem_with_name(pattern, syntax)
    if problem or syntax == "exact":
        return problem
    special = WILDCARDS[syntax]
    parts = tokens(pattern, syntax)
    if special.rest in parts[:-1]:
        return f"the wildcard {special.rest} may only be the last token"
    if syntax == "mqtt" and any(len(part) > 1 and set(part) & set("+#") for part in parts):
        return "a wildcard (+ or #) must be a whole level"
    return None


def problem_with_topic(name: str, syntax: TopicSyntax) -> str | None:
    """Why nothing can be published to this name, or None."""
    problem = problem_with_name(name, syntax)
    if problem or syntax == "exact":
        return problem
    if is_pattern(name, syntax) or (syntax == "mqtt" and set(name) & set("+#")):
        special = WILDCARDS[syntax]
        return f"wildcards ({special.one} and {special.rest}) are only for subscriptions"
    return None


def problem_with_name(name: str, syntax: TopicSyntax) -> str | None:
    """What is wrong with a name, whether or not it is a pattern."""
    if not name:
        return "it is empty"
    if syntax == "nats" and re.search(r"[ \t\r\n\f\v]", name):
        return "it has white space"
    if syntax == "nats" and "" in name.split("."):
        return "it has an empty token: a '.' at an end, or two together"
    if syntax == "mqtt" and "\0" in name:
        return "it has a null character"
    if syntax == "mqtt" and len(name.encode("utf-8", "surrogatepass")) > MQTT_MAX_BYTES:
        return f"it is longer than {MQTT_MAX_BYTES} bytes"
    return None


def to_regex(pattern: str, syntax: TopicSyntax) -> str:
    """An anchored regular expression for valid topics, the same in Java's and in Python's dialect.

    The two disagree about ``$``, ``\\Z``, ``\\z`` and ``.`` when a name has line ends, so none of
    them is used.
    """
    end = r"(?![\s\S])"
    if syntax == "exact":
        return f"^{re.escape(pattern)}{end}"
    # In MQTT a wildcard at the first level does not cover topics that begin with `$`.
    hides_system = syntax == "mqtt" and pattern[:1] in ("+", "#")
    start = r"^(?!\$)" if hides_system else "^"
    return start + _tokens_regex(tokens(pattern, syntax), syntax) + end


def _tokens_regex(parts: list[str], syntax: TopicSyntax) -> str:
    special = WILDCARDS[syntax]
    between = re.escape(special.separator)
    one = f"[^{special.separator}]" + ("*" if syntax == "mqtt" else "+")
    body = between.join(one if part == special.one else re.escape(part) for part in parts[:-1])
    last = parts[-1]
    if last == special.rest and syntax == "mqtt":
        return rf"{body}(?:{between}[\s\S]*)?" if len(parts) > 1 else r"[\s\S]*"
    tail = {special.one: one, special.rest: r"[\s\S]+"}.get(last) or re.escape(last)
    return body + (between if len(parts) > 1 else "") + tail


# ---- many patterns


def overlap(one: str, other: str, syntax: TopicSyntax) -> bool:
    """Whether two valid patterns can mean the same topic; in MQTT, one without a leading `$`."""
    if syntax == "exact":
        return one == other
    special, a, b = WILDCARDS[syntax], tokens(one, syntax), tokens(other, syntax)
    for pair in zip(a, b, strict=False):
        if special.rest in pair:
            return True
        if pair[0] != pair[1] and special.one not in pair:
            return False
    beyond = a[len(b) :] or b[len(a) :]
    return not beyond or (syntax == "mqtt" and beyond == [special.rest])


class Patterns:
    """Valid patterns that come and go, and those of them that mean a topic.

    It counts them by the tokens they begin with. A walk along a topic follows its own tokens and
    wildcards as far as there are patterns that begin so: what others there are costs nothing.
    """

    def __init__(self, syntax: TopicSyntax) -> None:
        self.syntax = syntax
        self._there: Counter[tuple[str, ...]] = Counter()
        self._begun: Counter[tuple[str, ...]] = Counter()

    def add(self, pattern: str) -> None:
        """Add a pattern, once more if it is there."""
        parts = tuple(tokens(pattern, self.syntax))
        self._there[parts] += 1
        self._begun.update(_starts(parts))

    def remove(self, pattern: str) -> None:
        """Remove a pattern that was added, once."""
        parts = tuple(tokens(pattern, self.syntax))
        for counted, start in ((self._there, parts), *((self._begun, s) for s in _starts(parts))):
            counted[start] -= 1
            if not counted[start]:
                del counted[start]

    def meaning(self, topic: str) -> Iterator[str]:
        """The patterns that mean a valid topic, each once."""
        between = separator(self.syntax) or ""
        return (between.join(parts) for parts in self._walk(topic) if parts in self._there)

    def _walk(self, topic: str) -> Iterator[tuple[str, ...]]:
        """What patterns that mean the topic may be."""
        if self.syntax == "exact":
            yield (topic,)
            return
        one, rest = WILDCARDS[self.syntax].one, WILDCARDS[self.syntax].rest
        starts: list[tuple[str, ...]] = [()]
        for part in tokens(topic, self.syntax):
            # In MQTT a wildcard at the first level does not cover topics that begin with `$`.
            hidden = starts == [()] and self.syntax == "mqtt" and topic.startswith("$")
            if not hidden:
                yield from ((*start, rest) for start in starts)
            nexts = (part,) if hidden else (part, one)
            starts = [(*s, n) for s in starts for n in nexts if (*s, n) in self._begun]
        yield from starts
        if self.syntax == "mqtt":
            yield from ((*start, rest) for start in starts)


def _starts(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [parts[:size] for size in range(1, len(parts) + 1)]
