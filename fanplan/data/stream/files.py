"""A stream of files: Structured Streaming says which ones a batch has, and keeps that for good.

Only the names of files go through the stream; their rows are read as ingest reads them. What a
batch is made of is in the checkpoint before it is worked on, so a batch that was interrupted comes
again as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 1
FILE = "path string, modificationTime timestamp, length long, content binary"


def follow_files(spark: SparkSession, folder: Path, names: tuple[str, ...], most: int) -> DataFrame:
    """The files in folders of these names as they come, whole: they are renamed into place."""
    pattern = f"{folder.absolute()}/{{{','.join(names)}}}"
    reader = spark.readStream.format("binaryFile").schema(FILE)
    return reader.option("maxFilesPerTrigger", most).load(pattern).select("path")


def run_batches(
    stream: DataFrame,
    checkpoint: Path,
    handle: Callable[[DataFrame, int], None],
    once: bool,
    ended: Callable[[], bool],
) -> None:
    """Hand over batch after batch, until all are done (``once``) or somebody ended it.

    What the handler raises ends the stream and is raised here.
    """
    raised: list[BaseException] = []

    def guarded(frame: DataFrame, number: int) -> None:
        try:
            handle(frame, number)
        except BaseException as error:
            raised.append(error)
            raise

    writer = stream.writeStream.option("checkpointLocation", str(checkpoint.absolute()))
    trigger = {"availableNow": True} if once else {"processingTime": "500 milliseconds"}
    query = writer.foreachBatch(guarded).trigger(**trigger).start()
    try:
        wait(query, ended)
    except PySparkException as error:
        raise (raised[0] if raised else error) from None
    finally:
        if query.isActive:
            query.stop()


def wait(query: StreamingQuery, ended: Callable[[], bool]) -> None:
    while not ended():
        if query.awaitTermination(POLL_SECONDS):
            return


def paths_in(frame: DataFrame) -> list[Path]:
    """The files of a batch, by name: the order of a stream's rows is not the same twice."""
    return sorted(Path(unquote(urlsplit(row["path"]).path)) for row in frame.collect())
