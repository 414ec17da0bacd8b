"""Brokers where they are on Earth, on coarse outlines of land that are shipped along."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from markupsafe import Markup

from fanplan.core.arrays import Floats
from fanplan.page.network import WIDTH, Ground
from fanplan.page.svg import svg_point, tag

LEAST_SPAN = 10.0
"""Degrees that a map has at least: outlines are coarse."""
ROOM = 0.12
"""Of a map around the brokers, as a share of what they span."""
TALLEST = 0.75
"""The height of a map as a share of its width, at most."""


def ground_of(lat: Sequence[float], lon: Sequence[float]) -> Ground:
    """Places of brokers and the land around them: degrees of the middle latitude are true."""
    spots = np.stack((np.array(lon, np.float64), np.array(lat, np.float64)), axis=1)
    low, high = spots.min(axis=0), spots.max(axis=0)
    middle = (low + high) / 2
    shrink = max(float(np.cos(np.radians(middle[1]))), 0.2)
    span = np.maximum((high - low) * (1 + 2 * ROOM), LEAST_SPAN)
    # As wide as it must be for its height: too tall a map gets sea at its sides.
    across = max(span[0] * shrink, span[1] / TALLEST)
    scale = WIDTH / across
    height = max(span[1] * scale, 0.4 * WIDTH)

    def at(points: Floats) -> Floats:
        placed: Floats = (points - middle) * (scale * shrink, -scale) + (WIDTH / 2, height / 2)
        return placed

    shapes = [thinned(at(shape), height) for shape in land()]
    inside = [shape for shape in shapes if meets(shape, height)]
    ways = "".join(f"M{'L'.join(map(svg_point, shape))}Z" for shape in inside)
    beneath = tag("path", d=ways, class_="land", fill_rule="evenodd") if ways else Markup("")
    return Ground(at(spots), height, beneath)


def thinned(shape: Floats, height: float) -> Floats:
    """A shape to a pixel; what lies more than a map's size away is moved there, out of sight."""
    size = np.array((WIDTH, height))
    near: Floats = np.rint(np.clip(shape, -size, 2 * size)).astype(np.float64)
    return near[np.any(near != np.roll(near, 1, axis=0), axis=1)]


def meets(shape: Floats, height: float) -> bool:
    """Whether something of a shape may be on the map."""
    if not len(shape):
        return False
    low, high = shape.min(axis=0), shape.max(axis=0)
    return bool(low[0] < WIDTH and high[0] > 0 and low[1] < height and high[1] > 0)


@cache
def land() -> tuple[Floats, ...]:
    """Outlines as rows of longitude and latitude; one inside another is water."""
    lines = files("fanplan.page").joinpath("land.txt").read_text(encoding="utf-8").splitlines()
    return tuple(
        np.array([point.split(",") for point in line.split()], np.float64)
        for line in lines
        if line and not line.startswith("#")
    )
