"""The section of plan.json that a layer has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from fanplan.core.options import Options
from fanplan.core.tables import Table


class SectionRecord(BaseModel, ABC):
    """What a layer says in plan.json; ``layer`` is the name of its section."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: ClassVar[str]
    main: ClassVar[str] = ""
    """the table that says most of what the layer decided"""
    params: Options
    """what was asked for"""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables of the plan folder that belong to the section."""


class PlannedSection(Protocol):
    """A section as it was planned, with its tables: for which dataset, and by which version."""

    @property
    def layer(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def version(self) -> str: ...
