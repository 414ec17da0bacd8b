"""Lines and statements as the figures of Tajuddin (2011) need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from fanplan.papers.experiment import Line, Point, Side, Statement

LABELS = {
    "improved": "improved (ours)",
    "few links": "few links (ours)",
    "gli": "GLI",
    "gi": "GI",
    "gig": "GIg",
    "best": "best (ours)",
    "exact": "exact load (ours)",
    "bound": "lower bound (ours)",
}


def label(method: str) -> str:
    """A method's name as the thesis writes it."""
    return LABELS.get(method, method)


def curve(method: str, points: Iterable[Point], note: str = "") -> Line:
    """A method's line; ``note`` tells two lines of one method apart."""
    name = label(method)
    return Line(f"{name}, {note}" if note else name, tuple(points), name.endswith("(ours)"))


def below(text: str, lower: Sequence[Side], higher: Sequence[Side], factor: float = 1) -> Statement:
    """Point by point, the first are below the second."""
    return Statement(text, tuple(zip(lower, higher, strict=True)), factor)


def below_all(
    text: str, lower: Sequence[Side], others: Iterable[Sequence[Side]], factor: float = 1
) -> Statement:
    """Point by point, the first are below those of every other line."""
    pairs = tuple(pair for other in others for pair in zip(lower, other, strict=True))
    return Statement(text, pairs, factor)


def alike(text: str, lines: Sequence[Sequence[Side]], factor: float) -> Statement:
    """Point by point, no line is higher than another times the factor."""
    pairs = tuple(
        pair
        for one in lines
        for other in lines
        if one is not other
        for pair in zip(one, other, strict=True)
    )
    return Statement(text, pairs, factor)


def rising(text: str, lines: Iterable[Sequence[Side]]) -> Statement:
    """Along each line, every point is below the next."""
    pairs = tuple(pair for line in lines for pair in pairwise(line))
    return Statement(text, pairs)
