"""The stages that overlays are planned and simulated from."""

from __future__ import annotations

from dataclasses import replace

from fanplan.core.tables import Column, Table
from fanplan.data.tables import MESSAGES

TIMES = Column("times", "numbers", "when each was sent, ascending", unit="s")
_ENDS = (
    Column("source", "integer", "where it enters: number of a broker, or of a publisher"),
    Column("destinations", "integers", "brokers, or subscribers, that want it, ascending"),
)
ROUTES = Table(
    "routes",
    "what enters at a broker and must arrive at the same brokers",
    (*_ENDS, MESSAGES, Column("deliveries", "number", "copies for subscribers", unit="messages")),
)
CLIENT_ROUTES = replace(
    ROUTES,
    name="client_routes",
    meaning="what a publisher sends to the same subscribers, to allocate",
)
SENDINGS = Table("sendings", "when those of `routes` were sent, to simulate", (*_ENDS, TIMES))
CLIENT_SENDINGS = replace(
    SENDINGS, name="client_sendings", meaning="when those of `client_routes` were sent"
)

_PAIR = (
    Column("i", "integer", "number of a broker; of clients a subscriber, of interest a publisher"),
    Column("j", "integer", "number of another one; of clients a subscriber"),
)
_OVERLAP = Column("overlap", "number", "how much subscriptions of i and j have in common")
_COVER = Column("cover", "number", "how far subscriptions of i cover those of j; 0 if not needed")
_INTEREST = Column("interest", "number", "how much of what i advertises j wants")
SIMILARITY = Table(
    "similarity", "how alike pairs of brokers are, if at all", (*_PAIR, _OVERLAP, _COVER, _INTEREST)
)
METRICS = SIMILARITY.names[2:]
CLIENT_OVERLAP = Table(
    "client_overlap", "how alike pairs of subscribers are, to allocate", (*_PAIR, _OVERLAP)
)
CLIENT_INTEREST = Table(
    "client_interest", "what subscribers want of publishers, to allocate", (*_PAIR, _INTEREST)
)

STAGES = (
    SIMILARITY, ROUTES, SENDINGS, CLIENT_OVERLAP, CLIENT_INTEREST, CLIENT_ROUTES, CLIENT_SENDINGS,
)  # fmt: skip
