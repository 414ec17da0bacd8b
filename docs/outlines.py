"""The outlines of land on maps, from Natural Earth's 1:50m data.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python docs/outlines.py package/land-50m.json

writes `fanplan/page/land.txt` anew. Natural Earth is in the public domain; world-atlas is only its
packaging, as TopoJSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

OUT = Path(__file__).parent.parent / "fanplan" / "page" / "land.txt"
HEAD = """\
# Coarse outlines of land, for the ground of maps: a shape in each line, points as lon,lat.
# From Natural Earth (public domain), 1:50m, made coarser by docs/outlines.py; they are no borders.
"""
COARSE = 0.12
"""Degrees that a line may be off."""
SMALLEST = 0.5
"""Square degrees of the smallest island."""


def rings(topology: dict[str, Any]) -> list[Points]:
    """Every closed line of TopoJSON: arcs are steps on a grid, and ~i is arc i backwards."""
    scale, origin = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = [np.cumsum(arc, axis=0) * scale + origin for arc in topology["arcs"]]
    polygons = [
        polygon for one in topology["objects"]["land"]["geometries"] for polygon in one["arcs"]
    ]
    return [
        np.concatenate([arcs[i] if i >= 0 else arcs[~i][::-1] for i in ring])
        for polygon in polygons
        for ring in polygon
    ]


def unrolled(ring: Points) -> list[Points]:
    """A ring that crosses 180 degrees goes on beyond it, and is there again on the other side.

    One that goes around the Earth is Antarctica, and ends at the pole.
    """
    line = np.column_stack((np.unwrap(ring[:, 0], period=360), ring[:, 1]))
    if abs(line[-1, 0] - line[0, 0]) > 180:
        line = np.concatenate((line, [[line[-1, 0], -90], [line[0, 0], -90], line[0]]))
    turns = [0] + [-360] * bool(line[:, 0].max() > 180) + [360] * bool(line[:, 0].min() < -180)
    return [line + np.array((turn, 0)) for turn in turns]


def coarser(line: Points) -> Points:
    """Fewer points, each left out one within ``COARSE`` of the line (Douglas and Peucker 1973)."""
    if len(line) < 3:
        return line
    off = distances(line[1:-1], line[0], line[-1])
    if off.max() <= COARSE:
        return line[[0, -1]]
    middle = 1 + int(off.argmax())
    return np.concatenate((coarser(line[: middle + 1])[:-1], coarser(line[middle:])))


def distances(points: Points, start: Points, end: Points) -> Points:
    """Of points from the segment between two; a degree of longitude is as long as it is there."""
    narrow = (max(float(np.cos(np.radians(start[1]))), 0.2), 1.0)
    along, away = (end - start) * narrow, (points - start) * narrow
    length = float(along @ along)
    share = np.clip(away @ along / length, 0, 1) if length else np.zeros(len(points))
    off: Points = np.linalg.norm(away - share[:, None] * along, axis=1)
    return off


def area(ring: Points) -> float:
    x, y = ring.T
    return abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1))) / 2


def written(ring: Points) -> str:
    return " ".join(f"{x:.1f},{y:.1f}".replace(".0", "") for x, y in coarser(ring)[:-1])


def main(source: Path) -> None:
    whole = [one for ring in rings(json.loads(source.read_text())) for one in unrolled(ring)]
    found = [ring for ring in whole if area(ring) >= SMALLEST]
    lines = [written(ring) for ring in sorted(found, key=area, reverse=True)]
    OUT.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{OUT.name}: {len(lines)} shapes, {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
