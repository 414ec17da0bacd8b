"""Topic names and patterns: exact, NATS (``*``, ``>``) or MQTT (``+``, ``#``)."""

from __future__ import annotations

import re
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
