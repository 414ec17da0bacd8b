"""The interest of an export read back: topics, filters and attributes as a workload has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from fanplan.live.entry import EntryTables, load_entry
from fanplan.live.names import topic_of
from fanplan.live.nats.plan import load_plan
from fanplan.workload.space import Attribute, CategoryAttribute


@dataclass(frozen=True)
class OwnExport:
    """An export, and its tables of interest."""

    folder: Path
    epoch: str
    tables: EntryTables

    def topic(self, subject: str) -> str:
        return topic_of(subject, self.tables.syntax)

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        spaces = self.tables.topics.spaces
        return {own.name: own for space in spaces for own in space.attributes}

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """Columns of publications beside the common ones."""
        return {
            name: pa.string() if isinstance(own, CategoryAttribute) else pa.float64()
            for name, own in self.attributes.items()
        }

    def values(self, topic: str, x: tuple[float, ...]) -> tuple[Any, ...]:
        """The values of a publication, None for attributes that its topic does not have."""
        told = self.tables.topics.attributes(topic, x)
        return tuple(told.get(name) for name in self.attributes)

    # ---- filters

    def selector(self, who: str, topic: str) -> str | None:
        """The filter of a subscriber for a topic; None for everything."""
        tables, space = self.tables, self.tables.topics.space(self.tables.topics.number[topic])
        own = (tables.box_subscriber == self._people[who]) & (
            tables.box_topic == tables.topics.number[topic]
        )
        boxes = []
        for lo, hi in zip(tables.lo[own], tables.hi[own], strict=True):
            ends = zip(space.attributes, lo.tolist(), hi.tolist(), strict=False)
            parts = [part for attribute, *end in ends if (part := condition(attribute, *end))]
            if not parts:
                return None
            boxes.append(" AND ".join(parts))
        return boxes[0] if len(boxes) == 1 else " OR ".join(f"({box})" for box in boxes)

    @cached_property
    def _people(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.tables.subscribers)}

    # ---- workload.toml

    def toml(self) -> str:
        """The description of the workload."""
        topics = self.tables.topics
        lines = [f'name = "{self.epoch}"', f'topic_syntax = "{self.tables.syntax}"']
        if self.attributes:
            lines.append("[attributes]")
            lines += [f"{json.dumps(n)} = {described(own)}" for n, own in self.attributes.items()]
            for number, name in enumerate(topics.names):
                own = json.dumps([each.name for each in topics.space(number).attributes])
                lines += [f"[topics.{json.dumps(name)}]", f"attributes = {own}"]
        return "\n".join(lines) + "\n"


def condition(attribute: Attribute, lo: float, hi: float) -> str:
    """What a box asks of an attribute; nothing if it asks for all of its domain."""
    if isinstance(attribute, CategoryAttribute):
        own = attribute.values[round(lo) : round(hi)]
        words = ", ".join("'" + value.replace("'", "''") + "'" for value in own)
        return "" if len(own) == len(attribute.values) else f"{attribute.name} IN ({words})"
    parts = [f"{attribute.name} >= {lo!r}"] if lo > attribute.min else []
    if hi <= attribute.max:
        parts.append(f"{attribute.name} < {hi!r}")
    return " AND ".join(parts)


def described(attribute: Attribute) -> str:
    if isinstance(attribute, CategoryAttribute):
        return f'{{ type = "category", values = {json.dumps(attribute.values)} }}'
    return f'{{ type = "number", min = {float(attribute.min)!r}, max = {float(attribute.max)!r} }}'


def load_exported(folder: Path) -> OwnExport:
    return OwnExport(folder, load_plan(folder).epoch, load_entry(folder))
