"""What is decided about groups: which are set up, and how their messages are forwarded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from fanplan.layers.groups.record import GroupsRecord


@dataclass(frozen=True, eq=False)
class GroupsLayer:
    """Groups with their origin and their figures; ``tables`` are those of the plan folder.

    Nothing about them is drawn at random, so that the seed does not matter.
    """

    record: GroupsRecord
    tables: dict[str, pa.Table]
    source: str
    version: str
    seed: int = 0
    layer: Literal["groups"] = "groups"
