"""Brokers and links as a drawing: sizes and widths by figures, which show on hovering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fanplan.core.arrays import Floats
from fanplan.page.layout import radial
from fanplan.page.svg import drawing, shown, tag, text

WIDTH, MARGIN = 720.0, 36.0
MOST_NAMES = 60
"""Brokers whose names are written, and which the tab key visits; with more only hovering does."""


@dataclass(frozen=True)
class Node:
    """A broker: how large it is drawn (relative), and what is told of it."""

    name: str
    size: float
    tip: str
    class_: str = ""


@dataclass(frozen=True)
class Edge:
    """A link from one broker to another, by position; bent aside if it has a way back as well."""

    start: int
    end: int
    width: float
    tip: str
    class_: str = ""
    bent: bool = False


def network(label: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> Markup:
    """Rings around the middle; areas of brokers and widths of links grow with their figures."""
    ends = np.array([(edge.start, edge.end) for edge in edges], np.int64).reshape(-1, 2)
    places, height = fitted(radial(ends, len(nodes)))
    # The more brokers, the finer everything is drawn.
    fineness = np.sqrt(max(len(nodes), 1))
    widest, largest = min(7.0, 90.0 / fineness), min(15.0, 190.0 / fineness)
    widths = scaled([edge.width for edge in edges], widest / 9, widest)
    radii = scaled([np.sqrt(node.size) for node in nodes], largest / 4, largest)
    links = [linked(edge, places, radii, w) for edge, w in zip(edges, widths, strict=True)]
    few = len(nodes) <= MOST_NAMES
    brokers = [placed(n, p, r, few) for n, p, r in zip(nodes, places, radii, strict=True)]
    names = named(nodes, places, radii) if few else []
    groups = (tag("g", *links), tag("g", *brokers), tag("g", *names, class_="names"))
    return drawing(WIDTH, height, label, *groups, class_="network")


def fitted(places: Floats) -> tuple[Floats, float]:
    """Positions stretched alike both ways until they fill the width, and the height this takes."""
    low = places.min(axis=0, initial=0.0)
    span = places.max(axis=0, initial=0.0) - low
    scale = (WIDTH - 2 * MARGIN) / max(float(span[0]), float(span[1]) / 1.1, 1e-9)
    spare = (WIDTH - 2 * MARGIN - scale * span[0]) / 2
    return (places - low) * scale + (MARGIN + spare, MARGIN), float(span[1]) * scale + 2 * MARGIN


def scaled(values: Sequence[float], low: float, high: float) -> Floats:
    """Values from 0 to their largest as sizes from ``low`` to ``high``."""
    given = np.array(values, np.float64)
    most = given.max(initial=0.0)
    return low + (high - low) * given / most if most > 0 else np.full(len(given), low)


def linked(edge: Edge, places: Floats, radii: Floats, width: float) -> Markup:
    """A straight link, or a bow with an arrow at the rim of the broker where it ends."""
    a, b = places[edge.start], places[edge.end]
    name = f"link {edge.class_}".strip()
    if not edge.bent:
        way, head = f"M{point(a)}L{point(b)}", Markup("")
    else:
        bend, rim = bow(a, b, float(radii[edge.end]))
        way, head = f"M{point(a)}Q{point(bend)} {point(rim)}", arrow(bend, rim, width, edge.class_)
    link = tag("path", d=way, class_=name, stroke_width=float(width))
    return tag("g", link, head, data_tip=edge.tip)


def bow(a: Floats, b: Floats, radius: float) -> tuple[Floats, Floats]:
    """Where a link bends, to the right of its direction so that the way back lies beside it, and
    where it ends, short of the broker."""
    along = b - a
    bend = (a + b) / 2 + np.array((-along[1], along[0])) * 0.14
    back = b - bend
    return bend, b - back * min((radius + 5) / max(float(np.hypot(*back)), 1e-9), 0.6)


def arrow(bend: Floats, rim: Floats, width: float, class_: str) -> Markup:
    """A triangle at the end of a bow."""
    along = (rim - bend) / max(float(np.hypot(*(rim - bend))), 1e-9)
    aside = np.array((-along[1], along[0])) * (2.5 + width / 2)
    corners = " ".join(
        point(p) for p in (rim + along * 4, rim - along * 4 + aside, rim - along * 4 - aside)
    )
    return tag("polygon", points=corners, class_=f"arrow {class_}")


def point(place: Floats) -> str:
    return f"{shown(float(place[0]))},{shown(float(place[1]))}"


def placed(node: Node, place: Floats, radius: float, few: bool) -> Markup:
    x, y = map(float, place)
    name = f"broker {node.class_}".strip()
    told = {"class_": name, "stroke_width": min(1.5, radius / 3), "data_tip": node.tip}
    return tag("circle", cx=x, cy=y, r=float(radius), tabindex=0 if few else None, **told)


def named(nodes: Sequence[Node], places: Floats, radii: Floats) -> list[Markup]:
    return [
        text(float(x), float(y - radius - 4), node.name, "name", "middle")
        for node, (x, y), radius in zip(nodes, places, radii, strict=True)
    ]
