"""Brokers and links as a drawing: sizes and widths by figures, which show on hovering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.network.trees import Near, breadth_first, near_of
from fanplan.page.svg import drawing, svg_point, tag, text

WIDTH, MARGIN = 720.0, 36.0
MOST_NAMES = 400
"""Brokers whose names are written where there is room, the largest first."""
MOST_STOPS = 60
"""Brokers that the tab key visits; with more, tables are quicker."""
LETTER, LINE = 6.9, 13.0
"""Width and height of a letter in a name, at most."""


@dataclass(frozen=True)
class DrawnBroker:
    """A broker: how large it is drawn (relative), and what is told of it."""

    name: str
    size: float
    tip: str
    class_: str = ""


@dataclass(frozen=True)
class DrawnLink:
    """A link from one broker to another, by position; bent aside if it has a way back as well."""

    start: int
    end: int
    width: float
    tip: str
    class_: str = ""
    bent: bool = False


def link_name(a: str, b: str) -> str:
    """Both directions of a link share its name."""
    return " – ".join(sorted((a, b)))


def network_drawing(
    label: str,
    nodes: Sequence[DrawnBroker],
    edges: Sequence[DrawnLink],
    ground: Ground | None = None,
) -> Markup:
    """Brokers and links: areas of brokers and widths of links grow with their figures.

    They stand on rings around the middle, or where ``ground`` has them.
    """
    ends = np.array([(edge.start, edge.end) for edge in edges], np.int64).reshape(-1, 2)
    if ground is None:
        places, height = fitted(radial(ends, len(nodes)))
        beneath = Markup("")
    else:
        places, height, beneath = ground
    # The more brokers, the finer everything is drawn.
    fineness = np.sqrt(max(len(nodes), 1))
    widest, largest = min(7.0, 90.0 / fineness), min(15.0, 190.0 / fineness)
    widths = scaled_sizes([edge.width for edge in edges], widest / 9, widest)
    radii = scaled_sizes([np.sqrt(node.size) for node in nodes], largest / 4, largest)
    links = [
        link_path(edge, nodes, places, radii, w) for edge, w in zip(edges, widths, strict=True)
    ]
    few = len(nodes) <= MOST_STOPS
    brokers = [broker_circle(n, p, r, few) for n, p, r in zip(nodes, places, radii, strict=True)]
    names = name_labels(nodes, places, radii, height)
    groups = (beneath, tag("g", *links), tag("g", *brokers), tag("g", *names, class_="names"))
    return drawing(WIDTH, height, label, *groups, class_="network", role="group")


class Ground(NamedTuple):
    """Where brokers are drawn, how high the drawing is, and what lies beneath them."""

    places: Floats
    height: float
    beneath: Markup


def fitted(places: Floats) -> tuple[Floats, float]:
    """Positions stretched alike both ways until they fill the width, and the height this takes."""
    low = places.min(axis=0, initial=0.0)
    span = places.max(axis=0, initial=0.0) - low
    scale = (WIDTH - 2 * MARGIN) / max(float(span[0]), float(span[1]) / 1.1, 1e-9)
    spare = (WIDTH - 2 * MARGIN - scale * span[0]) / 2
    return (places - low) * scale + (MARGIN + spare, MARGIN), float(span[1]) * scale + 2 * MARGIN


def scaled_sizes(values: Sequence[float], low: float, high: float) -> Floats:
    """Values from 0 to their largest as sizes from ``low`` to ``high``."""
    given = np.array(values, np.float64)
    most = given.max(initial=0.0)
    return low + (high - low) * given / most if most > 0 else np.full(len(given), low)


def link_path(
    edge: DrawnLink, nodes: Sequence[DrawnBroker], places: Floats, radii: Floats, width: float
) -> Markup:
    """A straight link, or a bow with an arrow at the rim of the broker where it ends."""
    a, b = places[edge.start], places[edge.end]
    name = f"link {edge.class_}".strip()
    if not edge.bent:
        way, head = f"M{svg_point(a)}L{svg_point(b)}", Markup("")
    else:
        bend, rim = bow(a, b, float(radii[edge.end]))
        way, head = (
            f"M{svg_point(a)}Q{svg_point(bend)} {svg_point(rim)}",
            arrow(bend, rim, width, edge.class_),
        )
    link = tag("path", d=way, class_=name, stroke_width=float(width))
    named = link_name(nodes[edge.start].name, nodes[edge.end].name)
    return tag("g", link, head, data_tip=edge.tip, data_kind="link", data_name=named)


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
        svg_point(p) for p in (rim + along * 4, rim - along * 4 + aside, rim - along * 4 - aside)
    )
    return tag("polygon", points=corners, class_=f"arrow {class_}")


def broker_circle(node: DrawnBroker, place: Floats, radius: float, few: bool) -> Markup:
    x, y = map(float, place)
    name = f"broker {node.class_}".strip()
    told = {"class_": name, "stroke_width": min(1.5, radius / 3), "data_tip": node.tip}
    told |= {"data_kind": "broker", "data_name": node.name}
    return tag("circle", cx=x, cy=y, r=float(radius), tabindex=0 if few else None, **told)


def name_labels(
    nodes: Sequence[DrawnBroker], places: Floats, radii: Floats, height: float
) -> list[Markup]:
    """Names beside their brokers, the largest first, and none over another.

    A name without room is written as well, and seen once somebody looks closer.
    """
    order = sorted(range(len(nodes)), key=lambda i: (-radii[i], nodes[i].name))[:MOST_NAMES]
    taken, found = np.empty((0, 4)), []
    for i in order:
        x, y, box = name_place(nodes[i].name, places[i], float(radii[i]), taken, height)
        taken = taken if box is None else np.vstack((taken, box))
        kind = "name late" if box is None else "name"
        found.append(text(x, y, nodes[i].name, kind, "middle"))
    return found


def name_place(
    name: str, place: Floats, radius: float, taken: Floats, height: float
) -> tuple[float, float, Floats | None]:
    """The first free place for a name: above its broker, below, to the right or to the left."""
    half, beside = LETTER * len(name) / 2, LETTER * len(name) / 2 + radius + 4
    around = ((0, -radius - 4), (0, radius + LINE), (beside, 4), (-beside, 4))
    for dx, dy in around:
        x, y = float(place[0] + dx), float(place[1] + dy)
        box = np.array((x - half, y - LINE + 3, x + half, y + 3))
        inside = box[0] >= 0 and box[2] <= WIDTH and box[1] >= 0 and box[3] <= height
        apart = (taken[:, 0] >= box[2]) | (taken[:, 2] <= box[0])
        apart |= (taken[:, 1] >= box[3]) | (taken[:, 3] <= box[1])
        if inside and apart.all():
            return x, y, box
    return float(place[0]), float(place[1] - radius - 4), None


# ---- where brokers are drawn: rings around the middle, subtrees side by side


def radial(links: Longs, size: int) -> Floats:
    """Positions within the unit circle, a row per broker.

    ``links`` has a row of two brokers per link. A tree is drawn without crossings; of other
    networks a tree of shortest ways decides. Parts that nothing joins hang at the middle, too.
    Time linear in links, after sorting them.
    """
    parent, depth, order = hung_parts(links, size)
    leaves = np.zeros(size, np.int64)
    has_child = np.zeros(size, bool)
    has_child[parent[parent >= 0]] = True
    leaves[~has_child] = 1
    for broker in order[::-1]:
        if parent[broker] >= 0:
            leaves[parent[broker]] += leaves[broker]
    angle = angles(parent, order, leaves)
    radius = depth / max(int(depth.max(initial=0)), 1)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)


def angles(parent: Longs, order: Longs, leaves: Longs) -> Floats:
    """The middle of the sector of each broker: as wide as it has leaves."""
    roots = order[parent[order] < 0]
    turn = 2 * np.pi / max(int(leaves[roots].sum()), 1)
    start, next_free = np.zeros(len(parent)), np.zeros(len(parent))
    free = -np.pi / 2
    for broker in order:
        above = parent[broker]
        start[broker] = free if above < 0 else next_free[above]
        width = turn * leaves[broker]
        if above < 0:
            free += width
        else:
            next_free[above] += width
        next_free[broker] = start[broker]
    return start + turn * leaves / 2


def hung_parts(links: Longs, size: int) -> tuple[Longs, Longs, Longs]:
    """Parent (−1 for none), depth and an order with parents first, of every part of the network.

    One part hangs at its middle, which is drawn at the centre; several hang side by side.
    """
    near = near_of(links, size)
    parent, depth = np.full((2, size), NONE)
    order: list[Longs | Ints] = [np.empty(0, np.int64)]
    parts = 0
    for broker in range(size):
        if depth[broker] == NONE:
            part = breadth_first(near, middle_of(near, broker))
            parent[part.order], depth[part.order] = part.parent[part.order], part.depth[part.order]
            order.append(part.order)
            parts += 1
    return parent, depth + (parts > 1), np.concatenate(order)


def middle_of(near: Near, broker: int) -> int:
    """The middle of a longest way: the farthest from anywhere, and the farthest from there."""
    farthest = breadth_first(near, broker).order[-1]
    tree = breadth_first(near, farthest)
    middle = tree.order[-1]
    for _ in range(int(tree.depth[middle]) // 2):
        middle = tree.parent[middle]
    return int(middle)
