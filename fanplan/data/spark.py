"""The one place where Spark is started, set up and stopped.

``session()`` is an embedded Spark on this machine's cores; ``session(master="spark://…")`` runs on
a cluster and ``session(remote="sc://…")`` through a Spark Connect server. Code that gets a session
cannot tell which: it uses DataFrames only.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import socket
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.folder import require_room
from fanplan.core.owned import claim, release
from fanplan.core.stop import Heard, Terminated, terminate
from fanplan.core.version import PACKAGE
from fanplan.data import jvm, jvm_ahead, jvm_archive, server
from fanplan.data.java import java_home
from fanplan.data.secret import STANDALONE, require_accepted, secret_conf
from fanplan.data.sizes import FIXED, LARGE_ROWS, is_local, is_small

EXTRA = "FANPLAN_SPARK_CONF"
REACH_SECONDS = 10
GLANCE, SETTLE_SECONDS = 0.02, 30
MASTERS = ("local", "spark://", "k8s://", "yarn")
CONNECT = ("grpc", "grpc_status", "google.rpc", "zstandard")

# Settings of queries: the same everywhere, and all that a Connect client may choose.
QUERIES = {
    # A cast or sum that cannot be done right stops the job. Readers that expect bad values say so
    # with try_cast; elsewhere a silent NULL would be a wrong count.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Large batches give compiled kernels long runs; the limit in bytes holds for long rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    # Writing a table split by a column of few values needs no sort.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
}

# stderr is the user's. What fails is raised and told in a sentence, without Java's stack traces;
# Spark itself may say only what explains an endless wait.
LOGGING = """\
status = error
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark %p: %m%n%ex{none}
# PySpark would raise the level to this logger's own, and say so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
logger.resources.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.resources.level = warn
"""

NEEDED = 16 << 20
"""Bytes of temporary files at least. With less a library of the JVM prints its own stack trace."""


# A short job is over before the work of the JVM's optimising compiler pays: it starts at ten times
# its usual thresholds.
PATIENT = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# Where a whole session is short it never pays. Machine code has the room of both compilers.
# The heap has room for what a short session leaves behind, so that little is collected.
QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC",
    "-XX:NewSize=256m",
    "-XX:MetaspaceSize=256m",
)

# Each sort would take a page of 64 MB and have it filled with zeros.
FEW_ROWS = {"spark.buffer.pageSize": "2m"}

# PySpark asks for these classes once per column, and for most the JVM searches all its jars.
ASKED_OFTEN = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")


class JavaClass:
    """A Java class whose members are asked for once; py4j asks the JVM whenever they are used."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def __getattr__(self, name: str) -> Any:
        setattr(self, name, member := getattr(self._java, name))
        return member


@dataclass(frozen=True)
class Asked:
    """What a caller asked for: two equal wishes share a session."""

    master: str | None
    remote: str | None
    conf: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Session:
    """The session of this process, the folder that goes away with it, and what signals did."""

    asked: Asked
    spark: SparkSession
    folder: Path
    handlers: Mapping[int, Any]
    quick: bool = False
    own: bool = True
    """Whether it was started here, and is to be stopped here."""

    def serves(self, asked: Asked, rows: int | None) -> bool:
        """Whether it is what is asked for; a JVM for few rows is none for many."""
        fits = not self.quick or (rows or 0) <= LARGE_ROWS
        return fits and self.asked == asked and _alive(self.spark)


_running: Session | None = None


