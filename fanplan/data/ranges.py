"""Ranges of numbers as people write them: few digits, rounded outwards so that nothing is left out.

Works on arrays: a number becomes a count of units of a power of ten, and each different one is
written once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Longs

DIGITS = 4
"""Of the larger end of a range. A number that stands alone is never rounded to tens."""
WIDTH_DIGITS = 2
"""At least, of the width of a range: where its ends differ late, they have more digits."""
MOST_DIGITS = 15
"""Of any number: a float64 has no more."""
FINEST = -300
"""The smallest power of ten that numbers are rounded to."""
POWERS = np.array([float(f"1e{exponent}") for exponent in range(309)])
PLAIN_DIGITS = 15
"""Before the point, and after it, that are written out; beyond, a number has an exponent."""


@dataclass(frozen=True, eq=False)
class Decimals:
    """Numbers as ``count`` units of ten to the power of ``exponent``."""

    count: Longs
    exponent: Longs

    @property
    def values(self) -> Floats:
        """The float64 next to each; where 10^exponent is no float64, perhaps its neighbour."""
        return scaled(self.count, self.exponent)

    def plus(self, more: Bools) -> Decimals:
        return Decimals(self.count + more, self.exponent)

    def minus(self, less: Bools) -> Decimals:
        return Decimals(self.count - less, self.exponent)

    def texts(self) -> pa.Array:
        keys, at = np.unique(self.count * 1024 + (self.exponent + 512), return_inverse=True)
        pairs = zip((keys >> 10).tolist(), ((keys & 1023) - 512).tolist(), strict=True)
        return pa.array([decimal_text(*pair) for pair in pairs], pa.string()).take(pa.array(at))


def decimal_text(count: int, exponent: int) -> str:
    """Written out, without zeros at the end, if that is not too long."""
    size = abs(count) * 10 ** max(exponent, 0)
    if size >= 10**PLAIN_DIGITS or (size and exponent < -PLAIN_DIGITS):
        return repr(float(f"{count}e{exponent}"))
    whole, part = divmod(abs(count), 10 ** max(-exponent, 0))
    digits = f".{part:0{-exponent}d}".rstrip("0") if part else ""
    return f"{'-' if count < 0 else ''}{whole * 10 ** max(exponent, 0):,}{digits}"


def closed_ranges(lo: Floats, hi: Floats) -> pa.Array:
    """``10 to 20`` for all from 10 to 20; ``10`` for that alone."""
    exponent = range_exponents(lo, hi)
    first, last = rounded_down(lo, exponent), rounded_up(hi, exponent)
    nothing = np.zeros(len(lo), bool)
    return written(("", ""), nothing, first, (" to ", ""), nothing, last)


def cell_ranges(lo: Floats, hi: Floats, top: float) -> pa.Array:
    """``from 10 to below 20`` for ``10 <= x < 20``, where no number is at ``top`` or above.

    An end that is the next float64 above a round number stands for ``x > 10`` or ``x <= 20``.
    """
    exponent = range_exponents(lo, hi)
    before, last = np.nextafter(lo, -np.inf), np.nextafter(hi, -np.inf)
    alone = last <= lo
    above = is_round(before, exponent) & ~is_round(lo, exponent) & ~alone
    below = ~(is_round(last, exponent) | alone | (hi >= top))
    first = rounded_down(np.where(above, before, lo), exponent)
    return written(
        ("from ", "above "),
        above,
        first,
        (" to ", " to below "),
        below,
        rounded_up(np.where(below, hi, last), exponent),
    )


def written(
    leads: tuple[str, str],
    lead: Bools,
    first: Decimals,
    middles: tuple[str, str],
    middle: Bools,
    last: Decimals,
) -> pa.Array:
    """Both ends with their words; one of them where they are the same number."""
    one = pa.array((first.count == last.count) & ~lead & ~middle)
    begin = first.texts()
    both = pc.binary_join_element_wise(
        words(leads, lead), begin, words(middles, middle), last.texts(), ""
    )
    return pc.if_else(one, begin, both)


def words(two: tuple[str, str], second: Bools) -> pa.Array:
    return pa.array(two, pa.string()).take(pa.array(second.astype(np.int8)))


def range_exponents(lo: Floats, hi: Floats) -> Longs:
    """The powers of ten that the ends of ranges are rounded to."""
    largest = magnitude(np.maximum(np.abs(lo), np.abs(hi)))
    with np.errstate(over="ignore"):
        width = magnitude(hi - lo)
    alone = hi <= np.nextafter(lo, np.inf)
    unit = np.minimum(largest - DIGITS, np.where(alone, 0, width - WIDTH_DIGITS))
    return np.maximum(unit, np.maximum(largest - MOST_DIGITS, FINEST)).astype(np.int64)


def magnitude(values: Floats) -> Floats:
    """Digits before the point; below 0 if zeros follow it."""
    return np.where(values > 0, np.floor(np.log10(np.clip(values, 1e-320, 1e308))) + 1, 0.0)


def nearest(values: Floats, exponent: Longs) -> Decimals:
    return Decimals(np.rint(scaled(values, -exponent)).astype(np.int64), exponent)


def scaled(values: Floats | Longs, exponent: Longs) -> Floats:
    """Values times ten to the power of the exponents."""
    power = POWERS[np.abs(exponent)]
    with np.errstate(over="ignore"):
        result: Floats = np.where(exponent < 0, values / power, values * power)
    return result


def rounded_down(values: Floats, exponent: Longs) -> Decimals:
    found = nearest(values, exponent)
    return found.minus(found.values > values)


def rounded_up(values: Floats, exponent: Longs) -> Decimals:
    found = nearest(values, exponent)
    return found.plus(found.values < values)


def is_round(values: Floats, exponent: Longs) -> Bools:
    """Whether rounding leaves a number as it is."""
    result: Bools = nearest(values, exponent).values == values
    return result
