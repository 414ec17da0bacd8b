"""Fixtures that tests of a process share: one embedded Spark, one cluster, one Connect server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyspark
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from fanplan.data import spark as sparks
from fanplan.data.java import java_home

# A JVM without its second compiler starts in half the time. It would keep little room for machine
# code, and throw out of it what the next test needs.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

# Queries over a few rows take longer to compile than to run, and need no tables of 64 MB. The tests
# of a cluster are as users have it, from files to a replayed plan.
SMALL = (
    "spark.sql.codegen.wholeStage=false spark.sql.codegen.factoryMode=NO_CODEGEN "
    "spark.buffer.pageSize=2m"
)
START_SECONDS = 120

# The first example of a test may compile a kernel or start a job: time says nothing here. The same
# examples every time: a failure on one machine is a failure on all.
settings.register_profile("fanplan", deadline=None, derandomize=True)
settings.load_profile("fanplan")


@cache
def needs_spark(file: Path) -> bool:
    """Whether a file has tests on the embedded Spark: one of its fixtures is an argument."""
    return re.search(r"\b(spark: SparkSession|demo: Path)\b", file.read_text()) is not None


class OneSpark(LoadScopeScheduling):  # type: ignore[misc]  # xdist says no types
    """Files to processes as they come, but all that need the embedded Spark to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if needs_spark(self.config.rootpath / file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSpark:
    return OneSpark(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark come first: they are the largest part that one process must do."""
    first = {path for path in {item.path for item in items} if needs_spark(path)}
    items.sort(key=lambda item: item.path not in first)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark for all tests."""
    # Through the environment, so that a command with `--master local[2]` shares the session.
    jvm = f"spark.driver.extraJavaOptions='{QUICK_JVM}' spark.driver.memory=2g"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sparks.EXTRA, f"{jvm} {SMALL}")
        with sparks.running(master="local[2]") as session:
            yield session


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo that is small, run once for all who look at what it leaves."""
    from commands import run

    folder = tmp_path_factory.mktemp("demo")
    size = ("--sites", 2, "--users", 16, "--symbols", 12, "--publications", 1000)
    assert run("demo", "--out", folder, *size, "--master", "local[2]") == 0
    return folder


@pytest.fixture(scope="module")
def cluster_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real standalone cluster on loopback: a master and two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    bind = ("--host", "127.0.0.1", "--webui-port", "0")
    worker = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), master)
    deploy = "org.apache.spark.deploy"
    with (
        daemon(folder / "master", f"{deploy}.master.Master", *bind, "--port", str(port)) as first,
        daemon(folder / "worker-1", f"{deploy}.worker.Worker", *bind, *worker),
        daemon(folder / "worker-2", f"{deploy}.worker.Worker", *bind, *worker),
    ):
        await_port(port, first, folder / "master")
        yield master


@pytest.fixture(scope="session")
def cluster_conf() -> dict[str, str]:
    """Settings of a session that fits into the workers of the cluster and starts quickly."""
    return {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JVM,
    }


@pytest.fixture(scope="module")
def connect_remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Spark Connect server on loopback, with two cores."""
    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
    }
    options = [word for item in conf.items() for word in ("--conf", "=".join(item))]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--class", server)
    with daemon(folder / "server", *submit, *options, "spark-internal") as process:
        await_port(port, process, folder / "server")
        yield f"sc://127.0.0.1:{port}"


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
