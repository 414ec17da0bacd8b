"""What the layers of a plan are worth on a dataset that they were not made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Moved:
    """How many items of a kind came, went, or stayed and changed."""

    came: int
    gone: int
    changed: int = 0


@dataclass(frozen=True)
class LayerNow:
    """A layer on a dataset as it is now.

    ``figures`` has (then, now); a figure that cannot be told is None. ``missed`` counts who is not
    reached: pairs of a flow and a subscriber, clients, or links.
    """

    moved: dict[str, Moved]
    figures: Mapping[str, tuple[float, float | None]]
    missed: int
    notes: tuple[str, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        return {
            "moved": {name: vars(moved) for name, moved in self.moved.items()},
            "figures": {name: list(pair) for name, pair in self.figures.items()},
            "missed": self.missed,
            "notes": list(self.notes),
        }


def came_and_went(then: Iterable[Any], now: Iterable[Any]) -> Moved:
    then, now = set(then), set(now)
    return Moved(len(now - then), len(then - now))
