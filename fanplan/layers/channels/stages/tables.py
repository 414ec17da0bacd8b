"""What passes between the steps of planning channels on Spark."""

from __future__ import annotations

from fanplan.core.tables import Column, Table
from fanplan.data.tables import AUDIENCE_CLASS, BYTES, MESSAGES

DECIDED = Table(
    "decided",
    "what was decided for each class",
    (
        AUDIENCE_CLASS,
        MESSAGES,
        BYTES,
        Column("wanted", "long", "size of the audience"),
        Column("received", "long", "copies of a message by channels"),
        Column("channels", "integers", "channels that carry it"),
        Column("unicast", "integers", "numbers of the subscribers that get it point to point"),
    ),
)
