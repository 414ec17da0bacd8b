"""The tables of a workload, as people give them."""

from __future__ import annotations

from fanplan.core.tables import Column, Table

# Amounts are added up in decimals of 38 digits, 15 of them after the point: with these bounds, and
# times below `MOST_SECONDS`, any sum of fewer than 10^11 rows is right to the last of them.
MOST = 1e12
MOST_OF_NETWORK = 1e15
LEAST_RATE = 1e-15

SUBSCRIPTIONS = Table(
    "subscriptions",
    "who wants what",
    (
        Column("subscriber", "string", "who wants it", required=True),
        Column("topic", "string", "exact topic, or a pattern of the workload's syntax", True),
        Column("filter", "string", "selector over the topic's attributes", default="everything"),
        Column("broker", "string", "broker the subscriber is attached to", default="none"),
    ),
    key=("subscriber", "topic", "filter"),
)

ADVERTISEMENTS = Table(
    "advertisements",
    "who sends what",
    (
        Column("publisher", "string", "who sends it", required=True),
        Column("topic", "string", "exact topic", required=True),
        Column("filter", "string", "selector: the part it sends", default="everything"),
        Column(
            "rate",
            "number",
            "how much it sends",
            unit="messages/s",
            default="1",
            at_least=0.0,
            at_most=MOST,
            nearest_0=LEAST_RATE,
        ),
        Column("broker", "string", "broker the publisher is attached to", default="none"),
    ),
    key=("publisher", "topic", "filter"),
)

PUBLICATIONS = Table(
    "publications",
    "what was sent",
    (
        Column("time", "time", "when: seconds, ISO 8601, or as `time_format` says"),
        Column("publisher", "string", "who sent it", default="unknown"),
        Column("topic", "string", "exact topic", required=True),
        Column("attributes", "map", "attribute values, unless they are columns of their own"),
        Column(
            "bytes",
            "integer",
            "size of the message",
            unit="bytes",
            default="0",
            at_least=0.0,
            at_most=MOST,
        ),
    ),
)

BROKERS = Table(
    "brokers",
    "the brokers there are or may be",
    (
        Column("broker", "string", "its name", required=True),
        Column(
            "capacity",
            "number",
            "load it can bear",
            unit="messages/s",
            positive=True,
            at_most=MOST_OF_NETWORK,
        ),
        Column(
            "cost",
            "number",
            "price of running it",
            at_least=0.0,
            at_most=MOST_OF_NETWORK,
            default="1",
        ),
        Column(
            "site", "string", "where it stands; multicast reaches all of a site", default="none"
        ),
        Column("multicast_domain", "string", "who shares multicast with it", default="its site"),
        Column(
            "lat", "number", "where it is, for maps", unit="degrees", at_least=-90.0, at_most=90.0
        ),
        Column(
            "lon", "number", "where it is, for maps", unit="degrees", at_least=-180.0, at_most=180.0
        ),
    ),
    key=("broker",),
)

LINKS = Table(
    "links",
    "the network between brokers",
    (
        Column("a", "string", "one end", required=True),
        Column("b", "string", "the other end", required=True),
        Column("latency_ms", "number", "delay", unit="ms", at_least=0.0, at_most=MOST_OF_NETWORK),
        Column(
            "bandwidth",
            "number",
            "what it can carry",
            unit="messages/s",
            positive=True,
            at_most=MOST_OF_NETWORK,
        ),
        Column(
            "cost",
            "number",
            "price of a message on it",
            at_least=0.0,
            at_most=MOST_OF_NETWORK,
            default="1",
        ),
    ),
)

TREES = Table(
    "trees",
    "explicit multicast trees for the marking layer",
    (
        Column("root", "string", "root of the tree", required=True),
        Column("parent", "string", "upstream node", required=True),
        Column("child", "string", "downstream node", required=True),
    ),
    key=("root", "child"),
)

INPUT_TABLES = (SUBSCRIPTIONS, ADVERTISEMENTS, PUBLICATIONS, BROKERS, LINKS, TREES)
