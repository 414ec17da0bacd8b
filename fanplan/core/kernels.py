"""How inner loops are compiled: one decorator, so that options are the same everywhere."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from types import FunctionType
from typing import IO, Any, TypeVar, overload

import numba
from numba.core import types
from numba.core.caching import ZipCacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])


class ShippedCacheLocator(ZipCacheLocator):
    """Where the machine code of a module in a zip is kept on an executor.

    A session ships the package as a zip, at another path each time. Code kept by path would be
    compiled again by every session; it is kept by the content of the module instead.
    """

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[no-untyped-call]
        content = self.get_source_stamp().hex()[:32]  # type: ignore[no-untyped-call]
        self._cache_path = str(Path(self._cache_path).parent / f"{Path(py_file).stem}_{content}")


if not Path(__file__).exists():
    locator = f"{__name__}.{ShippedCacheLocator.__name__}"
    numba.config.CACHE_LOCATOR_CLASSES = (  # type: ignore[attr-defined]
        f"{locator},UserWideCacheLocator"
    )


class Kernel(CPUDispatcher):
    """A compiled function in two forms: this one is for Python, ``inner`` is for other kernels.

    Numba wraps what it compiles so that Python and C can call it. Most kernels are only called by
    kernels, and without wrappers they take a quarter less time to compile.
    """

    @property
    def _numba_type_(self) -> Any:
        """What a kernel sees that names this one."""
        return types.Dispatcher(self.inner)

    @cached_property
    def inner(self) -> Any:
        """Numba keeps machine code by name, so this form has its own."""
        python = self.py_func
        same = FunctionType(
            python.__code__,
            python.__globals__,
            python.__name__,
            python.__defaults__,
            python.__closure__,
        )
        same.__qualname__ = f"{python.__qualname__}.inner"
        return cached(CPUDispatcher(same, targetoptions=self.targetoptions | NO_WRAPPER))


NO_WRAPPER = {"no_cpython_wrapper": True}


@overload
def compiled(function: F, **options: Any) -> F: ...


@overload
def compiled(**options: Any) -> Callable[[F], F]: ...


def compiled(function: F | None = None, **options: Any) -> Any:
    """Compile with numba, without the GIL, keeping the machine code between runs."""
    if function is None:
        return partial(compiled, **options)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, **options}
    return cached(Kernel(function, targetoptions=options))


def inlined(function: F) -> F:
    """Compile a small function into its callers.

    A call hands over every array of every argument field by field, which may take longer than what
    is done with them. Unlike a bare one, it may return an array.
    """
    return compiled(function, inline="always")


def bare(function: F) -> F:
    """Compile a function into its callers, and without reference counts.

    Counts of references to arrays may take most of the time of small functions. They can go where
    nothing makes an array.
    """
    return compiled(function, forceinline=True, _nrt=False)


def cached(kernel: Any) -> Any:
    """Keep machine code on disk. One process at a time compiles a kernel, others wait and load it.

    Tasks of Spark come to a kernel together. All of them would compile it, and of two that keep
    their code at the same time numba may forget one. Numba keeps code beside the module, or in the
    user's cache if that folder is read-only. If it may write to neither, each process compiles.
    """
    try:
        kernel.enable_caching()
    except RuntimeError:
        return kernel
    outlive_renaming(kernel)
    compile_now = kernel.compile

    def compile_alone(signature: Any) -> Any:
        # Numba's own lock first, in the order in which a kernel that calls this one takes them.
        with global_compiler_lock, lock_held(kernel):
            return compile_now(signature)

    kernel.compile = compile_alone
    return kernel


def outlive_renaming(kernel: Any) -> None:
    """Code that was kept for types which are no longer there, as after an update, is of no use.

    Numba reads the types before it sees that the module has changed, and would fail.
    """
    index = kernel._cache._cache_file
    load_now = index._load_index

    def load_index() -> dict[Any, str]:
        try:
            return dict(load_now())
        except (ImportError, AttributeError):
            return {}

    index._load_index = load_index


_held: set[str] = set()


@contextmanager
def lock_held(kernel: Any) -> Iterator[None]:
    """Hold the lock of a kernel, next to its machine code; it ends with the process at the latest.

    Where no lock can be had, on a folder that is read-only or far away, or because somebody who has
    it was stopped, work goes on without.
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
            take(file)
            # Closing it would not be enough: a process that was forked meanwhile has it open, too.
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        _held.add(name)
        stack.callback(_held.discard, name)
        yield


PATIENCE, GLANCE = 300.0, 0.02
"""Seconds: longer than any kernel takes to compile on a busy machine; between two looks."""


def take(file: IO[str]) -> None:
    """Take a lock as soon as it is free; an OSError if it never is."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(GLANCE)
