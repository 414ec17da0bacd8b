"""A JVM under way before Python has imported what a command needs: each takes seconds.

So is the daemon whose forks are Spark's Python workers (`workers`).

Spark's own script asks one JVM how to call another. Its answer is kept in the user's cache, with
the settings it was given, and a JVM with the same settings is called so at once. A command that
will want Spark for few rows begins with it before the settings are known; should they turn out to
be others, that JVM is ended. What a user sets in words of his own is never kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fanplan.core.folder import write_whole
from fanplan.core.owned import claim, killed, release, started
from fanplan.core.version import PACKAGE
from fanplan.data.java import cache
from fanplan.data.workers import PLACE

READY = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Names the file that tells where a JVM listens."""
FOLDER = "{folder}"
"""Stands for the folder of a session."""

BEARING = ("FANPLAN_", "HADOOP_", "JAVA_", "JDK_", "PYSPARK_", "SPARK_", "XDG_")
"""How names of the environment begin that bear on how a JVM is called."""
OF_USER = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS")
OF_SHELL = ("_", "PWD", "OLDPWD", "SHLVL", READY)


def hashed(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


ENVIRONMENT = hashed(sorted(item for item in os.environ.items() if item[0].startswith(BEARING)))
"""Of what the user gave, before a session adds to it."""

ANYWHERE = {
    "PYTHONHASHSEED": "0",
    # A task has one core: libraries inside it must not start threads of their own.
    "OMP_NUM_THREADS": "1",
}
"""The environment of Python workers, wherever they run."""

COMMANDS = ("ingest", "replay", "design", "demo")
ELSEWHERE = ("--master", "--remote", "--help")
FEW_BYTES = 8 << 20
"""Folders of this many bytes hold few rows; a JVM that is wrong for more is replaced."""


@dataclass(frozen=True)
class Start:
    """How a JVM was called: by which words, with which files in its folder, and for whom."""

    words: list[str]
    files: dict[str, str]
    added: dict[str, str]
    """What Spark's script added to the environment."""
    environment: str

    def fits(self, files: Mapping[str, str]) -> bool:
        """Whether a JVM for these files would be called the same."""
        return self.files == files and self.environment == ENVIRONMENT

    def run(self, folder: Path) -> subprocess.Popen[bytes]:
        """Such a JVM, in its folder."""
        for name, text in self.files.items():
            write_new(folder / name, text.replace(FOLDER, str(folder)))
        words = [word.replace(FOLDER, str(folder)) for word in self.words]
        # It ends when its input does.
        told = os.environ | self.added | {READY: str(folder / "ready")}
        return started(words, of_thread=False, stdin=subprocess.PIPE, env=told)


@dataclass(frozen=True)
class BegunJvm:
    """A JVM that was begun, and how."""

    start: Start
    folder: Path
    process: subprocess.Popen[bytes]


_begun: BegunJvm | None = None
_workers: subprocess.Popen[bytes] | None = None


def begin(words: Sequence[str]) -> None:
    """Begin with the JVM of a command that will want one for few rows."""
    global _begun, _workers  # noqa: PLW0603 - a process has one JVM
    if not (wants_spark(words) and (last := kept_start()) and last.environment == ENVIRONMENT):
        return
    # Whatever is wrong is told when the session starts without it.
    with suppress(OSError):
        folder = claim("spark")
        _begun = BegunJvm(last, folder, last.run(folder))
        _workers = standing_by(folder)


def standing_by(folder: Path) -> subprocess.Popen[bytes]:
    """A daemon of Python workers for a session in this folder, with all that Spark would set."""
    nowhere = subprocess.DEVNULL
    return started(
        [sys.executable, "-m", "fanplan.data.workers"],
        of_thread=False,
        process_group=0,  # Spark's daemon makes itself the head of one; of a session it could not.
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        env=os.environ | of_workers(folder),
    )


def of_workers(folder: Path) -> dict[str, str]:
    """The environment of workers on this machine. They import the very files of this process."""
    return ANYWHERE | {"PYTHONPATH": str(PACKAGE.parent), PLACE: str(folder / "workers")}


def wants_spark(words: Sequence[str]) -> bool:
    """Whether a command will surely start Spark here, for few rows, as far as its words tell."""
    if not words or words[0] not in COMMANDS or any(w.startswith(ELSEWHERE) for w in words):
        return False
    if (cache().parent / "spark" / "server.json").exists():
        return False
    if words[0] == "demo":
        return len(words) == 1
    folders = [Path(word) for word in words[1:] if os.path.isdir(word)]
    datasets = [folder for folder in folders if (folder / "manifest.json").is_file()]
    # A dataset may be complete: then nothing is left to do with Spark.
    complete = words[0] == "ingest" or any((dataset / "senders").is_dir() for dataset in datasets)
    surely = bool(datasets) if words[0] == "replay" else not (datasets and complete)
    return bool(folders) and surely and folder_bytes(folders) <= FEW_BYTES


def folder_bytes(folders: Iterable[Path]) -> int:
    """Bytes in folders."""
    with suppress(OSError):
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*"))
    return FEW_BYTES + 1


def begun_folder() -> Path | None:
    """The folder of the JVM that was begun, for the session that takes it."""
    return _begun.folder if _begun else None


def taken(folder: Path) -> subprocess.Popen[bytes] | None:
    """The JVM that was begun in this folder, if it fits the files there now; else it is ended."""
    global _begun
    begun, _begun = _begun, None
    if begun is None:
        return None
    if begun.folder == folder and begun.start.fits(start_files(folder)):
        return begun.process
    killed(begun.process)
    # The next one in this folder tells by it where it listens.
    (begun.folder / "ready").unlink(missing_ok=True)
    return None


def end_workers() -> None:
    """End the daemon that was begun, and its workers."""
    global _workers  # noqa: PLW0603
    if _workers is not None:
        killed(_workers)
        _workers = None


def end_begun() -> None:
    """End the JVM that was begun if no session took it."""
    end_workers()
    if _begun is not None:
        left = _begun.folder
        taken(left.parent)
        release(left)


# ---- what is kept


def called(folder: Path) -> subprocess.Popen[bytes] | None:
    """A JVM in this folder, if it is known how one with its files is called."""
    start = kept_start()
    return start.run(folder) if start and start.fits(start_files(folder)) else None


def keep_start(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Keep how a JVM that runs was called, where the system tells and all of it is our choice."""
    home = os.environ["SPARK_HOME"]
    if any(name in os.environ for name in OF_USER) or os.path.isdir(f"{home}/conf"):
        return
    with suppress(OSError, UnicodeDecodeError):
        words, told = (
            (Path("/proc") / str(process.pid) / name).read_text().split("\0")[:-1]
            for name in ("cmdline", "environ")
        )
        now = dict(pair.split("=", 1) for pair in told if "=" in pair)
        start = Start(
            [general(word, folder) for word in words],
            start_files(folder),
            {k: v for k, v in now.items() if k not in OF_SHELL and os.environ.get(k) != v},
            ENVIRONMENT,
        )
        if start != kept_start():
            write_whole(known_start(), json.dumps(asdict(start)))


def kept_start() -> Start | None:
    """How the last JVM was called, if all that it needed is still there."""
    try:
        start = Start(**json.loads(known_start().read_bytes()))
        shared = [w.partition("=")[2] for w in start.words if w.startswith("-XX:SharedArchiveFile")]
        files = [start.words[0], *(file for word in shared for file in word.split(":"))]
    except (OSError, ValueError, TypeError, IndexError):
        return None
    return start if all(map(os.path.isfile, files)) else None


def start_files(folder: Path) -> dict[str, str]:
    """The files of a session's folder that a JVM reads when it starts."""
    found = (file for file in folder.iterdir() if file.suffix in (".conf", ".properties"))
    return {file.name: general(file.read_text(encoding="utf-8"), folder) for file in found}


def write_new(file: Path, text: str) -> None:
    """Write a file unless it is there already: a JVM may be reading it."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def general(text: str, folder: Path) -> str:
    return text.replace(str(folder), FOLDER)


def known_start() -> Path:
    """For each installation a file of its own, for this user alone."""
    return cache() / f"start-{hashed(sys.executable, __file__)}.json"
