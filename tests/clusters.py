"""Real servers of Spark on loopback: a cluster, and what it takes to start one."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from fanplan.data.java import java_home
from fanplan.data.secret import SECRET_FILE

# A JVM without its second compiler starts in half the time. It would keep little room for machine
# code, and throw out of it what the next test needs.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

QUICK_CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JVM,
}
"""Settings of a session that fits into the workers of the cluster and starts quickly."""
START_SECONDS = 120


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a real standalone cluster on loopback: a master and two workers.

    They share a secret, which the environment names for whoever uses the cluster inside the block.
    """
    folder.mkdir(exist_ok=True)
    port, secret, told = free_port(), folder / "secret", folder / "spark.conf"
    secret.touch(0o600)
    secret.write_text(f"{secrets.token_hex(32)}\n")
    told.touch(0o600)
    told.write_text(f"spark.authenticate true\nspark.authenticate.secret {secret.read_text()}")
    master = f"spark://127.0.0.1:{port}"
    bind = ("--host", "127.0.0.1", "--webui-port", "0", "--properties-file", str(told))
    worker = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), master)
    deploy = "org.apache.spark.deploy"
    with (
        pytest.MonkeyPatch.context() as patch,
        daemon(folder / "master", f"{deploy}.master.Master", *bind, "--port", str(port)) as first,
        daemon(folder / "worker-1", f"{deploy}.worker.Worker", *bind, *worker),
        daemon(folder / "worker-2", f"{deploy}.worker.Worker", *bind, *worker),
    ):
        await_port(port, first, folder / "master")
        patch.setenv(SECRET_FILE, str(secret))
        yield master


@contextmanager
def daemon(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A JVM of Spark's own, in a folder of its own, ended with the block."""
    folder.mkdir()
    home = os.path.dirname(pyspark.__file__)
    environment = os.environ | {
        "SPARK_HOME": home,
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [f"{home}/bin/spark-class", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def await_port(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a server listens; fail with its log if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"nothing listens on port {port}:\n{(folder / 'log').read_text()}")
