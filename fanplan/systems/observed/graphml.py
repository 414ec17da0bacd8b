"""A topology in GraphML as brokers and links; delays from coordinates where none are given."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from fanplan.core.errors import InputError, Problem
from fanplan.core.files import require_regular
from fanplan.systems.observed.tables import Writer, no_workload

MS_PER_KM = 0.0049
"""Light in glass."""
EARTH_KM = 6371.0
DELAYS = ("latency_ms", "latency", "delay")
"""Attributes of an edge, in milliseconds, that go before coordinates."""
CHUNK = 1 << 16


@dataclass
class Graph:
    """Nodes and edges as the file has them, with their attributes by name in small letters."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    doubled: int = 0


def observe_graphml(path: Path, out: Writer) -> tuple[str, ...]:
    """Write the tables; what the file does not tell."""
    graph = read_graph(path)
    if not graph.nodes:
        raise no_workload(str(path), "has no nodes", "Name a file with a graph in GraphML")
    names = node_labels(graph)
    columns, rows = ("a", "b", "latency_ms", "cost"), []
    skipped: Counter[str] = Counter()
    for tail, head, told in graph.edges:
        if tail == head or not {tail, head} <= {*names}:
            skipped["loops" if tail == head else "edges to unknown nodes"] += 1
            continue
        delay = delay_of(graph, tail, head, told)
        skipped["links without a delay"] += delay is None
        rows.append((names[tail], names[head], delay, as_finite(told.get("cost"), 0) or None))
    kept = [at for at in range(4) if at < 2 or any(row[at] is not None for row in rows)]
    brokers = [
        (names[node], as_finite(told.get("capacity"), 0) or None)
        for node, told in graph.nodes.items()
    ]
    out.describe(path.stem)
    if any(capacity is not None for _, capacity in brokers):
        out.table("brokers", ("broker", "capacity"), brokers)
    else:
        out.table("brokers", ("broker",), [row[:1] for row in brokers])
    out.table(
        "links", [columns[at] for at in kept], [tuple(row[at] for at in kept) for row in rows]
    )
    skipped["nodes with an id that was there already"] += graph.doubled
    return tuple(f"{count:,} {what}" for what, count in skipped.items() if count)


def node_labels(graph: Graph) -> dict[str, str]:
    """The label of each node, with its id if others have the same one or it has none."""
    labels = {node: told.get("label", "").strip() for node, told in graph.nodes.items()}
    times = Counter(labels.values())
    found = {
        node: label if label and times[label] == 1 else f"{label} {node}".strip()
        for node, label in labels.items()
    }
    if len({*found.values()}) < len(found):  # A label that looks like another with its id.
        return {node: node for node in labels}
    return found


def delay_of(graph: Graph, tail: str, head: str, told: dict[str, str]) -> float | None:
    """Milliseconds: as given, or those of light in glass along the great circle."""
    for name in DELAYS:
        if (given := as_finite(told.get(name), 0)) is not None:
            return given
    ends = [on_earth(graph.nodes[node]) for node in (tail, head)]
    if ends[0] is None or ends[1] is None:
        return None
    return round(distance_km(ends[0], ends[1]) * MS_PER_KM, 4)


def on_earth(told: dict[str, str]) -> tuple[float, float] | None:
    """Latitude and longitude in radians, if there are any."""
    latitude, longitude = (
        as_finite(told.get("latitude"), -90),
        as_finite(told.get("longitude"), -180),
    )
    if latitude is None or longitude is None or latitude > 90 or longitude > 180:
        return None
    return math.radians(latitude), math.radians(longitude)


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Along the great circle (haversine)."""
    (lat, long), (other, along) = a, b
    h = math.sin((other - lat) / 2) ** 2
    h += math.cos(lat) * math.cos(other) * math.sin((along - long) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(min(h, 1.0)))


def as_finite(text: str | None, least: float) -> float | None:
    """A finite number that is not too small; None if it is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= least else None


# ---- the file


def read_graph(path: Path) -> Graph:
    """Read a file some bytes at a time; one that declares entities is refused."""
    reader = GraphReader()
    try:
        require_regular(path, "Name a file in GraphML")
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                reader.parser.Parse(chunk, False)
            reader.parser.Parse(b"", True)
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise InputError(Problem(str(path), what, "Name a file in GraphML")) from error
    except expat.ExpatError as error:
        where = f"{path}, line {error.lineno}"
        what = f"is not XML ({expat.ErrorString(error.code)})"
        raise InputError(Problem(where, what, "Name a whole file in GraphML")) from error
    except Declared as error:
        what = "declares a document type, which may hide entities without end"
        raise InputError(Problem(str(path), what, "Remove the line <!DOCTYPE …>")) from error
    if not reader.graphml:
        raise no_workload(str(path), "is no GraphML", "Name a file whose first element is graphml")
    return reader.graph


class Declared(Exception):
    """A document type."""


class GraphReader:
    """Gathers a graph from the events of a parser."""

    def __init__(self) -> None:
        self.graph, self.graphml = Graph(), False
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._declared
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._names: dict[str, str] = {}
        self._inside: list[dict[str, str]] = []
        self._key, self._words = "", ""

    def _declared(self, *_: object) -> None:
        raise Declared

    def _start(self, tag: str, told: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        self.graphml = self.graphml or tag == "graphml"
        if tag == "key":
            self._names[told.get("id", "")] = told.get("attr.name", "").lower()
        elif tag == "node":
            self._inside.append({})
            if (name := told.get("id", "")) in self.graph.nodes:
                self.graph.doubled += 1
            else:
                self.graph.nodes[name] = self._inside[-1]
        elif tag == "edge":
            self._inside.append({})
            ends = told.get("source", ""), told.get("target", "")
            self.graph.edges.append((*ends, self._inside[-1]))
        elif tag == "data":
            self._key, self._words = told.get("key", ""), ""

    def _text(self, words: str) -> None:
        self._words += words

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        if tag in ("node", "edge"):
            self._inside.pop()
        elif tag == "data" and self._inside:
            self._inside[-1][self._names.get(self._key) or self._key.lower()] = self._words.strip()
