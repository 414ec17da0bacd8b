"""A stream of files: Structured Streaming says which ones a batch has, and keeps that for good.

Only the names of files go through the stream; their rows are read as ingest reads them. What a
batch is made of is in the checkpoint before it is worked on, so a batch that was interrupted comes
again as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from fanplan.data import jvm

POLL_SECONDS = 0.2
ONE_LOG_EACH = ("spark.sql.streaming.fileSink.log.compactInterval", str(2**31 - 1))
"""So that Spark does not put what it says of several batches into one file."""
Handle = Callable[[pa.Table, int], None]
Ended = Callable[[], bool]
FILE = "path string, modificationTime timestamp, length long, content binary"


def follow_files(spark: SparkSession, folder: Path, names: tuple[str, ...], most: int) -> DataFrame:
    """The files in folders of these names as they come, whole: they are renamed into place."""
    pattern = f"{folder.absolute()}/{{{','.join(names)}}}"
    reader = spark.readStream.format("binaryFile").schema(FILE)
    return reader.option("maxFilesPerTrigger", most).load(pattern).select("path")


def run_batches(
    stream: DataFrame, checkpoint: Path, handle: Handle, once: bool, ended: Ended
) -> None:
    """Hand over batch after batch, until all are done (``once``) or somebody ended it.

    What the handler raises ends the stream and is raised here.
    """
    writer = stream.writeStream.option("checkpointLocation", str(checkpoint.absolute()))
    now = {"availableNow": True}
    if over_connect(stream.sparkSession):
        stream.sparkSession.conf.set(*ONE_LOG_EACH)
        writer = writer.trigger(**now if once else {"processingTime": "5 seconds"})
        run_remote(writer, checkpoint.with_name("handed").absolute(), handle, ended)
    else:
        writer = writer.trigger(**now if once else {"processingTime": "500 milliseconds"})
        run_here(writer, handle, ended)


def over_connect(spark: SparkSession) -> bool:
    """Only such a session can tell whether it was stopped."""
    return hasattr(spark, "is_stopped")


def is_over(query: StreamingQuery) -> bool:
    """Whether it ends within a moment; raises what ended it."""
    # Spark takes parts of a second too.
    return bool(query.awaitTermination(POLL_SECONDS))  # type: ignore[arg-type]


def run_here(writer: DataStreamWriter, handle: Handle, ended: Ended) -> None:
    """Where the driver is this process, it is called with each batch."""
    raised: list[BaseException] = []

    def guarded(frame: DataFrame, number: int) -> None:
        try:
            handle(frame.toArrow(), number)
        except BaseException as error:
            raised.append(error)
            raise

    # What the handler raises is raised below; py4j would log it, too.
    jvm.hush()
    query = writer.foreachBatch(guarded).start()
    try:
        while not (ended() or is_over(query)):
            pass
    except PySparkException as error:
        raise (raised[0] if raised else error) from None
    finally:
        if query.isActive:
            query.stop()


def run_remote(writer: DataStreamWriter, handed: Path, handle: Handle, ended: Ended) -> None:
    """Over Connect the server writes the rows of each batch into a folder, and they are read there.

    Spark's log of that folder has each batch once and whole. Batches are not waited for by Spark,
    so there are fewer of them; a query that a killed run left behind ends when the next begins.
    """
    query = writer.format("json").option("path", str(handed)).start()
    done, over = -1, False
    try:
        while not (over or ended()):
            over = is_over(query)
            done = hand_over(handed, done, handle)
    finally:
        if query.isActive:
            query.stop()


def hand_over(handed: Path, done: int, handle: Handle) -> int:
    """Hand over all batches that came after ``done``; the files of those that count are removed."""
    log = handed / "_spark_metadata"
    found = [int(path.name) for path in log.glob("*") if path.name.isdigit()]
    for number in sorted(n for n in found if n > done):
        told = (log / str(number)).read_text(encoding="utf-8").splitlines()[1:]
        files = [file_at(json.loads(line)["path"]) for line in told]
        texts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
        rows = [json.loads(line) for text in texts for line in text.splitlines()]
        if rows:
            handle(pa.Table.from_pylist(rows), number)
        for file in files:
            file.unlink(missing_ok=True)
        done = number
    return done


def paths_in(rows: pa.Table) -> list[Path]:
    """The files of a batch, by name: the order of a stream's rows is not the same twice."""
    return sorted(file_at(path) for path in rows["path"].to_pylist())


def file_at(address: str) -> Path:
    return Path(unquote(urlsplit(address).path))
