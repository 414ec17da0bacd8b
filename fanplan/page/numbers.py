"""Numbers as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

MINUS = "−"


def number(value: Any) -> str:
    """Whole numbers with separators, others with few digits; nothing is a dash, words are words."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return few_digits(value).replace("-", MINUS)


def few_digits(value: float) -> str:
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def short(value: float) -> str:
    """For axes: thousands as k, millions as M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def percent(value: float) -> str:
    """A share of 1 in percent, with a digit where it is small, and two where it is very small."""
    shown = 100 * value
    digits = 0 if abs(shown) >= 10 or shown.is_integer() else 1 if abs(shown) >= 0.1 else 2
    return f"{shown:.{digits}f} %".replace("-", MINUS)


TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
"""Times in which messages are counted, in seconds."""
LEAST_COUNT = 0.5
"""As many messages, or more, are counted in a time that fits them."""


def rate_time(rates: Iterable[float]) -> str:
    """The shortest time in which the middle one of some rates, messages a second, is no crumb."""
    known = sorted(abs(rate) for rate in rates if rate)
    typical = known[len(known) // 2] if known else 1.0
    return next((t for t, long in TIMES.items() if typical * long >= LEAST_COUNT), "day")


def rate(value: float | None) -> str:
    """Messages a second as messages in a time that fits."""
    if value is None:
        return number(value)
    time = rate_time([value])
    return f"{number(value * TIMES[time])} messages/{time}"


def ticks(most: float, wished: int = 5) -> list[float]:
    """Round values from 0 to ``most`` or just above, about as many as wished."""
    if most <= 0:
        return [0.0, 1.0]
    step = nice(most / wished)
    return [i * step for i in range(math.ceil(most / step - 1e-9) + 1)]


def nice(step: float) -> float:
    """The next of 1, 2, 5 and 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= step * (1 - 1e-9))