def session(
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    rows: int | None = None,
) -> SparkSession:
    """The Spark session of this process: the one there is if asked for alike, else a new one.

    ``rows`` is how many it is started for, if that is known: for few the JVM starts sooner.
    ``conf`` goes before the settings in the environment variable FANPLAN_SPARK_CONF, and these
    before the settings chosen here. A session that was asked for otherwise is stopped first.
    """
    global _running  # noqa: PLW0603 - a process has one session
    _check_address(master, remote)
    given = {**secret_conf(master), **environment_conf(), **(conf or {})}
    asked = Asked(master, remote, tuple(sorted(given.items())))
    if _running and _running.serves(asked, rows):
        return _running.spark
    stop()
    if SparkContext._active_spark_context is not None:
        _running = _adopted(asked)
        return _running.spark
    handlers, folder = _handlers(), jvm_ahead.begun_folder() or claim("spark")
    try:
        if not remote:
            require_room(folder, NEEDED)
        quick = is_small(rows) and not remote
        spark = _connect(remote, asked, folder) if remote else _start(master, asked, folder, quick)
        _on_signals({} if remote else dict.fromkeys(handlers, _interrupt))
        _running = Session(asked, spark, folder, handlers, quick)
    except BaseException:
        jvm.kill_jvm()
        jvm.end()
        release(folder)
        _on_signals(handlers)
        raise
    return spark


@contextmanager
def running(
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    rows: int | None = None,
) -> Iterator[SparkSession]:
    """A session for the length of a ``with`` block; afterwards no JVM is left."""
    try:
        yield session(master, remote, conf, rows)
    finally:
        stop()


def stop() -> None:
    """Stop the session of this process, its jobs and its JVM, and remove its files."""
    global _running
    if _running is None:
        return
    old, _running = _running, None
    if not old.own:
        release(old.folder)
        return
    try:
        # A JVM that died cannot be asked to stop, and one that nobody else knows need not be asked.
        if old.quick and old.asked == Asked(None, None, ()) and not jvm.writes():
            jvm.kill_jvm()
        elif _alive(old.spark):
            old.spark.stop()
    finally:
        jvm.end()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        release(old.folder)
        _on_signals(old.handlers)


def settle() -> None:
    """Wait until no job runs: a query may be done before those that it turned out not to need."""
    if _running is None or hasattr(_running.spark, "is_stopped"):
        return
    tracker, end = _running.spark.sparkContext.statusTracker(), time.monotonic() + SETTLE_SECONDS
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(GLANCE)


def kill() -> None:
    """End the JVM at once, whatever it does, and remove the files of the session."""
    if _running is not None and _running.own and not hasattr(_running.spark, "is_stopped"):
        jvm.kill_jvm()
    stop()


atexit.register(stop)


def environment_conf() -> dict[str, str]:
    """Settings from FANPLAN_SPARK_CONF: ``key=value`` with spaces between, quoted as in sh."""
    pairs = [pair.partition("=") for pair in shlex.split(os.environ.get(EXTRA, ""))]
    wrong = [key for key, equals, _ in pairs if not (equals and key.startswith("spark."))]
    if wrong:
        raise InputError(
            Problem(EXTRA, f"{key!r} is not a setting", "Write spark.NAME=VALUE") for key in wrong
        )
    return {key: value for key, _, value in pairs}


def _start(master: str | None, asked: Asked, folder: Path, quick: bool) -> SparkSession:
    """A session with its driver in this process's own JVM."""
    local = master is None or is_local(master)
    home = java_home()
    classes = jvm_archive.found(home) if local else None
    java = (*(QUICK if quick else PATIENT), *(classes.options if classes else ()))
    own = embedded_settings(folder, java) if local else _jvm_settings(folder, java)
    settings = QUERIES | own | ({} if local else _cluster_settings(str(master)))
    settings |= FEW_ROWS if quick else {}
    settings |= {**dict(asked.conf), FIXED: " ".join(dict(asked.conf))}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        os.environ.pop(name, None)
    os.environ["SPARK_HOME"] = str(jvm_archive.SPARK)
    os.environ["JAVA_HOME"] = str(home)
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    for listener in (AccumulatorTCPServer, AccumulatorUnixServer):
        # A JVM that ends in the middle of a message to it is told in a sentence, not by a thread.
        listener.handle_error = lambda *_: None  # type: ignore[method-assign]
    named = {"spark.master": master or "local[*]", "spark.app.name": "fanplan"}
    jvm.launch(settings | named, folder, classes, kept=local and quick and not asked.conf)
    if str(master).startswith(STANDALONE):
        require_accepted(SparkContext._jvm, str(master), settings)
    builder = SparkSession.builder.master(master or "local[*]").appName("fanplan")
    spark = _create(builder, settings, master or "local[*]")
    for name in ASKED_OFTEN:
        setattr(spark._jvm, name, JavaClass(getattr(spark._jvm, name)))
    if not local:
        spark.addArtifacts(str(package_zip(folder)), pyfile=True)
    elif quick:
        threading.Thread(target=rehearse, args=(spark,), daemon=True).start()
    return spark


