"""What names, patterns, spaces and boxes mean, in plain Python: what stages are held to."""

from __future__ import annotations

from fanplan.core.tables import Column, Table
from fanplan.workload.description import Description
from fanplan.workload.space import Box
from fanplan.workload.topics import WILDCARDS, TopicSyntax, is_pattern, tokens


def pattern_matches(pattern: str, topic: str, syntax: TopicSyntax) -> bool:
    """Whether a valid pattern covers a valid topic."""
    if syntax == "exact":
        return pattern == topic
    special = WILDCARDS[syntax]
    wanted, given = tokens(pattern, syntax), tokens(topic, syntax)
    # In MQTT a wildcard at the first level does not cover topics that begin with `$`.
    if syntax == "mqtt" and pattern[:1] in ("+", "#") and topic.startswith("$"):
        return False
    if wanted[-1] == special.rest:
        wanted = wanted[:-1]
        least = len(wanted) + (0 if syntax == "mqtt" else 1)
        if len(given) < least:
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        want in (special.one, token) for want, token in zip(wanted, given, strict=True)
    )


def space_of(description: Description, topic: str) -> int | None:
    """Position of a topic's space, or None if no entry covers the topic.

    An exact entry comes first, then the first pattern in the order of the file. Without any
    entries every topic is plain.
    """
    if not description.topics:
        return 0
    syntax = description.topic_syntax
    named = [entry for entry in description.topics if entry.pattern == topic]
    covering = [
        entry
        for entry in description.topics
        if is_pattern(entry.pattern, syntax) and pattern_matches(entry.pattern, topic, syntax)
    ]
    return next((entry.space for entry in (*named, *covering)), None)


def holds(box: Box, point: tuple[float, ...]) -> bool:
    """Whether a point lies in a box."""
    return all(lo <= x < hi for lo, x, hi in zip(box.lo, point, box.hi, strict=True))


def common(one: Box, other: Box) -> Box | None:
    """The box that two boxes have in common, if they have any."""
    lo, hi = tuple(map(max, one.lo, other.lo)), tuple(map(min, one.hi, other.hi))
    return Box(lo, hi) if all(a < b for a, b in zip(lo, hi, strict=True)) else None


def as_markdown(table: Table) -> str:
    """The part of a page of the documentation that tells about one table."""
    lines = [f"### {table.name}: {table.meaning}", ""]
    lines += ["| column | type | default | meaning |", "| --- | --- | --- | --- |"]
    lines += [as_row(column) for column in table.columns]
    if table.key:
        lines += ["", f"Unique: {', '.join(table.key)}."]
    return "\n".join(lines) + "\n"


def as_row(column: Column) -> str:
    name = f"**{column.name}**" if column.required else column.name
    bound = ", above 0" if column.positive else ""
    bound += f", at least {column.at_least:g}" if column.at_least is not None else ""
    bound += f", at most {column.at_most:g}" if column.at_most is not None else ""
    bound += f", not between 0 and {column.nearest_0:g}" if column.nearest_0 else ""
    unit = f" ({column.unit})" if column.unit else ""
    return f"| {name} | {column.type}{bound} | {column.default} | {column.meaning}{unit} |"
