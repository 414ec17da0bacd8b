"""How inner loops are compiled: one decorator, so that options are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import ZipCacheLocator

F = TypeVar("F", bound=Callable[..., Any])


class ShippedCacheLocator(ZipCacheLocator):
    """Where the machine code of a module in a zip is kept on an executor.

    A session ships the package as a zip, at another path each time. Code kept by path would be
    compiled again by every session; it is kept by the content of the module instead.
    """

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        content = self.get_source_stamp().hex()[:32]
        self._cache_path = str(Path(self._cache_path).parent / f"{Path(py_file).stem}_{content}")


if not Path(__file__).exists():
    locator = f"{__name__}.{ShippedCacheLocator.__name__}"
    numba.config.CACHE_LOCATOR_CLASSES = (  # type: ignore[attr-defined]
        f"{locator},UserWideCacheLocator"
    )


def compiled(function: F | None = None, **options: Any) -> Any:
    """Compile with numba, without the GIL, keeping the machine code between runs."""
    options = {"nogil": True, "cache": True, **options}
    return numba.njit(**options) if function is None else numba.njit(**options)(function)
