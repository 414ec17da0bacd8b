"""The queue of events: a binary heap ordered by time, then priority, then sequence.

The sequence is the order in which events were put in, so no two events tie and a run has exactly
one course. Most events come in the order in which they are put in, on a link nearly all. They stand
in a line, and only the head of a line is in the heap, which stays small however much is under way.
An event that would come before the last of its line goes into the heap on its own, so the order is
always that of one heap of all events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.core.kernels import bare

ENTRY = np.dtype([("time", np.float64), ("rank", np.int64), ("slot", np.int64)])
EVENT = np.dtype(
    [
        ("time", np.float64),
        ("rank", np.int64),
        ("hop", np.int64),
        ("message", np.int32),
        ("kind", np.int32),
        ("line", np.int64),
        ("after", np.int64),
    ]
)

# The rank of an event: its priority above, its sequence below.
SEQUENCE_BITS = 56


# Positions of the queue's own numbers.
SIZE, USED, SPARE, LAST_SPARE = range(4)


class Queue(NamedTuple):
    """Events in slots. ``after`` is the slot of the next in line, or of the next spare slot.

    ``last`` is the slot of the last event of each line. ``marks`` are the size of the heap, the
    slots ever used, and the first and last spare slot among them. Spare slots are used again in
    the order they were left, so that memory is read in order.
    """

    heap: np.ndarray
    slots: np.ndarray
    last: Longs
    marks: Longs


def empty_queue(lines: int, room: int = 1024) -> Queue:
    """A queue without events."""
    marks = np.array([0, 0, NONE, NONE])
    last = np.full(lines, NONE, np.int64)
    return Queue(np.zeros(room, ENTRY), np.zeros(room, EVENT), last, marks)


def roomier(queue: Queue) -> Queue:
    """The queue in arrays of twice the room."""
    heap, slots = (np.concatenate((old, np.zeros_like(old))) for old in (queue.heap, queue.slots))
    return Queue(heap, slots, queue.last, queue.marks)


@bare
def has_room(queue: Queue, more: int) -> bool:
    """Whether some more events fit in, also if no slot is spare."""
    result: bool = queue.marks[USED] + more <= len(queue.slots)
    return result


@bare
def put_event(
    queue: Queue, line: int, other: int, time: float, rank: int, kind: int, message: int, hop: int
) -> None:
    """Put in an event, in a line if its place is there, else in another line, else in none.

    There must be room. O(log lines), mostly O(1).
    """
    slot = take_slot(queue)
    event = queue.slots[slot]
    event.time, event.rank, event.hop = time, rank, hop
    event.message, event.kind, event.line, event.after = message, kind, NONE, NONE
    if stand(queue, line, slot) or stand(queue, other, slot):
        return
    rise(queue.heap, queue.marks[SIZE], time, rank, slot)
    queue.marks[SIZE] += 1


@bare
def stand(queue: Queue, line: int, slot: int) -> bool:
    """Let an event stand in a line if its place is there; whether it is behind another."""
    slots = queue.slots
    event = slots[slot]
    if line == NONE or event.line != NONE:
        return False
    end = queue.last[line]
    if end != NONE and before(event.time, event.rank, slots[end].time, slots[end].rank):
        return False
    event.line = line
    queue.last[line] = slot
    if end == NONE:
        return False
    slots[end].after = slot
    return True


@bare
def take_slot(queue: Queue) -> int:
    marks = queue.marks
    slot: int = marks[SPARE]
    if slot == NONE:
        slot = marks[USED]
        marks[USED] += 1
        return slot
    marks[SPARE] = queue.slots[slot].after
    if marks[SPARE] == NONE:
        marks[LAST_SPARE] = NONE
    return slot


@bare
def leave_slot(queue: Queue, slot: int) -> None:
    marks = queue.marks
    queue.slots[slot].after = NONE
    if marks[LAST_SPARE] == NONE:
        marks[SPARE] = slot
    else:
        queue.slots[marks[LAST_SPARE]].after = slot
    marks[LAST_SPARE] = slot


@bare
def drop(queue: Queue) -> None:
    """Take out the first event; the next of its line takes its place. O(log lines)."""
    heap, slots, marks = queue.heap, queue.slots, queue.marks
    slot = heap[0].slot
    after, line = slots[slot].after, slots[slot].line
    if after != NONE:
        sink(heap, marks[SIZE], slots[after].time, slots[after].rank, after)
    else:
        if line != NONE:
            queue.last[line] = NONE
        marks[SIZE] -= 1
        end = heap[marks[SIZE]]
        sink(heap, marks[SIZE], end.time, end.rank, end.slot)
    leave_slot(queue, slot)


@bare
def rise(heap: np.ndarray, at: int, time: float, rank: int, slot: int) -> None:
    """Put an entry at a free position of the heap and move it up to its place."""
    while at > 0:
        above = (at - 1) >> 1
        if not before(time, rank, heap[above].time, heap[above].rank):
            break
        heap[at] = heap[above]
        at = above
    heap[at].time, heap[at].rank, heap[at].slot = time, rank, slot


@bare
def sink(heap: np.ndarray, size: int, time: float, rank: int, slot: int) -> None:
    """Put an entry at the top of a heap, in place of the first, and move it down to its place."""
    at, below = 0, 1
    while below < size:
        right = below + 1
        if right < size and before(
            heap[right].time, heap[right].rank, heap[below].time, heap[below].rank
        ):
            below = right
        if not before(heap[below].time, heap[below].rank, time, rank):
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at].time, heap[at].rank, heap[at].slot = time, rank, slot


@bare
def before(time: float, rank: int, other_time: float, other_rank: int) -> bool:
    """Whether an event comes before another."""
    return time < other_time or (time == other_time and rank < other_rank)
