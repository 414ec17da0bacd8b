"""Elements of a drawing as safe markup; colours are classes of the page's style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from fanplan.core.arrays import Floats


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; ``class_`` and ``stroke_width`` mean class and stroke-width, None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(map(escape, children))
    return Markup(f"<{name}{told}>{inside}</{name}>")


def attribute(value: Any) -> Any:
    """Coordinates to a tenth: finer is not seen, and a page has many."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def svg_point(point: Sequence[float] | Floats) -> str:
    return f"{attribute(float(point[0]))},{attribute(float(point[1]))}"


def drawing(
    width: float, height: float, label: str, *children: Any, class_: str = "", role: str = "img"
) -> Markup:
    """A drawing that takes the width of its place; ``label`` is read to who cannot see it.

    The role "group" lets what is in it be read as well.
    """
    box = f"0 0 {attribute(float(width))} {attribute(float(height))}"
    name = f"drawing {class_}".strip()
    return tag("svg", *children, viewBox=box, role=role, aria_label=label, class_=name)


def text(x: float, y: float, words: str, class_: str = "", anchor: str | None = None) -> Markup:
    return tag("text", words, x=float(x), y=float(y), class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def polyline(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    """A line through points."""
    way = "M" + "L".join(map(svg_point, points))
    return tag("path", d=way, class_=class_)
