"""Spark's Python daemon on this machine: workers are forks of it, ready for what tasks do.

Spark's own daemon imports nothing: each worker imports PySpark, numba and our modules for itself,
and pandas, which pyarrow wants once it hands out columns as arrays; and numba gets ready at its
first kernel. That takes longer than most tasks. No import here may
start a thread, since a fork would not have it; pyarrow's allocator has one, and sees to forks.

Still a first task would wait for it. So a command that begins with a JVM begins with a daemon too
(`ahead`), which is ready before there is a task. What Spark then starts as its daemon hands its
streams to the one that stands by, and stays as long as that does.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from contextlib import suppress
from importlib import import_module

from fanplan.core.owned import outlive_parent

PLACE = "FANPLAN_WORKERS"
"""Names the socket of the daemon that stands by."""

IMPORTED = (
    "pandas",
    "pyspark.worker",
    "fanplan.data.ingest.exact",
    "fanplan.data.ingest.regions",
    "fanplan.data.read.formats",
)


def main() -> None:
    """Stand by, if called without a word; Spark names the module of its workers."""
    place = os.environ.get(PLACE, "")
    if len(sys.argv) == 1:
        stand_by(place)
    elif not handed_over(place):
        serve()


def handed_over(place: str) -> bool:
    """Whether a daemon that stood by took the streams of this one; then it has ended by now."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as other:
        other.connect(place)
        socket.send_fds(other, [b"."], [0, 1, 2])
        other.sendall(json.dumps([sys.argv, dict(os.environ)]).encode())
        other.shutdown(socket.SHUT_WR)
        taken = bool(other.recv(1))
        return taken and not other.recv(1)
    return False


def stand_by(place: str) -> None:
    """Get ready, and be the daemon of the first who asks."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        prepare()
        caller, _ = door.accept()
        os.unlink(place)
    streams = socket.recv_fds(caller, 1, 3)[1]
    with caller.makefile("rb") as told:
        sys.argv, environment = json.load(told)
    # From now on it ends with its input, as Spark wants it, and takes its workers along.
    outlive_parent()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ |= environment
    caller.sendall(b".")
    serve()


def serve() -> None:
    """Fork workers until the input ends."""
    from pyspark.daemon import manager

    prepare()
    manager()


def prepare() -> None:
    """Import what tasks use, and load numba and kernels; none of it is garbage for a fork."""
    for name in IMPORTED:
        import_module(name)
    match_one()
    gc.freeze()


def match_one() -> None:
    """One point and one box, as `ingest.joins` has them: numba and the kernels are then loaded."""
    import numpy as np

    from fanplan.boxes import matching

    here, ends = np.zeros(1, np.int64), np.zeros((1, 1))
    lengths = np.ones(1, np.int32)
    index = matching.index_boxes(here, lengths, ends, ends + 1, here, here)
    matching.count_candidates(index, here, ends)
    matching.find_audiences(index, here, ends)


if __name__ == "__main__":
    main()
