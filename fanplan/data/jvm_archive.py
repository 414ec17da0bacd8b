"""Spark's classes as a JVM has them in memory, kept on disk: the next JVM starts in half the time.

Java calls it class data sharing. An archive is of one Java and of one set of jars, so its name is a
hash of both; it lies in the user's cache. The first JVM that finds none writes one when it ends,
which ``make setup`` lets happen; should it fail, nobody tries again that day. A JVM that cannot
use an archive starts without, and says nothing. Java compares paths and dates of jars, so two
installations cannot share an archive, unless one is a link to the other.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from fanplan.core.folder import remove
from fanplan.data.java import cache

END_SECONDS = 30
"""A JVM has this long to end, and more if it writes an archive."""
WRITE_SECONDS = 300
RETRY_SECONDS = 24 * 3600
"""After this long it is tried again to write an archive that could not be written."""
KEPT = 8
"""Archives in the cache: one takes about 200 MB. Those that were used last stay."""
SPARK = Path(pyspark.__file__).resolve().parent

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
        used = [path for path in (self.base, self.path) if path and path.is_file()]
        shared = ":".join(map(str, used))
        named = [f'"-XX:SharedArchiveFile={shared}"'] if used else []
        writing = [f'"-XX:ArchiveClassesAtExit={self.written}"'] if self.written else []
        return (*named, *writing, *SILENT)

    @property
    def end_seconds(self) -> int:
        return WRITE_SECONDS if self.written else END_SECONDS

    def keep(self, whole: bool = True) -> None:
        """The JVM has ended: give what it wrote its name, or remember that it could not."""
        if self.written is None:
            return
        with suppress(OSError):
            if whole and self.written.is_file():
                self.path.with_suffix(".jars").write_text(str(SPARK / "jars"))
                self.written.replace(self.path)
                tidy(self.path.parent)
            else:
                self.path.with_suffix(".failed").touch()


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
            if not writer_alive(left):
                remove(left)
        if failed_lately(path):
            return Archive(path, base, None)
        return Archive(path, base, folder / f"{path.stem}.{os.getpid()}.writing")
    except (OSError, subprocess.SubprocessError):
        return None


def key(home: Path) -> str:
    """A hash of all that an archive depends on: which Java, and which jars in which order."""
    java, jars = real_java(home), SPARK / "jars"
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


def failed_lately(path: Path) -> bool:
    """Whether an archive could not be written and it is too early to try again."""
    failed = path.with_suffix(".failed")
    return failed.is_file() and time.time() - failed.stat().st_mtime < RETRY_SECONDS


def tidy(folder: Path) -> None:
    """Remove archives of installations that are gone, and of others those not used for longest."""
    found = sorted(folder.glob("*.jsa"), key=used_at)
    for old in {*found[:-KEPT], *(path for path in found if not has_jars(path))}:
        remove(old)
        remove(old.with_suffix(".jars"))


def has_jars(path: Path) -> bool:
    """Whether the jars are there that an archive is of, as far as that is known."""
    told = path.with_suffix(".jars")
    return not told.is_file() or Path(told.read_text()).is_dir()


def used_at(path: Path) -> float:
    return path.stat().st_mtime


def writer_alive(written: Path) -> bool:
    """Whether the process is there that writes a file, by the number in its name."""
    return Path(f"/proc/{written.suffixes[-2].lstrip('.')}").exists()
