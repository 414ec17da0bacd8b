"""How inner loops are compiled: one decorator, so that options are the same everywhere."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import ZipCacheLocator
from numba.core.compiler_lock import global_compiler_lock

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
    if function is None:
        return partial(compiled, **options)
    kernel = numba.njit(**{"nogil": True, "cache": True, **options})(function)
    return alone(kernel) if kernel.stats.cache_path else kernel


def alone(kernel: Any) -> Any:
    """Let one process at a time compile a kernel: others wait, and take what it has kept.

    Tasks of Spark come to a kernel together. All of them would compile it, and of two that keep
    their code at the same time numba may forget one.
    """
    compile_now = kernel.compile

    def compile_alone(signature: Any) -> Any:
        # Numba's own lock first, in the order in which a kernel that calls this one takes them.
        with global_compiler_lock, locked(kernel):
            return compile_now(signature)

    kernel.compile = compile_alone
    return kernel


_held: set[str] = set()


@contextmanager
def locked(kernel: Any) -> Iterator[None]:
    """Hold the lock of a kernel, next to its machine code; it ends with the process at the latest.

    Where no lock can be had, on a folder that is read-only or far away, work goes on without.
    """
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    if name in _held:
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):
            folder = Path(kernel.stats.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context((folder / f"{name}.lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(name)
        stack.callback(_held.discard, name)
        yield
