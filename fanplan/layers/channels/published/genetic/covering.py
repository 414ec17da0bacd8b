"""Covering relations (Guimarães & Rodrigues 2003, section 3.2), on boxes.

A condition on an attribute is a half-open interval; a subscription is a list of boxes. Only
comparisons are made, so the answers are exact.
"""

from __future__ import annotations

from typing import Any

from fanplan.core.arrays import Floats
from fanplan.layers.channels.published.genetic.volume import solid, subtract


def condition_covers(lo: Any, hi: Any, value: Any) -> Any:
    """φ C_f^n α: whether an attribute's value meets a condition on it; also for many at once."""
    return (lo <= value) & (value < hi)


def covers_notification(lo: Floats, hi: Floats, point: Floats) -> bool:
    """s C_s^n n: whether a notification meets all conditions of one of the boxes."""
    return bool(condition_covers(lo, hi, point).all(axis=1).any())


def covers(lo: Floats, hi: Floats, other_lo: Floats, other_hi: Floats) -> bool:
    """s C_s^s s′: whether s covers every notification that s′ covers."""
    if len(lo) == len(other_lo) == 1:
        return bool(((lo <= other_lo) & (other_hi <= hi)).all() or (other_lo >= other_hi).any())
    rest = solid(other_lo, other_hi)
    for hole_lo, hole_hi in zip(lo, hi, strict=True):
        rest = subtract(*rest, hole_lo, hole_hi)
    return len(rest[0]) == 0
