"""Types of numbers in plan.json."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat

Positive = Annotated[FiniteFloat, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[FiniteFloat, Field(ge=0)]
