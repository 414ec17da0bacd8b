"""kmodes, the default channel planner: one idea per file, assembled in ``plan``."""

from __future__ import annotations

from fanplan.layers.channels.differences import Changes, changes
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.search.kmodes import kmodes

__all__ = ["Changes", "KmodesParams", "changes", "kmodes"]
