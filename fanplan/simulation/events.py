"""The queue of events: a binary heap ordered by time, then priority, then sequence.

The sequence is the order in which events were put in, so no two events tie and a run has exactly
one course. Events are records in one array that its owner lets grow.
"""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled

EVENT = np.dtype(
    [
        ("time", np.float64),
        ("rank", np.int64),
        ("hop", np.int64),
        ("message", np.int32),
        ("kind", np.int32),
    ]
)

# The rank of an event: its priority above, its sequence below.
SEQUENCE_BITS = 56


def empty_heap(room: int = 1024) -> np.ndarray:
    """A heap without events."""
    return np.empty(room, EVENT)


@compiled
def roomy(heap: np.ndarray, room: int) -> np.ndarray:
    """The heap, moved to an array of twice the room if it lacks some."""
    if room <= len(heap):
        return heap
    larger = np.empty(max(room, 2 * len(heap)), heap.dtype)
    larger[: len(heap)] = heap
    return larger


@compiled
def push(
    heap: np.ndarray, size: int, time: float, rank: int, kind: int, message: int, hop: int
) -> None:
    """Put in an event as the last of ``size + 1``; there must be room. O(log size)."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if not before(time, rank, heap[above].time, heap[above].rank):
            break
        heap[at] = heap[above]
        at = above
    event = heap[at]
    event.time, event.rank, event.hop = time, rank, hop
    event.message, event.kind = message, kind


@compiled
def drop_first(heap: np.ndarray, size: int) -> None:
    """Take out the first of ``size`` events; read it before. O(log size)."""
    last = size - 1
    time, rank = heap[last].time, heap[last].rank
    at, below = 0, 1
    while below < last:
        right = below + 1
        if right < last and before(
            heap[right].time, heap[right].rank, heap[below].time, heap[below].rank
        ):
            below = right
        if not before(heap[below].time, heap[below].rank, time, rank):
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = heap[last]


@compiled(inline="always")
def before(time: float, rank: int, other_time: float, other_rank: int) -> bool:
    """Whether an event comes before another."""
    return time < other_time or (time == other_time and rank < other_rank)
