"""The section of plan.json that a layer has."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from fanplan.workload.tables import Table


class SectionRecord(BaseModel):
    """What a layer says in plan.json; ``layer`` is the name of its section."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: ClassVar[str]

    def tables(self) -> tuple[Table, ...]:
        """The tables of the plan folder that belong to the section."""
        raise NotImplementedError
