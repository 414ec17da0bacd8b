"""The interest matrix as a picture: flows across, subscribers down, before and after planning."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fanplan.core.arrays import Longs
from fanplan.data.interest import take_audiences
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation, Sides
from fanplan.page.content import Picture
from fanplan.page.numbers import number
from fanplan.page.png import inline, png
from fanplan.page.svg import tag

WIDTH, HEIGHT = 2000, 500
"""Most pixels: enough for a wide screen; beyond, a pixel stands for several pairs."""
COARSE = 600
"""A picture with fewer columns is shown with sharp pixels instead of blurred ones."""
LEVELS = 6
"""Of each colour in a pixel: 6³ colours fit into the palette of a PNG."""
WANTED, UNICAST, UNWANTED = (46, 125, 206), (232, 153, 30), (214, 64, 86)
"""As in the page's style, which has them for legends."""
PASSES = 30
"""Of averaging; the order hardly changes after a few."""

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Pixels:
    """Which pixel each flow and each subscriber falls into, and how many pixels there are."""

    column: Longs
    row: Longs
    width: int
    height: int

    def count(self, pairs: Sides) -> Counts:
        """Pairs of flow and subscriber in each pixel."""
        places = self.row[pairs.right] * self.width + self.column[pairs.left]
        counted = np.bincount(places, minlength=self.width * self.height)
        return counted.reshape(self.height, self.width).astype(np.float64)

    def received(self, decisions: Decisions) -> Counts:
        """The same for what channels bring: a block for each channel, never its single pairs."""
        total = np.zeros((self.height, self.width))
        flows, members = decisions.channels.sides(), decisions.members.sides()
        order = np.argsort(flows.right, kind="stable")
        carried = np.searchsorted(flows.right[order], np.arange(len(decisions.members.starts)))
        for channel in range(len(decisions.members.starts) - 1):
            own = flows.left[order[carried[channel] : carried[channel + 1]]]
            joined = members.right[slice(*decisions.members.starts[channel : channel + 2])]
            columns, across = np.unique(self.column[own], return_counts=True)
            rows, down = np.unique(self.row[joined], return_counts=True)
            total[np.ix_(rows, columns)] += np.outer(down, across)
        return total


def matrix_pictures(name: str, truth: ChannelTruth, decisions: Decisions) -> list[Picture]:
    """As flows and subscribers come, and in the order of channels with what the plan does."""
    flows, people = len(truth.names), len(truth.subscribers)
    wanted, unicast = audience_pairs(truth), decisions.unicast.sides()
    before = cells(np.arange(flows), np.arange(people))
    after = cells(*matrix_order(decisions, flows, people))
    counted, direct = after.count(wanted), after.count(unicast)
    by_channel = np.maximum(counted - direct, 0)
    in_vain = np.maximum(after.received(decisions) - by_channel, 0)
    size = f"{number(flows)} flows across, {number(people)} subscribers down."
    nothing = np.zeros((before.height, before.width))
    return [
        Picture(
            f"{name}-before",
            "Interest before: who wants what",
            image(before, before.count(wanted), nothing, nothing, flows * people, "before"),
            f"{size} Both in the order of their names.",
            [("wanted", "wanted")],
            "png",
            wide=True,
        ),
        Picture(
            f"{name}-after",
            "Interest after: who receives what",
            image(after, by_channel, direct, in_vain, flows * people, "after"),
            f"{size} Flows stand by channel, unicast at the right; subscribers who share "
            "channels stand together.",
            [
                ("wanted", "wanted, by a channel"),
                ("unicast", "wanted, by unicast"),
                ("unwanted", "unwanted"),
            ],
            "png",
            wide=True,
        ),
    ]


def cells(column: Longs, row: Longs) -> Pixels:
    """Positions in order, as pixels."""
    width, height = min(len(column), WIDTH), min(len(row), HEIGHT)
    return Pixels(
        column * width // max(len(column), 1), row * height // max(len(row), 1), width, height
    )


def matrix_order(decisions: Decisions, flows: int, people: int) -> tuple[Longs, Longs]:
    """The position of each flow and each subscriber, so that what belongs together is together.

    Channels and subscribers are moved to the mean place of those they belong to, again and again
    (reciprocal averaging). Subscribers without a channel come last, as do flows without one.
    """
    members = decisions.members.sides()
    channels = len(decisions.members.starts) - 1
    place = np.arange(people, dtype=np.float64)
    for _ in range(PASSES):
        seat = ranks_of(mean_of(place[members.right], members.left, channels))
        place = ranks_of(mean_of(seat[members.left], members.right, people))
    first = first_of(decisions.channels, flows)
    by_channel = np.append(seat, np.inf)[first]
    return ascending_places(by_channel), ascending_places(place)


def mean_of(values: Counts, of: Longs, size: int) -> Counts:
    """The mean of the values that belong to each item; infinite where none does."""
    count = np.bincount(of, minlength=size)
    total = np.bincount(of, values, size)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def ranks_of(values: Counts) -> Counts:
    """Ranks instead of values; those without a value stay without one."""
    ranks = ascending_places(values).astype(np.float64)
    return np.where(np.isfinite(values), ranks, np.inf)


def ascending_places(values: Counts) -> Longs:
    """Where each stands in ascending order; equal ones in the order they come."""
    result = np.empty(len(values), np.int64)
    result[np.argsort(values, kind="stable")] = np.arange(len(values))
    return result


def first_of(relation: PlanRelation, size: int) -> Longs:
    """The first channel of each flow, −1 if it has none."""
    has = np.diff(relation.starts) > 0
    result = np.full(size, -1)
    result[has] = relation.right[relation.starts[:-1][has]]
    return result


def image(
    cells: Pixels, wanted: Counts, unicast: Counts, unwanted: Counts, pairs: int, when: str
) -> Markup:
    full = max(pairs / (cells.width * cells.height), 1.0)
    levels = [
        np.ceil(np.minimum(part / full, 1) * (LEVELS - 1)).astype(np.uint8)
        for part in (wanted, unicast, unwanted)
    ]
    pixels = (levels[0] * LEVELS + levels[1]) * LEVELS + levels[2]
    file = png(pixels.astype(np.uint8), palette())
    name = "matrix" if cells.width > COARSE else "matrix coarse"
    return tag("img", src=inline(file), alt=f"Interest matrix {when} planning", class_=name)


def palette() -> NDArray[np.uint8]:
    """A colour for each mix of levels: the mean of the three colours, denser with more of them."""
    colours = np.array((WANTED, UNICAST, UNWANTED), np.float64)
    result = np.zeros((LEVELS**3, 4), np.uint8)
    for number_, parts in enumerate(product(range(LEVELS), repeat=3)):
        weight = np.array(parts, np.float64)
        if weight.sum():
            density = min(weight.sum() / (LEVELS - 1), 1.0) ** 0.6
            result[number_] = (*(weight @ colours / weight.sum()), 255 * density)
    return result


def audience_pairs(truth: ChannelTruth) -> Sides:
    """Every flow with each subscriber who wants it."""
    sizes = np.diff(truth.audience_starts)[truth.classes]
    audience = take_audiences(truth.audience_starts, truth.audience, truth.classes)
    return Sides(np.repeat(np.arange(len(truth.classes)), sizes), audience.astype(np.int64))
