"""Unions of boxes, exact in any dimension: their volume, and whether they hold another box."""

from __future__ import annotations

import numpy as np

from fanplan.boxes.corners import AXES, add_corner, outside_corners
from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.core.vectors import EIGHT, none_greater, put_greater

FEW = 48
"""Boxes whose union is found by clipping; space is cut until no part has more."""

LOOSE = 4
"""Boxes of a cell away from its corner whose common parts are looked up one by one."""


@compiled
def union_volume(lo: Floats, hi: Floats) -> float:
    """Volume that half-open boxes fill together: one row per box, one column per axis.

    Without axes every box is 1.
    """
    return volume_of(lo, hi, _by_size(lo, hi))


@compiled
def _by_size(lo: Floats, hi: Floats) -> Longs:
    """Boxes from the largest to the smallest."""
    size = np.empty(len(lo))
    for row in range(len(lo)):
        size[row] = _volume(lo, hi, row)
    return np.argsort(-size)


@compiled
def volume_of(lo: Floats, hi: Floats, rows: Longs) -> float:
    """Volume that some boxes fill together; quicker if the large ones come first."""
    if len(rows) == 0:
        return 0.0
    low, high = _largest_of(lo, hi, rows)
    return union_of_largest(low, high, np.arange(len(low)))


@compiled
def _largest_of(lo: Floats, hi: Floats, rows: Longs) -> tuple[Floats, Floats]:
    """Boxes that fill the same and of which none lies within one before it.

    Slabs, which reach through all boxes on all axes but one, come first; those of an axis that
    meet are one. A box that holds another is looked at sooner for the next.
    """
    axes, parts = lo.shape[1], _parts(lo)
    ends = np.empty(((len(rows) + axes + 1) * parts, EIGHT))
    slabs = _put_slabs(lo, hi, rows, ends, parts)
    kept, count = np.arange(slabs + len(rows)), slabs
    for box, row in enumerate(rows, slabs):
        _put_ends(lo, hi, row, ends, parts, box)
        at = 0
        while at < count and not _within(ends, parts, box, kept[at]):
            at += 1
        if at < count:
            kept[at], kept[at // 2] = kept[at // 2], kept[at]
        elif _size(ends, parts, box) > 0.0:
            kept[count], count = box, count + 1
    return _sides(ends, parts, np.sort(kept[:count]), axes)


@compiled
def _put_slabs(lo: Floats, hi: Floats, rows: Longs, ends: Floats, parts: int) -> int:
    """Put the first slab of each axis, as long as those after it that it meets; their number."""
    low, high = _hull(lo, hi, rows)
    slab, count = np.full(lo.shape[1] + 1, -1), 0
    for row in rows:
        axis = _slab_axis(lo, hi, row, low, high)
        if axis >= 0 and slab[axis] < 0:
            _put_ends(lo, hi, row, ends, parts, count)
            slab[axis], count = count, count + 1
        elif 0 <= axis < lo.shape[1]:
            at, column = slab[axis] * parts + axis // 4, axis % 4
            begin, end = ends[at, column], -ends[at, column + 4]
            if lo[row, axis] <= end and begin <= hi[row, axis]:
                ends[at, column] = min(begin, lo[row, axis])
                ends[at, column + 4] = -max(end, hi[row, axis])
    return count


@compiled
def _slab_axis(lo: Floats, hi: Floats, row: int, low: Floats, high: Floats) -> int:
    """The axis on which alone a box has ends inside a part, the number of axes if there is none,
    or −1 if there are several or the box is empty."""
    axis = len(low)
    for k in range(len(low)):
        if lo[row, k] >= hi[row, k]:
            return -1
        if lo[row, k] > low[k] or hi[row, k] < high[k]:
            if axis < len(low):
                return -1
            axis = k
    return axis


@compiled
def _hull(lo: Floats, hi: Floats, rows: Longs) -> tuple[Floats, Floats]:
    """The smallest box that holds some boxes."""
    low, high = lo[rows[0]].copy(), hi[rows[0]].copy()
    for row in rows[1:]:
        for k in range(len(low)):
            low[k], high[k] = min(low[k], lo[row, k]), max(high[k], hi[row, k])
    return low, high


@compiled
def _sides(ends: Floats, parts: int, boxes: Longs, axes: int) -> tuple[Floats, Floats]:
    """The low and the high ends of boxes, as they were put."""
    low, high = np.empty((len(boxes), axes)), np.empty((len(boxes), axes))
    for row, box in enumerate(boxes):
        for k in range(axes):
            low[row, k] = ends[box * parts + k // 4, k % 4]
            high[row, k] = -ends[box * parts + k // 4, k % 4 + 4]
    return low, high


@compiled
def union_of_largest(lo: Floats, hi: Floats, rows: Longs) -> float:
    """The same for boxes of which none lies within another."""
    if len(rows) <= FEW:
        return _few(lo, hi, rows, 0)
    axes, factor = _axes_apart(lo, hi, rows)
    if len(axes) > AXES:
        return _filled_part(lo, hi, rows, *_hull(lo, hi, rows))
    return factor * _filled_around(_reaches(lo, hi, rows, axes), len(axes))


@compiled
def _axes_apart(lo: Floats, hi: Floats, rows: Longs) -> tuple[Longs, float]:
    """The axes on which boxes differ, and how large they are on the others.

    First those on which most are as wide as all together: few boxes differ much there, so that
    fronts stay small.
    """
    axes, count, factor = np.empty(lo.shape[1], np.int64), 0, 1.0
    for k in range(lo.shape[1]):
        at = 1
        while (
            at < len(rows)
            and lo[rows[at], k] == lo[rows[0], k]
            and hi[rows[at], k] == hi[rows[0], k]
        ):
            at += 1
        if at < len(rows):
            axes[count], count = k, count + 1
        else:
            factor *= hi[rows[0], k] - lo[rows[0], k]
    low, high = _hull(lo, hi, rows)
    narrow = np.zeros(count)
    for at, axis in enumerate(axes[:count]):
        for row in rows:
            narrow[at] += lo[row, axis] > low[axis] or hi[row, axis] < high[axis]
    return axes[:count][np.argsort(narrow)], factor


@compiled
def _reaches(lo: Floats, hi: Floats, rows: Longs, axes: Longs) -> Floats:
    """How far boxes reach down and up on some axes from a point that most of them hold.

    The last of four axes are those; on the others boxes reach up by 1.
    """
    reach = np.zeros((len(rows), AXES, 2))
    reach[:, :, 1] = 1.0
    for k, axis in enumerate(axes):
        low, high = lo[rows[0], axis], hi[rows[0], axis]
        for row in rows[1:]:
            if max(low, lo[row, axis]) < min(high, hi[row, axis]):
                low, high = max(low, lo[row, axis]), min(high, hi[row, axis])
        middle, to = (low + high) / 2, AXES - len(axes) + k
        for at, row in enumerate(rows):
            reach[at, to, 0], reach[at, to, 1] = middle - lo[row, axis], hi[row, axis] - middle
    return reach


@compiled
def _filled_around(reach: Floats, axes: int) -> float:
    """What boxes fill around a point: the sum over cells, of which each has a side of each axis."""
    volume, count = 0.0, len(reach)
    near, far = np.empty((count, AXES)), np.empty((count, AXES))
    front, steps = np.empty((count, 3)), np.empty((2, count + 1))
    orders = np.argsort(-reach[:, -1, 0]), np.argsort(-reach[:, -1, 1])
    first = 1 << (AXES - axes)
    for cell in range(first - 1, 1 << AXES, first):
        order = orders[1] if cell >> (AXES - 1) else orders[0]
        volume += _filled_cell(reach, cell, order, (near, far, front, steps))
    return volume


@compiled
def _filled_cell(
    reach: Floats, cell: int, order: Longs, room: tuple[Floats, Floats, Floats, Floats]
) -> float:
    """What boxes fill of a cell: first those that hold its corner, then the loose ones."""
    near, far, front, steps = room
    rows, loose = np.empty(len(reach), np.int64), np.empty(len(reach), np.int64)
    volume, count, kept, others = 0.0, 0, 0, 0
    for row in order:
        place = _place(reach, row, cell, near, far)
        if place > 0.0:
            loose[others], others = row, others + 1
        elif place == 0.0:
            added, count = add_corner(front, count, steps, far[row, 0], far[row, 1], far[row, 2])
            if added > 0.0:
                volume += far[row, 3] * added
                rows[kept], kept = row, kept + 1
    loose = _not_held(far, rows[:kept], loose[:others])
    if len(loose) > LOOSE:
        both = np.append(rows[:kept], loose)
        return _in_parts(near[both], far[both])
    return volume + _beside(near, far, rows[:kept], loose, front, steps)


@compiled
def _place(reach: Floats, row: int, cell: int, near: Floats, far: Floats) -> float:
    """Put the ends of a box in a cell; 0 if it holds the corner, below 0 if it is not there."""
    apart = 0.0
    for k in range(AXES):
        side = cell >> k & 1
        far[row, k] = reach[row, k, side]
        if far[row, k] <= 0.0:
            return -1.0
        near[row, k] = max(0.0, -reach[row, k, 1 - side])
        apart = max(apart, near[row, k])
    return apart


@compiled
def _not_held(far: Floats, rows: Longs, loose: Longs) -> Longs:
    """Boxes that do not lie within one of those at the corner."""
    count = 0
    for box in loose:
        at, held = 0, False
        while at < len(rows) and not held:
            held, at = _reaches_as_far(far, rows[at], box), at + 1
        if not held:
            loose[count], count = box, count + 1
    return loose[:count]


@compiled
def _reaches_as_far(far: Floats, a: int, b: int) -> bool:
    k = 0
    while k < AXES and far[a, k] >= far[b, k]:
        k += 1
    return k == AXES


@compiled
def _beside(
    near: Floats, far: Floats, rows: Longs, loose: Longs, front: Floats, steps: Floats
) -> float:
    """What loose boxes add to those at the corner, by inclusion and exclusion of their common
    parts, each of which is cut as a box from the corner."""
    volume, low, high = 0.0, np.empty(AXES), np.empty(AXES)
    for some in range(1, 1 << len(loose)):
        sign = -1.0
        low[:], high[:] = 0.0, np.inf
        for at, box in enumerate(loose):
            if some >> at & 1:
                sign = -sign
                for k in range(AXES):
                    low[k], high[k] = max(low[k], near[box, k]), min(high[k], far[box, k])
        volume += sign * outside_corners(far, rows, low, high, front, steps)
    return volume


@compiled
def _in_parts(lo: Floats, hi: Floats) -> float:
    """The union of a cell's boxes, wherever they lie."""
    rows = _by_size(lo, hi)
    return (
        _few(lo, hi, rows, 0)
        if len(rows) <= FEW
        else _filled_part(lo, hi, rows, *_hull(lo, hi, rows))
    )


@compiled
def added_volume(lo: Floats, hi: Floats, rows: Longs) -> float:
    """What the last of some boxes adds to the others, of which none lies within another."""
    if len(rows) <= FEW:
        return _few(lo, hi, rows, len(rows) - 1)
    last = rows[-1]
    return _volume(lo, hi, last) - _filled_part(lo, hi, rows[:-1], lo[last], hi[last])


@compiled
def _filled_part(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> float:
    """Volume of the part from ``low`` to ``high`` that boxes fill.

    Cuts space until a part has few boxes, or slabs only, which reach through it on all axes but
    one (Overmars & Yap 1991; the choice of cuts is ours). About O(n^(d/2)) for n boxes with d
    axes that do not lie within each other.
    """
    inside = np.empty(len(rows), np.int64)
    count = 0
    for row in rows:
        reach = _reach(lo, hi, row, low, high)
        if reach == 0:
            return float(np.prod(high - low))
        if reach > 0:
            inside[count] = row
            count += 1
    inside = _largest(lo, hi, inside[:count], low, high)
    if len(inside) <= FEW:
        low_ends, high_ends = np.maximum(lo[inside], low), np.minimum(hi[inside], high)
        return _few(low_ends, high_ends, _by_size(low_ends, high_ends), 0)
    axis, at = _cut(lo, hi, inside, low, high)
    if axis < 0:
        return _slabs(lo, hi, inside, low, high)
    middle_low, middle_high = low.copy(), high.copy()
    middle_high[axis] = middle_low[axis] = at
    left = _filled_part(lo, hi, inside, low, middle_high)
    return left + _filled_part(lo, hi, inside, middle_low, high)


@compiled
def _reach(lo: Floats, hi: Floats, row: int, low: Floats, high: Floats) -> int:
    """Number of axes on which a box does not reach through a part; −1 if it lies outside."""
    ends = 0
    for k in range(len(low)):
        if lo[row, k] >= high[k] or hi[row, k] <= low[k]:
            return -1
        ends += lo[row, k] > low[k] or hi[row, k] < high[k]
    return ends


@compiled
def _volume(lo: Floats, hi: Floats, row: int) -> float:
    volume = 1.0
    for k in range(lo.shape[1]):
        volume *= hi[row, k] - lo[row, k]
    return volume


@compiled
def _few(lo: Floats, hi: Floats, rows: Longs, begin: int) -> float:
    """What a few boxes, from number ``begin`` on, add to those before."""
    count, parts = len(rows), _parts(lo)
    ends = np.empty(((count * (count + 1) // 2 + 2) * parts, EIGHT))
    for r in range(count):
        _put_ends(lo, hi, rows[r], ends, parts, r)
    return _by_clipping(ends, parts, count, begin)


@compiled
def _parts(lo: Floats) -> int:
    """How many rows of eight numbers a box takes."""
    axes: int = lo.shape[1]
    return max(1, (axes + 3) // 4)


@compiled
def _put_ends(lo: Floats, hi: Floats, row: int, ends: Floats, parts: int, box: int) -> None:
    """A box becomes rows of four low ends and four negative high ends.

    What two boxes share has the greater of each, and one that holds another has none greater. Axes
    that are missing are [0, 1).
    """
    for k in range(4 * parts):
        at, column = box * parts + k // 4, k % 4
        ends[at, column] = lo[row, k] if k < lo.shape[1] else 0.0
        ends[at, column + 4] = -hi[row, k] if k < lo.shape[1] else -1.0


@compiled
def _by_clipping(ends: Floats, parts: int, count: int, begin: int) -> float:
    """Volume that boxes ``begin:count`` add to those before them; the rows after are room.

    Each box adds its volume less what those before it fill of it (While et al. 2012, for corners
    of dominated space). Clipped to it they are a list of their own, one level deeper. With large
    boxes first, most of a list lies within others when it is clipped to a small one.
    """
    first, end, box = np.zeros((3, count + 1), np.int64)
    filled = np.zeros(count + 1)
    level, box[0], end[0] = 0, begin, count
    while level > 0 or box[0] < end[0]:
        if box[level] == end[level]:
            level -= 1
            filled[level] -= filled[level + 1]
            continue
        at, start, top = box[level], first[level], end[level]
        box[level] += 1
        filled[level] += _size(ends, parts, at)
        if at - start == 1:
            _share(ends, parts, start, at, top)
            filled[level] -= _size(ends, parts, top)
        elif at - start == 2:
            filled[level] -= _filled_by_two(ends, parts, start, at, top)
        elif at > start:
            for other in range(start, at):
                top = _clip(ends, parts, other, at, end[level], top)
            level += 1
            first[level] = box[level] = end[level - 1]
            end[level], filled[level] = top, 0.0
    result: float = filled[0]
    return result


@compiled
def _filled_by_two(ends: Floats, parts: int, start: int, at: int, top: int) -> float:
    """What boxes ``start`` and ``start + 1`` fill of another."""
    _share(ends, parts, start, at, top)
    _share(ends, parts, start + 1, at, top + 1)
    filled = _size(ends, parts, top) + _size(ends, parts, top + 1)
    _share(ends, parts, top, top + 1, top)
    return filled - _size(ends, parts, top)


@compiled
def _share(ends: Floats, parts: int, a: int, b: int, to: int) -> None:
    """Box ``to`` becomes what two boxes share, which may have sides below 0."""
    for part in range(parts):
        put_greater(ends, a * parts + part, b * parts + part, to * parts + part)


@compiled
def _size(ends: Floats, parts: int, box: int) -> float:
    """The volume of a box; 0 if a side is below 0."""
    volume = 1.0
    for row in range(box * parts, (box + 1) * parts):
        for k in range(4):
            volume *= max(0.0, -ends[row, k + 4] - ends[row, k])
    return volume


@compiled
def _clip(ends: Floats, parts: int, a: int, b: int, first: int, top: int) -> int:
    """Add what a has of b to the list of boxes ``first:top`` unless one holds it; its new end.

    Boxes of the list that lie within the new one are taken out.
    """
    _share(ends, parts, a, b, top)
    if not _size(ends, parts, top) > 0.0:
        return top
    row = first
    while row < top:
        if _within(ends, parts, top, row):
            return top
        if _within(ends, parts, row, top):
            top -= 1
            _share(ends, parts, top, top, row)
            _share(ends, parts, top + 1, top + 1, top)
        else:
            row += 1
    return top + 1


@compiled
def _within(ends: Floats, parts: int, a: int, b: int) -> bool:
    """Whether box a lies within box b."""
    part = 0
    while part < parts and none_greater(ends, b * parts + part, a * parts + part):
        part += 1
    return part == parts


@compiled
def holds(lo: Floats, hi: Floats, a: int, b: int) -> bool:
    """Whether box b lies within box a."""
    axes, k = lo.shape[1], 0
    while k < axes and lo[a, k] <= lo[b, k] and hi[b, k] <= hi[a, k]:
        k += 1
    result: bool = k == axes
    return result


@compiled
def _largest(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> Longs:
    """The boxes that lie within no other box, as far as a part shows; of equal ones the first."""
    kept = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        hidden = False
        for j in range(len(rows)):
            if i != j and _within_part(lo, hi, rows[i], rows[j], low, high):
                hidden = j < i or not _within_part(lo, hi, rows[j], rows[i], low, high)
                if hidden:
                    break
        if not hidden:
            kept[count] = rows[i]
            count += 1
    return kept[:count]


@compiled
def _within_part(lo: Floats, hi: Floats, a: int, b: int, low: Floats, high: Floats) -> bool:
    for k in range(len(low)):
        if max(lo[a, k], low[k]) < lo[b, k] or min(hi[a, k], high[k]) > hi[b, k]:
            return False
    return True


@compiled
def _cut(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> tuple[int, float]:
    """The axis with most ends of boxes that are no slabs, and the middle one; −1 if all are."""
    count = np.zeros(len(low), np.int64)
    ends = np.empty((len(low), 2 * len(rows)))
    for row in rows:
        if _reach(lo, hi, row, low, high) > 1:
            for k in range(len(low)):
                for end in (lo[row, k], hi[row, k]):
                    if low[k] < end < high[k]:
                        ends[k, count[k]] = end
                        count[k] += 1
    if count.sum() == 0:
        return -1, 0.0
    axis = int(np.argmax(count))
    middle: float = np.sort(ends[axis, : count[axis]])[count[axis] // 2]
    return axis, middle


@compiled
def _slabs(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> float:
    """What slabs fill: all but the product of the lengths that they leave free on each axis."""
    free = 1.0
    for k in range(len(low)):
        here = np.array([r for r in rows if lo[r, k] > low[k] or hi[r, k] < high[k]], np.int64)
        left, reached = 0.0, low[k]
        for r in here[np.argsort(np.array([lo[r, k] for r in here], np.float64))]:
            left += max(0.0, lo[r, k] - reached)
            reached = max(reached, hi[r, k])
        free *= left + max(0.0, high[k] - reached)
    return float(np.prod(high - low)) - free


@compiled
def union_holds(low: Floats, high: Floats, lo: Floats, hi: Floats) -> bool:
    """Whether every point of [low, high) lies in one of the boxes, of which each line is one.

    Only coordinates are compared. What the first box leaves is cut into pieces, which the next
    ones must hold. It ends at the first piece that no box meets.
    """
    axes = len(low)
    rest_lo, rest_hi = np.empty((8, axes)), np.empty((8, axes))
    box = np.zeros(8, np.int64)
    rest_lo[0], rest_hi[0], pieces = low, high, 1
    while pieces:
        pieces -= 1
        piece_lo, piece_hi = rest_lo[pieces].copy(), rest_hi[pieces].copy()
        k = box[pieces]
        while k < len(lo) and not boxes_meet(piece_lo, piece_hi, lo[k], hi[k]):
            k += 1
        if k == len(lo):
            return False
        if pieces + 2 * axes > len(box):
            rest_lo, rest_hi = _doubled(rest_lo, axes), _doubled(rest_hi, axes)
            box = np.append(box, np.zeros(len(rest_lo) - len(box), np.int64))
        for axis in range(axes):
            if piece_lo[axis] < lo[k, axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_hi[pieces, axis] = piece_lo[axis] = lo[k, axis]
                pieces += 1
            if hi[k, axis] < piece_hi[axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_lo[pieces, axis] = piece_hi[axis] = hi[k, axis]
                pieces += 1
    return True


@compiled
def boxes_meet(a_lo: Floats, a_hi: Floats, b_lo: Floats, b_hi: Floats) -> bool:
    axis = 0
    while axis < len(a_lo) and a_lo[axis] < b_hi[axis] and b_lo[axis] < a_hi[axis]:
        axis += 1
    return axis == len(a_lo)


@compiled
def _doubled(rows: Floats, more: int) -> Floats:
    """The same rows with room for at least as many, and more."""
    room = np.empty((2 * len(rows) + 2 * more, rows.shape[1]))
    room[: len(rows)] = rows
    return room
