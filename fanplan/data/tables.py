"""The tables of a dataset, one for each stage of ingest: what a stage's output is held to."""

from __future__ import annotations

from dataclasses import replace

from fanplan.core.tables import Column, Table
from fanplan.workload import tables as given

TOPIC = Column("topic", "string", "a topic")
TOPIC_ID = Column("topic_id", "integer", "its number: from 0, in the order of the names")
SPACE = Column("space", "integer", "position in the manifest's `spaces`; 0 is the plain one")
SUBSCRIBER = Column("subscriber", "string", "who wants it")
SUBSCRIBER_ID = Column("subscriber_id", "integer", "its number: from 0, in the order of the names")
SUBSCRIPTION = Column("subscription", "long", "subscriber_id · 2³² + rank among its own, from 0")
LO = Column("lo", "numbers", "low ends of a box, for each attribute of the topic")
HI = Column("hi", "numbers", "high ends, which are outside")
CELL = Column(
    "cell",
    "integers",
    "number of the cell on each axis; of an exact flow the four numbers of its audience's "
    "signature; empty for a plain topic, and for one on which nothing was sent",
)
MESSAGES = Column("messages", "number", "total of the window", unit="messages")
BYTES = Column("bytes", "number", "total of the window", unit="bytes")
WANTED = Column("wanted", "number", "copies that selectors ask for", unit="messages")
AUDIENCE = Column("subscribers", "integers", "numbers of those who want it, ascending")
AUDIENCE_CLASS = Column("audience_class", "integer", "number of the class; −1 if nobody wants it")
EXTENT = (
    replace(LO, meaning="low ends; of an exact flow the smallest values seen; none if no cell"),
    replace(HI, meaning="high ends, outside; of an exact flow the largest values, inside"),
)

TOPICS = Table("topics", "all that are declared, sent on or asked for", (TOPIC, TOPIC_ID, SPACE))
PATTERNS = Table(
    "patterns",
    "the topics that each pattern means",
    (Column("pattern", "string", "a topic or a pattern, as it was asked for"), TOPIC_ID, SPACE),
)
FILTERS = Table(
    "filters",
    "each filter compiled once for each space that it is used in",
    (
        Column("filter", "string", "selector; empty for everything"),
        SPACE,
        Column("applies", "boolean", "whether the space has all attributes that it names"),
        Column("boxes", "boxes", "disjoint boxes `lo`, `hi` that it stands for"),
        Column("error", "string", "why there are none"),
    ),
)
CHECKED_SUBSCRIPTIONS = replace(
    given.SUBSCRIPTIONS, name="checked_subscriptions", meaning="those that can be understood"
)
SUBSCRIBERS = Table("subscribers", "who wants something", (SUBSCRIBER, SUBSCRIBER_ID))
SUBSCRIPTIONS = Table(
    "subscriptions",
    "each with a number",
    (SUBSCRIPTION, SUBSCRIBER, SUBSCRIBER_ID, *given.SUBSCRIPTIONS.columns[1:]),
)
REGIONS = Table(
    "regions",
    "the boxes of each subscription on each topic",
    (TOPIC_ID, SUBSCRIPTION, SUBSCRIBER_ID, LO, HI),
)
COVER = replace(REGIONS, name="cover", meaning="regions in cell numbers; not for exact flows")
ADVERTISED = Table(
    "advertised",
    "boxes with rates; only if rates are not measured",
    (TOPIC_ID, *(given.ADVERTISEMENTS.column(name) for name in ("publisher", "rate")), LO, HI),
)
GRID = Table(
    "grid",
    "the cells of each topic",
    (
        TOPIC_ID,
        Column("axis", "integer", "number of the attribute, from 0"),
        Column("edges", "numbers", "cell i is from edge i to the next, without it"),
    ),
)
TRAFFIC = Table(
    "traffic", "what was sent in each cell; not for exact flows", (TOPIC_ID, CELL, MESSAGES, BYTES)
)
HITS = Table(
    "hits",
    "publications that each subscription asked for; only if rates are measured",
    (SUBSCRIPTION, Column("hits", "long", "how many", unit="messages")),
)
AUDIENCES = Table(
    "audiences", "who wants each flow", (TOPIC_ID, CELL, MESSAGES, BYTES, AUDIENCE, WANTED, *EXTENT)
)
CLASSES = Table(
    "classes",
    "flows that the same subscribers want are one class",
    (
        AUDIENCE_CLASS,
        AUDIENCE,
        MESSAGES,
        BYTES,
        Column("flows", "long", "how many flows it has"),
        WANTED,
    ),
)
FLOWS = Table(
    "flows",
    "every flow, with its class",
    (
        Column("flow", "string", "topic, topic#… if there are several, topic[i,j,…] for a cell"),
        TOPIC,
        TOPIC_ID,
        CELL,
        MESSAGES,
        BYTES,
        AUDIENCE_CLASS,
        WANTED,
        *EXTENT,
    ),
)
QUARANTINE = Table(
    "quarantine",
    "rows that could not be understood",
    (
        Column("table", "string", "an input table"),
        Column("source", "string", "the file"),
        Column("line", "long", "line or row in it, from 1; null for a whole file"),
        Column("raw", "string", "the row as it came"),
        Column("reason", "string", "what is wrong"),
        Column("kind", "string", "what rows are counted by: the reason without the wrong value"),
    ),
)


def coordinates(dimensions: int) -> list[str]:
    """Names of the coordinate columns: x0, x1, …"""
    return [f"x{axis}" for axis in range(dimensions)]


def publications(dimensions: int) -> Table:
    """Cleaned publications of a workload whose largest space has that many attributes."""
    at = "coordinates x0, x1, … in the order of the topic's attributes; NaN beyond these"
    columns = (
        Column("time", "number", "when it was sent", unit="s"),
        Column("zone", "string", "zone that the time was written in; null for a number"),
        *(given.PUBLICATIONS.column(name) for name in ("publisher", "topic")),
        Column("bytes", "long", "size of the message", unit="bytes"),
        *(Column(name, "number", at) for name in coordinates(dimensions)),
    )
    return Table("publications", "what was sent, as points of the topics' spaces", columns)


STAGES = (
    publications(1), given.ADVERTISEMENTS, given.BROKERS, given.LINKS, given.TREES, TOPICS,
    PATTERNS, FILTERS, CHECKED_SUBSCRIPTIONS, SUBSCRIBERS, SUBSCRIPTIONS, REGIONS, ADVERTISED,
    GRID, TRAFFIC, COVER, AUDIENCES, CLASSES, FLOWS, HITS, QUARANTINE,
)  # fmt: skip
"""All that `ingest` writes, in this order."""
