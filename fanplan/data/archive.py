"""Spark's classes as a JVM has them in memory, kept on disk: the next JVM starts in half the time.

Java calls it class data sharing. An archive is of one Java and of one set of jars, so its name is a
hash of both; it lies in the user's cache. The first JVM that finds none writes one when it ends,
which ``make setup`` lets happen. A JVM that cannot use an archive starts without, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from fanplan.core.folder import remove
from fanplan.data.java import cache

END_SECONDS = 30
"""A JVM has so long to end, and more if it writes an archive."""
WRITE_SECONDS = 300
KEPT = 4
"""Archives in the cache: one takes about 100 MB. Those that were used last stay."""

# It would tell users that an archive is not there, or is another Java's.
SILENT = ("-Xlog:disable", "-Xlog:all=warning,cds*=off:stderr")


@dataclass(frozen=True)
class Archive:
    """Where the archive is, and where this process's JVM writes it if it is not there.

    ``base`` is the archive of Java's own classes where Java comes without.
    """

    path: Path
    base: Path | None
    written: Path | None

    @property
    def options(self) -> tuple[str, ...]:
        """How Java uses or writes it, quoted as Spark reads options."""
        used = [path for path in (self.base, None if self.written else self.path) if path]
        shared = ":".join(map(str, used))
        named = [f'"-XX:SharedArchiveFile={shared}"'] if used else []
        writing = [f'"-XX:ArchiveClassesAtExit={self.written}"'] if self.written else []
        return (*named, *writing, *SILENT)

    @property
    def end_seconds(self) -> int:
        return WRITE_SECONDS if self.written else END_SECONDS

    def keep(self) -> None:
        """Give what the JVM wrote its name; it has ended."""
        if self.written is None or not self.written.is_file():
            return
        with suppress(OSError):
            self.written.replace(self.path)
            for old in sorted(self.path.parent.glob("*.jsa"), key=used_at)[:-KEPT]:
                remove(old)


def found(home: Path) -> Archive | None:
    """The archive for the Java of a shim's folder; None where the cache cannot be written."""
    folder = cache() / "classes"
    path = folder / f"{key(home)}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        base = base_of(home, folder)
        if path.is_file():
            os.utime(path)
            return Archive(path, base, None)
        for left in folder.glob("*.writing"):
            if not alive(left):
                remove(left)
        return Archive(path, base, folder / f"{path.stem}.{os.getpid()}.writing")
    except (OSError, subprocess.SubprocessError):
        return None


def key(home: Path) -> str:
    """A hash of all that an archive depends on: which Java, and which jars in which order."""
    java, jars = real_java(home), Path(pyspark.__file__).parent / "jars"
    # In the order of the folder: Java takes them so, and an archive is of one order.
    names = [(entry.name, entry.stat().st_size) for entry in os.scandir(jars)]
    parts = (str(java), java.stat().st_mtime_ns, str(jars), names)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def real_java(home: Path) -> Path:
    """The Java behind a shim, whose last line starts it."""
    last = (home / "bin" / "java").read_text().splitlines()[-1]
    return Path(shlex.split(last)[1]).resolve()


def base_of(home: Path, folder: Path) -> Path | None:
    """An archive of Java's own classes, made once where it comes without; None where it has one."""
    java = real_java(home)
    if (java.parent.parent / "lib" / "server" / "classes.jsa").is_file():
        return None
    stamp = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    base = folder / f"java-{stamp}.base"
    if not base.is_file():
        written = folder / f"{base.name}.{os.getpid()}.writing"
        command = [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={written}"]
        subprocess.run(command, capture_output=True, timeout=WRITE_SECONDS, check=True)
        written.replace(base)
    return base


def used_at(path: Path) -> float:
    return path.stat().st_mtime


def alive(written: Path) -> bool:
    """Whether the process is there that writes a file, by the number in its name."""
    return Path(f"/proc/{written.suffixes[-2].lstrip('.')}").exists()
