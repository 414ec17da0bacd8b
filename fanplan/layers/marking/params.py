"""What can be asked of a marking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fanplan.core.errors import InputError, Problem

Sending = Literal["one", "latency", "cost"]


SHARED = "shared:"


GIVEN = ("given", "given-shared")


OVERLAY = "overlay"
"""The tree of an overlay in the same plan."""


KINDS = f"{SHARED}CORE, per-source, given or given-shared"


@dataclass(frozen=True)
class MarkingWishes:
    """Which trees are marked, and what descriptors cost.

    ``trees`` is ``shared:CORE``, ``per-source``, ``given`` or ``given-shared``. ``raw`` counts
    regions that another one at their node covers. ``sending`` is the price of a descriptor on a
    link: one, or the link's latency or cost. ``storing`` is that of keeping it at a node.
    ``merge``: a descriptor that another one on the same link covers does not travel there.
    """

    trees: str
    raw: bool = False
    sending: Sending = "one"
    storing: float = 0.0
    merge: bool = False

    def __post_init__(self) -> None:
        if self.trees not in ("per-source", OVERLAY, *GIVEN) and not self.core:
            raise InputError(Problem("kind of trees", f"{self.trees!r} is unknown", f"Use {KINDS}"))
        if self.sending not in get_args(Sending):
            remedy = f"Use one of: {', '.join(get_args(Sending))}"
            raise InputError(Problem("sending", f"{self.sending!r} is unknown", remedy))
        if not 0 <= self.storing < np.inf:
            what = f"{self.storing} is no price"
            raise InputError(Problem("storing", what, "Give a finite number of 0 or more"))
        if self.merge and self.raw:
            what = "covered regions cannot both count and be merged"
            raise InputError(Problem("merge", what, "Leave out raw"))

    @property
    def core(self) -> str:
        """The core of a shared tree; empty for other trees."""
        return self.trees.removeprefix(SHARED) if self.trees.startswith(SHARED) else ""
