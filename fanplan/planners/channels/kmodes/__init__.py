"""kmodes, the default channel planner: one idea per file, assembled in ``plan``."""

from __future__ import annotations

from fanplan.planners.channels.kmodes.changes import Changes, changes
from fanplan.planners.channels.kmodes.params import KmodesParams
from fanplan.planners.channels.kmodes.plan import kmodes

__all__ = ["Changes", "KmodesParams", "changes", "kmodes"]
