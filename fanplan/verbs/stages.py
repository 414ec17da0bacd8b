"""The stages of a dataset that layers are planned from, made by Spark when they are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
