"""The code that makes stages, as a part of their keys: nobody has to remember to raise a number."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path

from fanplan.core.hashes import digest
from fanplan.core.version import PACKAGE

LIBRARIES = ("numba", "numpy", "pyarrow", "pyspark")
"""Libraries that rows pass through."""


@cache
def code_key() -> str:
    """A hash of the package's sources and of the versions of libraries that it computes with.

    It is all of the package: which modules a stage needs would have to be known, and kept true.
    """
    return sources_key(PACKAGE, {name: version(name) for name in LIBRARIES})


def sources_key(package: Path, libraries: dict[str, str]) -> str:
    """A hash of the Python files below a folder, with their names, and of versions."""
    found = digest()
    found.update(repr(libraries).encode())
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        found.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()
