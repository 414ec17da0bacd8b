"""Fixtures that tests of a process share: one embedded Spark, one cluster, one Connect server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from clusters import QUICK_CONF, QUICK_JVM, await_port, cluster, daemon, free_port
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from fanplan.data import spark as sparks

# Queries over a few rows take longer to compile than to run, and need no tables of 64 MB. The tests
# of a cluster are as users have it, from files to a replayed plan.
SMALL = (
    "spark.sql.codegen.wholeStage=false spark.sql.codegen.factoryMode=NO_CODEGEN "
    "spark.buffer.pageSize=2m"
)

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
    with cluster(tmp_path_factory.mktemp("cluster")) as master:
        yield master


@pytest.fixture(scope="session")
def cluster_conf() -> dict[str, str]:
    """Settings of a session that fits into the workers of the cluster and starts quickly."""
    return QUICK_CONF


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
