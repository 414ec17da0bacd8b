"""What the marks of a plan cost for the publishers and subscribers of another day."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ReplayedMarks:
    """The marks of a plan on the trees of a dataset, beside the best ones.

    Of the ``links`` of the trees ``unmarked`` have no mark in the plan; ``unused`` marks are of
    links that are in no tree now. ``broken`` links are p-links behind an s-link: there both sides
    no longer meet. ``repaired`` is how many marks must change at least so that they do. ``cost`` is
    that of the marks after this, with new links marked as best suits them; ``planned`` was that of
    the plan, and ``best`` is that of the best marks now, for which ``changed`` marks must change.
    """

    links: int
    unmarked: int
    unused: int
    broken: int
    repaired: int
    changed: int
    planned: float
    cost: float
    best: float

    @property
    def ok(self) -> bool:
        """Every link has a mark, and both sides meet everywhere."""
        return self.unmarked == 0 and self.broken == 0

    @property
    def excess_percent(self) -> float:
        """How far the cost lies above the best."""
        return 100.0 * (self.cost / self.best - 1.0) if self.best else 0.0

    def json(self) -> dict[str, Any]:
        return {"ok": self.ok} | asdict(self) | {"excess_percent": self.excess_percent}

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        return {
            "directed links in trees": self.links,
            "links without a mark": self.unmarked,
            "marks of links in no tree": self.unused,
            "p-links behind an s-link": self.broken,
            "marks that must change": self.repaired,
            "marks that the best has otherwise": self.changed,
            "cost as planned": self.planned,
            "cost now": self.cost,
            "best cost now": self.best,
            "above the best, percent": self.excess_percent,
            "marks": "hold" if self.ok else "do not hold: mark again",
        }
