"""A stream on NATS JetStream: every message once, by its number, and a gap is an error.

The reader is called as Spark calls it; that Spark keeps its offsets is Spark's.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats_worlds import needs_nats
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from fanplan.core.errors import FanplanError, InputError
from fanplan.data.stream.nats import Place, Range, RangeReader, gaps_told, line_of
from fanplan.systems.nats.servers import server_program
from fanplan.watching.watch import workload_of

pytestmark = needs_nats


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("jetstream")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [server_program(), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield f"nats://127.0.0.1:{port}"
    process.kill()
    process.wait()


async def filled(server: str, stream: str, messages: int, direct: bool = True) -> None:
    import nats

    client = await nats.connect(server, max_reconnect_attempts=60, reconnect_time_wait=0.25)
    js = client.jetstream()
    await js.add_stream(name=stream, subjects=[f"{stream}.>"], allow_direct=direct)
    for number in range(messages):
        data = {"price": number, "time": number / 10}
        await js.publish(f"{stream}.t{number % 3}", json.dumps(data).encode())
    await client.close()


async def deleted(server: str, stream: str, number: int) -> None:
    import nats

    client = await nats.connect(server)
    await client.jetstream().delete_msg(stream, number)
    await client.close()


def test_every_message_is_read_once_however_it_is_divided(server: str) -> None:
    asyncio.run(filled(server, "all", 1_300))
    reader = RangeReader(Place(server, "all"))
    start, end = reader.initialOffset(), reader.latestOffset({"next": 1}, ReadAllAvailable())
    assert (start, end) == ({"next": 1}, {"next": 1_301})
    parts = [Range(1, 1_100), Range(1_100, 1_101), Range(1_101, 1_301)]
    rows = [json.loads(line) for part in parts for _, line in reader.read(part)]
    assert [row["price"] for row in rows] == list(range(1_300))
    assert rows[7] == {"price": 7, "time": 0.7, "bytes": 25, "topic": "all.t1"}
    assert [(p.first, p.end) for p in reader.partitions(start, end)] == [(1, 1_301)]
    assert reader.partitions(end, end) == []
    assert reader.latestOffset({"next": 5}, ReadMaxRows(10)) == {"next": 15}


def test_a_gap_is_an_error(server: str) -> None:
    asyncio.run(filled(server, "gap", 20))
    asyncio.run(deleted(server, "gap", 7))
    reader = RangeReader(Place(server, "gap"))
    with pytest.raises(RuntimeError, match="message 7 of the stream is not there any more"):
        list(reader.read(Range(1, 21)))


def test_a_gap_that_a_task_of_spark_met_is_told_with_a_remedy() -> None:
    said = "[STREAM_FAILED] … RuntimeError: message 7 of the stream is not there any more\n\tat org"
    told = pytest.raises(InputError, match=r"message 7 .* any more\. Plan for what")
    with told, gaps_told("nats://here/desk"):
        raise PySparkException(said)
    with pytest.raises(PySparkException, match="other"), gaps_told("nats://here/desk"):
        raise PySparkException("other")


def test_what_cannot_be_followed_is_refused_with_a_remedy(server: str, tmp_path: Path) -> None:
    asyncio.run(filled(server, "slow", 1, direct=False))
    for place, why in (
        (Place(server, "none"), "has no stream none"),
        (Place(server, "slow"), "does not allow direct access"),
        (Place("nats://127.0.0.1:1", "all"), "does not answer"),
    ):
        with pytest.raises(FanplanError, match=why):
            asyncio.run(place.ends())
    with pytest.raises(InputError, match="does not say who subscribes"):
        workload_of("nats://127.0.0.1:1/all", None)
    assert workload_of("nats://127.0.0.1:1/all", tmp_path) == tmp_path


def test_a_message_is_a_row_whatever_its_data() -> None:
    stamp = "2026-01-02T03:04:05.123456789Z"
    row = json.loads(line_of("a.b", stamp, b"no JSON"))
    assert row == {"topic": "a.b", "bytes": 7, "time": 1767323045.123456}
    change = json.loads(line_of("fanplan.changes", stamp, b'{"topic": "a", "action": "add"}'))
    assert change["topic"] == "a"
