"""How inner loops are compiled: one decorator, so that options are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F | None = None, **options: Any) -> Any:
    """Compile with numba, without the GIL, keeping the machine code between runs.

    Executors may import the package from a zip, where numba has no place for a cache file.
    """
    options = {"nogil": True, "cache": Path(__file__).exists(), **options}
    return numba.njit(**options) if function is None else numba.njit(**options)(function)
