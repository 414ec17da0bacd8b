"""Lines and statements as the figures of Bickson et al. (2010) need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fanplan.papers.experiment import Line, Point, Statement

EXCESS = "% over perfect multicast"
SHARE = "unicast, % of the deliveries"
LABELS = {
    "tock": "K-means",
    "lloyd": "Matlab K-means",
    "bmd": "BMD",
    "kmodes": "kmodes (ours)",
    "greedy-flow-iterative": "greedy flow, repeated",
}


def label(method: str) -> str:
    """A method's name as the paper writes it."""
    return LABELS.get(method, method.replace("-", " "))


def point(setting: str, method: str, x: float) -> Point:
    """A method's number at a place on the axis."""
    return Point(setting, f"{method} @ {x:g}", x)


def best(setting: str, method: str) -> Point:
    """The least excess of a method's curve."""
    return Point(setting, f"{method} best")


def curve(setting: str, method: str, xs: Iterable[float], name: str = "") -> Line:
    points = tuple(point(setting, method, x) for x in xs)
    return Line(name or label(method), points, method == "kmodes")


def bars(name: str, setting: str, keys: dict[str, str]) -> Line:
    """One bar of each group: the key of each by the group's name."""
    return Line(name, tuple(Point(setting, key, bar) for bar, key in keys.items()))


def below(text: str, lower: Sequence[Point], higher: Sequence[Point]) -> Statement:
    """Point by point, the first line is below the second."""
    return Statement(text, tuple(zip(lower, higher, strict=True)))


def below_all(
    text: str, lower: Iterable[Point], higher: Iterable[Point], factor: float = 1.0
) -> Statement:
    """Every one of the first points is below every one of the second."""
    others = tuple(higher)
    return Statement(text, tuple((one, other) for one in lower for other in others), factor)
