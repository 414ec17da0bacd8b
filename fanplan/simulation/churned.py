"""A run of the protocols of a stored plan: what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fanplan.core.errors import InputError, Problem


@dataclass(frozen=True)
class Churned:
    """What the protocols of a layer did. ``ok``: nothing was lost, doubled or left wrong."""

    layer: str
    ok: bool
    figures: dict[str, Any]

    def summary(self) -> dict[str, Any]:
        """All figures, as JSON."""
        return {"layer": self.layer, "ok": self.ok, **self.figures}


def require_fields(kind: type, options: Mapping[str, Any], layer: str) -> None:
    """Only options that mean something to the layer."""
    known = {field.name for field in fields(kind)}
    for name in options.keys() - known:
        what = f"means nothing to {layer}"
        raise InputError(Problem(name, what, "Leave it out"))
