"""The stages that designs are planned and simulated from."""

from __future__ import annotations

from fanplan.core.tables import Column, Table
from fanplan.data.tables import AUDIENCE_CLASS, MESSAGES
from fanplan.layers.overlay.stages.tables import TIMES

_WHAT = (Column("publisher", "integer", "number of the publisher, by name"), AUDIENCE_CLASS)
SENDERS = Table("senders", "what publishers send of each class", (*_WHAT, MESSAGES))
SENDER_TIMES = Table("sender_times", "when they sent it, to simulate", (*_WHAT, TIMES))

STAGES = (SENDERS, SENDER_TIMES)
