"""Starting a Spark that stays between commands."""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.folder import locked, remove
from fanplan.core.owned import undisturbed
from fanplan.core.processes import started_at
from fanplan.data import jvm, jvm_archive, server
from fanplan.data.ingest.code import code_key
from fanplan.data.java import java_home
from fanplan.data.server import SparkProcess, folder, within
from fanplan.data.spark import (
    PATIENT,
    QUERIES,
    embedded_settings,
    environment_conf,
    require_connect,
)

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 300


def start() -> SparkProcess:
    """A server of this user on loopback, which later commands find."""
    require_connect("fanplan spark")
    with locked(folder()):
        if running := server.known():
            what = f"is already running, as process {running.pid}"
            raise InputError(Problem("Spark", what, "Stop it first: fanplan spark stop"))
        remove(folder())
        folder().mkdir(parents=True, mode=0o700)
        try:
            return started_server()
        except BaseException:
            # Whoever does not wait for it wants no server either.
            server.stop()
            remove(folder())
            raise


def started_server() -> SparkProcess:
    """Known from its first moment, so that it can be stopped however this process ends."""
    port, token, home = free_port(), secrets.token_urlsafe(32), java_home()
    classes = jvm_archive.found(home)
    # It writes no archive: it may run for days, and nobody waits for its end.
    java = (*PATIENT, *(classes.options if classes and not classes.written else ()))
    settings = QUERIES | embedded_settings(folder(), java) | environment_conf()
    settings |= {
        "spark.master": "local[*]",
        "spark.app.name": "fanplan",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
    }
    with undisturbed():
        process = launched(settings, home)
        found = SparkProcess(process.pid, started_at(process.pid), port, token, code_key())
        found.write()
    if not within(START_SECONDS, lambda: process.poll() is not None or found.answers):
        process.kill()
    if process.poll() is not None:
        told = (folder() / "log").read_text(errors="replace").strip()[-500:]
        raise MachineError(Problem("Spark", f"did not start ({told})", "Mend what it says"))
    return found


def launched(settings: dict[str, str], home: Path) -> subprocess.Popen[bytes]:
    """The process of a server, which outlives this one."""
    stated = folder() / "spark.conf"
    # In a file: a list of processes shows arguments to everybody, and the token is among them.
    stated.write_text("".join(f"{k}={jvm.escaped(v)}\n" for k, v in settings.items()))
    stated.chmod(0o600)
    spark = jvm_archive.SPARK
    own = {"SPARK_HOME": str(spark), "JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    command = [f"{spark}/bin/spark-submit", "--properties-file", str(stated), "--class", CLASS]
    words = [*command, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")), "spark-internal"]
    with (folder() / "log").open("wb") as log:
        return subprocess.Popen(
            words,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder(),
            env=os.environ | own,
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
