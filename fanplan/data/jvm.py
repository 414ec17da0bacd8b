"""The JVM of this process: started, watched and ended here.

PySpark can start one too, but loses sight of it if it is interrupted meanwhile, and shows all
settings, secrets among them, to everybody who lists processes.
"""

from __future__ import annotations

import logging
import os
import shlex
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from fanplan.core.errors import MachineError, Problem
from fanplan.core.owned import killed, started, undisturbed
from fanplan.data import jvm_ahead
from fanplan.data.jvm_archive import END_SECONDS, SPARK, Archive

GLANCE = 0.02
"""Seconds between two looks for what the JVM tells when it is ready."""
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

_process: subprocess.Popen[bytes] | None = None
_classes: Archive | None = None


def launch(
    settings: Mapping[str, str], folder: Path, classes: Archive | None = None, kept: bool = False
) -> None:
    """Start a JVM with these settings, which PySpark then uses for its session.

    ``kept``: how it is called is kept for others like it.
    """
    global _process, _classes  # noqa: PLW0603 - a process has one JVM
    _classes = classes
    stated, ready = folder / "spark.conf", folder / "ready"
    hush()
    jvm_ahead.write_new(stated, "".join(f"{k}={escaped(v)}\n" for k, v in settings.items()))
    with undisturbed():
        begun = jvm_ahead.taken(folder)
        _process = begun or jvm_ahead.called(folder) or submitted(stated, ready)
    # PySpark needs it for a first task in Python. It takes a second, and the JVM starts meanwhile.
    import_module("pandas")
    while not ready.is_file():
        if _process.poll() is not None:
            what = f"its Java process ended while it started (exit code {_process.returncode})"
            remedy = f"Check memory and settings: {stated_by_user()}"
            raise MachineError(Problem("Spark", what, remedy))
        time.sleep(GLANCE)
    if kept and not writes():
        jvm_ahead.keep_start(_process, folder)
    attach_jvm(*connection(ready), brief=begun is not None)


def submitted(stated: Path, ready: Path) -> subprocess.Popen[bytes]:
    """A JVM as Spark's own script calls it."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    return started(
        [
            SPARK / "bin" / "spark-submit",
            "--properties-file",
            stated,
            "--load-spark-defaults",
            *words,
        ],
        of_thread=False,
        # It ends when this pipe does.
        stdin=subprocess.PIPE,
        env=os.environ | {"SPARK_CONNECT_MODE": "0", jvm_ahead.READY: str(ready)},
    )


def stated_by_user() -> str:
    return "FANPLAN_SPARK_CONF, JAVA_HOME, PYSPARK_SUBMIT_ARGS"


def escaped(value: str) -> str:
    """A value as a file of Java's properties holds it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def connection(ready: Path) -> tuple[int, str]:
    """Port and secret, as the JVM wrote them."""
    port, size = struct.unpack_from("!ii", content := ready.read_bytes())
    ready.unlink()
    return port, content[8 : 8 + size].decode()


def attach_jvm(port: int, secret: str, brief: bool = False) -> None:
    """Let PySpark use the JVM that is there.

    One for a ``brief`` command is not told which objects Python has dropped: a third of all calls.
    """
    os.environ |= {PORT: str(port), SECRET: secret}
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in (PORT, SECRET):
            os.environ.pop(name)
    gateway._gateway_client.gateway_property.enable_memory_management = not brief
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def alive() -> bool:
    """Whether there is a JVM; one that somebody else started counts as alive."""
    return _process is None or _process.poll() is None


def pid() -> int | None:
    """The number of the JVM's process, if this one started it."""
    return None if _process is None else _process.pid


def writes() -> bool:
    """Whether the JVM will write the classes it has when it ends."""
    return _classes is not None and _classes.written is not None


def kill_jvm() -> None:
    """End the JVM in the midst of its work, if there is one. Nothing is heard of it any more."""
    hush()
    if _process is not None:
        killed(_process)


def end() -> None:
    """End the JVM that PySpark would keep for the next session, with the old memory settings."""
    global _process, _classes  # noqa: PLW0603
    gateway, process, classes = SparkContext._gateway, _process, _classes
    # A thread of py4j tells the JVM which objects Python has dropped. Now and then it comes too
    # late, and would log a stack trace.
    logging.disable(logging.CRITICAL)
    try:
        if process is not None and process.poll() is None and gateway is not None:
            gateway.shutdown()
            if process.stdin is not None:
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=END_SECONDS if classes is None else classes.end_seconds)
            if classes is not None:
                classes.keep(process.returncode == 0)
    finally:
        jvm_ahead.end_workers()
        logging.disable(logging.NOTSET)
        if process is not None:
            killed(process)
            _process = _classes = None
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            SparkSession._instantiatedSession = SparkSession._activeSession = None


def hush() -> None:
    """py4j logs the stack trace of every call that a dead JVM does not answer, and raises it."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(unheard)


def unheard(record: logging.LogRecord) -> bool:
    """What py4j says to the root of all loggers is dropped."""
    return "py4j" not in record.pathname and "KeyboardInterrupt while" not in str(record.msg)