def rehearse(spark: SparkSession) -> None:
    """A first job, beside the planning of the first query: it loads what all jobs need."""
    with suppress(Exception):
        spark.range(0, 1, 1, 1).mapInArrow(iter, "id long").toArrow()


def _adopted(asked: Asked) -> Session:
    """A session beside the caller's own, on the same Spark: with our settings, theirs untouched."""
    if asked.master or asked.remote:
        what, remedy = "this process has a session made elsewhere", "Stop it, or name no other"
        raise InputError(Problem("Spark", what, remedy))
    context = SparkContext.getOrCreate()
    spark, folder = SparkSession(context).newSession(), claim("spark")
    for key, value in (*QUERIES.items(), *asked.conf):
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    if not is_local(context.master):
        spark.addArtifacts(str(package_zip(folder)), pyfile=True)
    return Session(asked, spark, folder, {}, own=False)


def _connect(remote: str, asked: Asked, folder: Path) -> SparkSession:
    """A session of a Connect server, which has settings of its own for all but queries."""
    chosen = {key: value for key, value in asked.conf if key.startswith("spark.sql.")}
    settings = QUERIES | chosen | {FIXED: " ".join(chosen)}
    spark = _create(SparkSession.builder.remote(remote), settings, remote)
    # A server of our own has the very files of this process at hand.
    if remote != server.address():
        spark.addArtifacts(str(package_zip(folder)), pyfile=True)
    return spark


def _create(builder: SparkSession.Builder, settings: dict[str, str], where: str) -> SparkSession:
    for key, value in settings.items():
        builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        reason = str(error).strip().splitlines()[0]
        raise MachineError(
            Problem(
                without_token(where),
                f"Spark did not start ({reason})",
                "Check the address and the settings",
            )
        ) from error
    finally:
        # PySpark has one builder per process, which remembers a session's options.
        builder._options.clear()


def embedded_settings(folder: Path, java: Sequence[str]) -> dict[str, str]:
    """Settings of a Spark on this machine alone."""
    own = _jvm_settings(folder, java) | _local_settings()
    return own | _executor_env(jvm_ahead.of_workers(folder))


def _jvm_settings(folder: Path, java: Sequence[str]) -> dict[str, str]:
    """Nothing is left in the user's current folder, nothing but errors is printed."""
    levels = folder / "log4j2.properties"
    jvm_ahead.write_new(levels, LOGGING)
    files = f'"-Dlog4j2.configurationFile={levels.as_uri()}" "-Djava.io.tmpdir={folder}"'
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # PySpark would tell the JVM the line of each column that is named, at ten calls for one.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.local.dir": str(folder),
        "spark.driver.defaultJavaOptions": " ".join((files, "-XX:-UsePerfData", *java)),
        **_executor_env(jvm_ahead.ANYWHERE),
    }


def _executor_env(told: Mapping[str, str]) -> dict[str, str]:
    return {f"spark.executorEnv.{name}": value for name, value in told.items()}


def _local_settings() -> dict[str, str]:
    """Sized to the machine."""
    return {
        # A secret of the run: no other program of this machine can talk to its ports.
        "spark.authenticate": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{driver_megabytes(machine_bytes())}m",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        # Spark would register functions for machine learning, with a second of Scala's reflection.
        "spark.sql.extensions.test.loadFromCp": "false",
        "spark.python.daemon.module": "fanplan.data.workers",
    }


def _cluster_settings(master: str) -> dict[str, str]:
    """Executors call back to the address by which this machine reaches the master."""
    return {"spark.driver.host": _reach_master(master)} if master.startswith("spark://") else {}


