"""Boxes that have a corner in common, the origin, with four axes: what they fill together.

Such boxes are as a rule many in a cell of space, few of them are not within others, and a sweep
adds them up much faster than boxes anywhere: along the fourth axis from afar, each adds what it has
outside of those before on the other three (Guerreiro et al. 2012 measure dominated space so).
"""

from __future__ import annotations

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled

AXES = 4


@compiled
def add_corner(
    front: Floats, count: int, steps: Floats, x: float, y: float, z: float
) -> tuple[float, int]:
    """What a box with three axes adds to others, and how many are then in ``front``.

    They descend by their third number; ``steps`` is room.
    """
    row = 0
    while row < count and front[row, 2] >= z:
        if front[row, 0] >= x and front[row, 1] >= y:
            return 0.0, count
        row += 1
    return _outside(front, count, steps, x, y, z), _put(front, count, x, y, z)


@compiled
def _outside(front: Floats, count: int, steps: Floats, x: float, y: float, z: float) -> float:
    """The volume of a box outside of others: from above, the area that they leave free shrinks."""
    free, volume, level, used = x * y, 0.0, z, 0
    for row in range(count):
        if front[row, 2] < level:
            volume += (level - front[row, 2]) * free
            level = front[row, 2]
        across, up = min(front[row, 0], x), min(front[row, 1], y)
        if across == x and up == y:
            return volume
        added, used = _add_step(steps, used, across, up)
        free -= added
    return volume + level * free


@compiled
def _add_step(steps: Floats, used: int, across: float, up: float) -> tuple[float, int]:
    """The area that a rectangle adds to a staircase, and how many steps that then has.

    Along the first row of ``steps`` numbers ascend, along the second they descend.
    """
    after = 0
    while after < used and steps[0, after] < across:
        after += 1
    height = steps[1, after] if after < used else 0.0
    if height >= up:
        return 0.0, used
    first, end, area = after, across, 0.0
    while first > 0 and steps[1, first - 1] <= up:
        first -= 1
        area += (end - steps[0, first]) * (up - height)
        end, height = steps[0, first], steps[1, first]
    begin = steps[0, first - 1] if first > 0 else 0.0
    _replace(steps, used, first, after)
    steps[0, first], steps[1, first] = across, up
    return area + (end - begin) * (up - height), used + 1 + first - after


@compiled
def _replace(steps: Floats, used: int, first: int, after: int) -> None:
    """Make one place of ``first:after``."""
    if after == first:
        for row in range(used, first, -1):
            steps[0, row], steps[1, row] = steps[0, row - 1], steps[1, row - 1]
    elif after > first + 1:
        for row in range(after, used):
            to = row - after + first + 1
            steps[0, to], steps[1, to] = steps[0, row], steps[1, row]


@compiled
def _put(front: Floats, count: int, x: float, y: float, z: float) -> int:
    """Put a box at its place, and leave out those within it."""
    kept = 0
    for row in range(count):
        if front[row, 0] > x or front[row, 1] > y or front[row, 2] > z:
            for k in range(3):
                front[kept, k] = front[row, k]
            kept += 1
    at = kept
    while at > 0 and front[at - 1, 2] < z:
        for k in range(3):
            front[at, k] = front[at - 1, k]
        at -= 1
    front[at, 0], front[at, 1], front[at, 2] = x, y, z
    return kept + 1


@compiled
def outside_corners(
    far: Floats, rows: Longs, low: Floats, high: Floats, front: Floats, steps: Floats
) -> float:
    """The volume of a box outside of others, rows of ``far`` that descend by the last number."""
    whole, count = 1.0, 0
    for k in range(AXES):
        whole *= max(0.0, high[k] - low[k])
    if whole == 0.0:
        return 0.0
    free = whole
    for row in rows:
        x, y, z, last = (
            min(far[row, 0], high[0]) - low[0],
            min(far[row, 1], high[1]) - low[1],
            min(far[row, 2], high[2]) - low[2],
            min(far[row, 3], high[3]) - low[3],
        )
        if x > 0.0 and y > 0.0 and z > 0.0 and last > 0.0:
            added, count = add_corner(front, count, steps, x, y, z)
            free -= last * added
    return free
