"""The stages that markings are planned from."""

from __future__ import annotations

from fanplan.core.tables import Column, Table

_BROKER = Column("broker", "string", "a broker that has any")
_REGIONS = Column("regions", "long", "how many regions")
_COUNTS = (
    Column("published", "long", "regions advertised there that no other one there covers"),
    Column("subscribed", "long", "regions subscribed to there that no other one there covers"),
    Column("raw_published", "long", "all regions advertised there"),
    Column("raw_subscribed", "long", "all regions subscribed to there"),
)
DESCRIPTORS = Table("descriptors", "regions at each broker", (_BROKER, *_COUNTS))
COUNTS = DESCRIPTORS.names[1:]
CLIENT_DESCRIPTORS = Table(
    "client_descriptors",
    "regions of each client, for designs that allocate",
    (
        Column("client", "string", "a publisher or a subscriber"),
        Column("role", "string", "publisher or subscriber"),
        _REGIONS,
    ),
)
COVERS = Table(
    "descriptor_covers",
    "regions of a broker that the same other brokers cover, for `--merge`",
    (
        Column("publishes", "boolean", "whether they are advertised; else subscribed to"),
        Column("broker", "string", "their broker; null for a topic that has too much to compare"),
        Column("coverers", "strings", "the brokers that cover them"),
        _REGIONS,
    ),
)

STAGES = (DESCRIPTORS, CLIENT_DESCRIPTORS, COVERS)
