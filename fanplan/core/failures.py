"""What failed, in words: from what Python, the kernel and Spark raise to an error with a remedy."""

from __future__ import annotations

import errno
import os
import re
import traceback

from fanplan.core.errors import FanplanError, InputError, MachineError, Problem

FULL = "Free some room there, or name a folder elsewhere (TMPDIR for temporary files)"
MEMORY = "Give it more memory, or less work: fewer flows, or a cluster (--master)"

# What is wrong with the machine and not with what was asked for.
EXHAUSTED = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EIO: "Check the disk",
    errno.ENOMEM: MEMORY,
    errno.EMFILE: "Raise the limit (ulimit -n)",
    errno.ENFILE: "End programs that hold many files open",
    errno.EAGAIN: "End other programs, or raise the limit (ulimit -u)",
    errno.EADDRINUSE: "End what listens there, or give another port",
}

REFUSED = {
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "Check the path: a file stands where a folder must be",
    errno.EISDIR: "Check the path: a folder stands where a file must be",
    errno.ENAMETOOLONG: "Use a shorter path",
    errno.ELOOP: "Check the path: links lead round in a circle",
    errno.EACCES: "Change its permissions, or name another place",
    errno.EPERM: "Change its permissions, or name another place",
    errno.EROFS: "Name a folder that can be written",
    errno.EEXIST: "Name another place",
}

# NumPy of an array that no memory could hold, and pathlib of links.
TOO_BIG = {
    "Maximum allowed dimension exceeded",
    "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.",
}
LOOP = re.compile(r"Symlink loop from '(.*)'")

SPARK = ("py4j", "pyspark")
"""Packages whose errors are failures of Spark."""

# What a failed job says, which comes from anywhere; the first that fits tells most.
SPARK_SAYS = (
    (r"No space left on device|Disk quota exceeded", errno.ENOSPC),
    (r"java\.lang\.OutOfMemoryError|MemoryError|Cannot allocate memory", errno.ENOMEM),
    (r"Too many open files", errno.EMFILE),
)
GONE = (
    r"(?i)Answer from Java side is empty|Connection refused|Connection reset|"
    r"error while (?:sending|receiving)|SparkContext was shut down|cannot be called on a stopped|"
    r"Broken pipe|Python worker exited unexpectedly|network error|"
    r"An error occurred while calling \S+$|does not exist in the JVM|"
    r"reading the port number from"
)


def explained(error: BaseException) -> FanplanError | None:
    """The error as one of ours; None if only its own words tell what happened."""
    if isinstance(error, FanplanError):
        return error
    if isinstance(error, MemoryError) or (
        isinstance(error, ValueError) and TOO_BIG & {*error.args}
    ):
        return of_machine("memory", errno.ENOMEM)
    if isinstance(error, RuntimeError) and (loop := LOOP.fullmatch(str(error))):
        return of_system(loop[1], OSError(errno.ELOOP, ""))
    if of_spark(error):
        return spark_failed(error)
    if isinstance(error, OSError) and error.errno is not None:
        return of_system(str(error.filename or "a file"), error)
    return None


def of_system(where: str, error: OSError, what: str = "cannot be used") -> FanplanError:
    """The kernel's refusal: of what was asked for, or for want of something."""
    code = error.errno or errno.EIO
    if code in REFUSED:
        return InputError(Problem(where, f"{what} ({os.strerror(code)})", REFUSED[code]))
    return of_machine(where, code, what)


def of_machine(where: str, code: int, what: str = "there is no more") -> MachineError:
    remedy = EXHAUSTED.get(code, "Check the machine")
    return MachineError(Problem(where, f"{what} ({os.strerror(code)})", remedy))


def of_spark(error: BaseException) -> bool:
    """Whether an error comes from Spark, or from the way there."""
    if not isinstance(error, ConnectionError):
        return package_of(type(error).__module__) in SPARK
    frames = traceback.walk_tb(error.__traceback__)
    return any(package_of(frame.f_globals.get("__name__", "")) in SPARK for frame, _ in frames)


def package_of(module: str) -> str:
    return module.partition(".")[0]


def spark_failed(error: BaseException) -> MachineError | None:
    """A job that failed, or a JVM that ended, by what it says."""
    try:
        text = str(error)
    except Exception:
        return spark_gone()  # Errors of py4j ask the JVM for their words.
    for words, code in SPARK_SAYS:
        if re.search(words, text):
            return of_machine("Spark", code, "a job failed")
    return spark_gone() if re.search(GONE, text) or isinstance(error, ConnectionError) else None


def spark_gone() -> MachineError:
    what = "a process of its ended, or cannot be reached any more"
    remedy = (
        "Was it killed, for want of memory perhaps? Run it again, with more memory or less work"
    )
    return MachineError(Problem("Spark", what, remedy))
