"""A stream of NATS JetStream, through Spark's Python data source API.

An offset is the sequence number of the next message. Every message has to be there: a gap in the
numbers means that the stream has lost or expired some that were not followed yet, and is an error.
A message is a publication on its subject, its data a JSON object with further columns, such as
attributes; messages on the subject `fanplan.changes` are changes of subscriptions.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.folder import aside

CHANGES = "fanplan.changes"
MOST = 1_000_000
"""Messages of a batch."""
RANGE = 50_000
"""Messages that a task reads."""
ASKED = 1_000
"""Messages asked for at once."""
SECONDS = 10.0
SCHEMA = "changes boolean, line string"
GAP = "of the stream is not there any more"


def follow_nats(spark: SparkSession, address: str) -> DataFrame:
    """The messages of ``nats://HOST:PORT/STREAM`` as lines of JSON, each once."""
    parts = urlsplit(address)
    stream = parts.path.strip("/")
    if not stream or "/" in stream:
        raise InputError(Problem(address, "names no stream", "Use nats://HOST:PORT/STREAM"))
    place = Place(f"nats://{parts.netloc}", stream)
    asyncio.run(place.ends())  # Refused at once if nobody answers.
    spark.dataSource.register(JetStream)
    reader = spark.readStream.format(JetStream.name())
    return reader.option("server", place.server).option("stream", stream).load()


@contextmanager
def gaps_told(address: str) -> Iterator[None]:
    """A gap that a task has met is told as such."""
    try:
        yield
    except PySparkException as error:
        gap = re.search(rf"message \d+ {GAP}", str(error))
        if gap is None:
            raise
        remedy = "Plan for what is sent now, and begin a new watch; keep messages for longer"
        raise InputError(Problem(address, gap.group(), remedy)) from error


async def unsaid(_: Exception) -> None:
    """What fails is raised; the library would print it, with a trace, as well."""


@dataclass(frozen=True)
class Place:
    """A stream on a server."""

    server: str
    stream: str

    async def ends(self) -> tuple[int, int]:
        """The first message that is kept, and the one after the last."""
        import nats.errors
        from nats.js.errors import NotFoundError

        try:
            client = await self.connected()
        except (OSError, TimeoutError, nats.errors.Error) as error:
            what = f"does not answer ({error or type(error).__name__})"
            raise MachineError(Problem(self.server, what, "Start it, or name another")) from error
        try:
            about = await client.jetstream().stream_info(self.stream)
        except NotFoundError as error:
            what = f"has no stream {self.stream}"
            raise InputError(Problem(self.server, what, "Name one that it has")) from error
        finally:
            await client.close()
        if not about.config.allow_direct:
            remedy = "Let it: nats stream edit --allow-direct"
            what = f"stream {self.stream} does not allow direct access"
            raise InputError(Problem(self.server, what, remedy))
        return about.state.first_seq, about.state.last_seq + 1

    async def connected(self) -> Any:
        """A connection to a server that answers; one that does not is not waited for."""
        import nats

        once = {"allow_reconnect": False, "max_reconnect_attempts": 1, "reconnect_time_wait": 0.1}
        return await nats.connect(self.server, connect_timeout=SECONDS, error_cb=unsaid, **once)

    async def messages(self, first: int, end: int) -> AsyncIterator[tuple[int, str, str, bytes]]:
        """Number, subject, time and data of all messages from ``first`` to before ``end``."""
        client = await self.connected()
        try:
            while first < end:
                inbox = client.new_inbox()
                replies = await client.subscribe(inbox)
                asked = {"seq": first, "batch": min(ASKED, end - first)}
                where = f"$JS.API.DIRECT.GET.{self.stream}"
                await client.publish(where, json.dumps(asked).encode(), reply=inbox)
                for _ in range(asked["batch"]):
                    message = await replies.next_msg(timeout=SECONDS)
                    about = message.headers or {}
                    number = int(about.get("Nats-Sequence", -1))
                    if number != first:
                        raise RuntimeError(f"message {first} {GAP}")
                    yield number, about["Nats-Subject"], about["Nats-Time-Stamp"], message.data
                    first += 1
                await replies.unsubscribe()
        finally:
            await client.close()


def line_of(subject: str, stamp: str, data: bytes) -> str:
    """A message as a row; what its data says goes before what the server knows."""
    try:
        told = json.loads(data) if data else {}
    except ValueError:
        told = {}
    known = {"time": datetime.fromisoformat(stamp).timestamp(), "bytes": len(data)}
    topic = {} if subject == CHANGES else {"topic": subject}
    return json.dumps(known | (told if isinstance(told, dict) else {}) | topic)


@dataclass
class Range(InputPartition):
    first: int
    end: int


class RangeReader(DataSourceStreamReader):
    """Ranges of sequence numbers."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def initialOffset(self) -> dict[str, int]:
        return {"next": asyncio.run(self.place.ends())[0]}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        end = asyncio.run(self.place.ends())[1]
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["next"] + limit.max_rows)
        return {"next": end}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(MOST)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        edges = [*range(start["next"], end["next"], RANGE), end["next"]]
        return [Range(*pair) for pair in pairwise(edges)]

    def read(self, partition: Any) -> Iterator[tuple[bool, str]]:
        return iter(asyncio.run(self.rows(partition)))

    async def rows(self, part: Range) -> list[tuple[bool, str]]:
        found = self.place.messages(part.first, part.end)
        return [(s == CHANGES, line_of(s, stamp, data)) async for _, s, stamp, data in found]


class JetStream(DataSource):
    @classmethod
    def name(cls) -> str:
        return "fanplan_jetstream"

    def schema(self) -> str | T.StructType:
        return SCHEMA

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: ARG002
        return RangeReader(Place(self.options["server"], self.options["stream"]))


def spooled(rows: pa.Table, spool: Path, number: int) -> list[Path]:
    """The rows of a batch as files, to be read as others are; those of batches before are gone."""
    found = rows.to_pylist()
    paths = []
    for table, changes in (("publications", False), ("changes", True)):
        lines = sorted(row["line"] for row in found if row["changes"] == changes)
        path = spool / table / f"{number}.jsonl"
        for old in path.parent.glob("*.jsonl"):
            old.unlink()
        if lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside(path) as written:
                written.write_text("\n".join(lines) + "\n", encoding="utf-8")
            paths.append(path)
    return paths