def machine_bytes() -> int:
    """Memory of the machine, or of the container if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(machine, int(text)) if text.isdigit() else machine


def driver_megabytes(memory: int) -> int:
    """Heap for an embedded Spark: two fifths of the machine, from 1 GB to 31 GB.

    The rest is for Python workers, Arrow buffers and the file cache. Above 31 GB a JVM's pointers
    double in size.
    """
    return min(max(memory * 2 // 5 >> 20, 1 << 10), 31 << 10)


def package_folder() -> Path:
    """Where this process imported Fanplan from."""
    return PACKAGE


def package_zip(folder: Path) -> Path:
    """Fanplan's own modules as a zip for executors: the same bytes for the same sources."""
    root = package_folder()
    target = folder / "fanplan.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(root.rglob("*.py")):
            name = file.relative_to(root.parent).as_posix()
            archive.writestr(zipfile.ZipInfo(name), file.read_bytes())
    return target


def _check_address(master: str | None, remote: str | None) -> None:
    """Fail at once where Spark would try for minutes, and before a session that runs is stopped."""
    if master and remote:
        raise InputError(Problem("--master and --remote", "exclude each other", "Give one of them"))
    if remote and not remote.startswith("sc://"):
        raise InputError(Problem(remote, "is no Spark Connect address", "Write sc://HOST:PORT"))
    if master and not master.startswith(MASTERS):
        raise InputError(Problem(master, "is no Spark master", "Write spark://HOST:PORT"))
    if remote:
        require_connect("--remote")
        _reach_server(remote)
    if master and master.startswith("spark://"):
        _reach_master(master)


def _reach_master(master: str) -> str:
    """This machine's address on the way to the first master that answers."""
    for host in master.removeprefix("spark://").split(","):
        try:
            address = urlsplit(f"//{host}")
            target = (address.hostname or "", address.port or 7077)
            with socket.create_connection(target, timeout=REACH_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except (OSError, ValueError):
            continue
    raise _unreachable(master, "a Spark master")


def require_connect(what: str) -> None:
    """Spark Connect has packages of its own, and an installation may lack them."""
    for name in CONNECT:
        try:
            import_module(name)
        except ImportError:
            remedy = "Run pip install 'fanplan[connect]'"
            raise InputError(Problem(what, f"needs the package {name}", remedy)) from None


def _reach_server(remote: str) -> None:
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        with DefaultChannelBuilder(remote).toChannel() as channel:
            grpc.channel_ready_future(channel).result(timeout=REACH_SECONDS)
    except (grpc.FutureTimeoutError, PySparkException, ValueError) as error:
        raise _unreachable(remote, "a Spark Connect server") from error


def _unreachable(address: str, what: str) -> InputError:
    remedy = f"Start {what} there or correct the address; without one, Spark runs on this machine"
    return InputError(Problem(without_token(address), f"{what} does not answer", remedy))


def without_token(address: str) -> str:
    """An address as others may see it."""
    return address.partition("/;")[0]


def _alive(spark: SparkSession) -> bool:
    """Whether nobody stopped the session behind our back, and its JVM did not die."""
    if hasattr(spark, "is_stopped"):
        return not spark.is_stopped
    return jvm.alive() and SparkContext._active_spark_context is not None


def _on_signals(handlers: Mapping[int, Any]) -> None:
    """Set what Ctrl-C and a request to end do. Only the main thread can."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _handlers() -> dict[int, Any]:
    """What they do now; a request to end only if somebody wants to hear of it."""
    found: dict[int, Any] = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
    if signal.getsignal(signal.SIGTERM) is terminate:
        found[signal.SIGTERM] = terminate
    return found


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C ends a job under way together with its JVM; the next call of ``session`` starts anew.

    Cancelling the job and going on with the same JVM is not dependable: after a call that was
    broken off, py4j now and then fails in the next one, and it logs stack traces.
    """
    Heard.signal = number
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("py4j."):
            Heard.ended_spark = True
            jvm.kill_jvm()
            break
        frame = frame.f_back
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
