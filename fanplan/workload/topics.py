"""Topic names and patterns: exact, NATS (``*``, ``>``) or MQTT (``+``, ``#``)."""

from __future__ import annotations

from typing import Literal

TopicSyntax = Literal["exact", "nats", "mqtt"]
