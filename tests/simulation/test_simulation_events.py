"""The queue gives events back in the order of time, priority and sequence, whatever their lines."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.arrays import NONE
from fanplan.simulation.events import SIZE, drop, empty_queue, has_room, put_event, roomier

STEPS = st.lists(
    st.none() | st.tuples(st.integers(0, 5), st.integers(0, 2), *[st.integers(NONE, 2)] * 2),
    max_size=60,
)


@given(STEPS)
def test_events_come_out_in_order_and_none_is_lost(steps: list[Any]) -> None:
    queue = empty_queue(lines=3, room=1)
    waiting: list[tuple[float, int, int]] = []
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is None:
            if waiting:
                event = queue.slots[queue.heap[0]["slot"]]
                assert (event["time"], event["rank"], event["hop"]) == min(waiting)
                waiting.remove(min(waiting))
                drop(queue)
            continue
        time, priority, line, other = step
        if not has_room(queue, 1):
            queue = roomier(queue)
        rank = priority * 1000 + number
        put_event(queue, line, other, float(time), rank, 0, 0, number)
        waiting.append((time, rank, number))
    assert queue.marks[SIZE] == len(waiting)


def test_a_line_needs_one_place_in_the_heap_and_left_slots_are_used_again() -> None:
    queue = empty_queue(lines=1, room=8)
    for number in range(100):
        put_event(queue, 0, NONE, float(number), number, 0, 0, number)
        if number >= 5:
            drop(queue)
        assert queue.marks[SIZE] == 1
    assert queue.heap[0]["time"] == 95
