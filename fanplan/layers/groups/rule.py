"""The rule that groups are chosen by, as a user writes it."""

from __future__ import annotations

import math

from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.params import Budget, Threshold, Top

REMEDY = "Use such as top:10%, threshold:0 or budget:100"


def rule_of(text: str) -> Top | Threshold | Budget:
    """``top:10%`` (or ``top:0.1``), ``threshold:5`` or ``budget:100``."""
    name, _, amount = text.partition(":")
    value = number(amount.removesuffix("%") if name == "top" else amount)
    if name not in ("top", "threshold", "budget") or value is None:
        raise InputError(Problem("select", f"{text!r} is not understood", REMEDY))
    if name == "top":
        return Top(share(text, value / 100 if amount.endswith("%") else value))
    if name == "threshold":
        if value < 0:
            what = f"{text!r} takes groups that cost more than they save"
            raise InputError(Problem("select", what, "Give 0 or more"))
        return Threshold(value)
    if value < 1 or value % 1:
        what = f"{text!r} is no number of entries"
        raise InputError(Problem("select", what, "Give a whole number of 1 or more"))
    return Budget(int(value))


def number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def share(text: str, value: float) -> float:
    if not 0 < value <= 1:
        what = f"{text!r} is no share of the groups"
        raise InputError(Problem("select", what, "Give more than 0 % and at most 100 %"))
    return value
