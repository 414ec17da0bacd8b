"""The law that publications follow: which topic, which values, what size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.errors import InputError, Problem
from fanplan.workload.space import Attribute, CategoryAttribute


@dataclass(frozen=True, eq=False)
class Axis:
    """How the values of one attribute are drawn: by weight per category value, else uniformly."""

    attribute: Attribute
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        name = self.attribute.name
        if not isinstance(self.attribute, CategoryAttribute):
            raise InputError(Problem(name, "a number has no weights", "Leave them out"))
        if self.weights.size != len(self.attribute.values) or not _shares(self.weights):
            what = "weights do not fit its values"
            raise InputError(Problem(name, what, "Give a weight of 0 or more for each value"))


@dataclass(frozen=True, eq=False)
class PublicationLaw:
    """How publications are drawn: an advertisement by rate, then each axis on its own.

    ``topics``, ``rates`` (messages/s) and ``publishers`` have an entry per advertisement; sizes are
    geometric with mean ``message_bytes``. All topics share the axes. With ``lo`` and ``hi``,
    advertisements × axes, numbers lie in the advertisement's box, else in the whole domain.
    """

    topics: pa.Array
    rates: np.ndarray
    publishers: pa.Array
    message_bytes: int
    axes: tuple[Axis, ...] = ()
    lo: np.ndarray | None = None
    hi: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not len(self.topics) == len(self.publishers) == self.rates.size > 0:
            what = f"{len(self.topics)} topics, {len(self.publishers)} publishers"
            remedy = "Give a publisher and a rate for each topic"
            raise InputError(Problem("law", f"{what}, {self.rates.size} rates", remedy))
        if not _shares(self.rates):
            what = "a rate is negative or not finite, or all are 0"
            raise InputError(Problem("law", what, "Give finite rates of which one is positive"))
        shape = (self.rates.size, len(self.axes))
        if any(ends is not None and ends.shape != shape for ends in (self.lo, self.hi)):
            what = "boxes do not fit advertisements and axes"
            raise InputError(Problem("law", what, "Give an end for each of them"))

    @property
    def total_rate(self) -> float:
        """Messages/s over all topics: N publications last N / total_rate seconds."""
        return float(self.rates.sum())


def _shares(weights: np.ndarray) -> bool:
    """Whether numbers can be shares of a whole: finite, none negative, not all zero."""
    return bool((np.isfinite(weights) & (weights >= 0)).all() and weights.sum() > 0)
