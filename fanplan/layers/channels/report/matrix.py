"""The interest matrix as a picture: flows across, subscribers down, before and after planning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fanplan.core.arrays import Longs
from fanplan.data.interest import take_audiences
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation, Sides
from fanplan.page.content import Picture
from fanplan.page.numbers import number, percent, ticks
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
DENSEST = 0.95
"""The share of pixels that are not of the full colour."""
DENSITY = "The denser a colour, the more pairs are in a dot."
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
    order = matrix_order(decisions, wanted, flows, people)
    after = cells(*order)
    counted, direct = after.count(wanted), after.count(unicast)
    by_channel = np.maximum(counted - direct, 0)
    in_vain = np.maximum(after.received(decisions) - by_channel, 0)
    size = f"{number(flows)} flows across, {number(people)} subscribers down."
    share = len(wanted.left) / max(flows * people, 1)

    def said(when: str) -> str:
        told = f"Interest matrix {when} planning: {number(flows)} flows, {number(people)}"
        return f"{told} subscribers, {percent(share)} of all pairs wanted"

    nothing = np.zeros((before.height, before.width))
    return [
        Picture(
            f"{name}-before",
            "Interest before: who wants what",
            boxed(image(before, before.count(wanted), nothing, nothing, said("before")), flows),
            f"{size} Both in the order of their names. {DENSITY}",
            [("wanted", "wanted")],
            "png",
            zoom=True,
            wide=True,
        ),
        Picture(
            f"{name}-after",
            "Interest after: who receives what",
            boxed(
                image(after, by_channel, direct, in_vain, said("after")),
                flows,
                channel_bands(decisions, order[0], flows),
            ),
            f"{size} Flows stand by channel, unicast at the right; subscribers who share "
            f"channels stand together. {DENSITY} Click a channel to open it.",
            [
                ("wanted", "wanted, by a channel"),
                ("unicast", "wanted, by unicast"),
                ("unwanted", "unwanted"),
            ],
            "png",
            zoom=True,
            wide=True,
        ),
    ]


def cells(column: Longs, row: Longs) -> Pixels:
    """Positions in order, as pixels."""
    width, height = min(len(column), WIDTH), min(len(row), HEIGHT)
    return Pixels(
        column * width // max(len(column), 1), row * height // max(len(row), 1), width, height
    )


def boxed(image: Markup, flows: int, bands: Sequence[tuple[int, float, float]] = ()) -> Markup:
    """The image with a scale of flows, and above it the channels as a strip."""
    marks = [mark for mark in ticks(flows) if mark <= flows]
    along = [
        tag("span", number(mark), style=f"left:{100 * mark / max(flows, 1):.2f}%") for mark in marks
    ]
    data = json.dumps(bands, separators=(",", ":")) if bands else None
    inside = (image, strip(bands) if bands else "", tag("div", *along, class_="along"))
    return tag(
        "div", tag("div", *inside, class_="matrix-box", data_bands=data), class_="matrix-scroll"
    )


def strip(bands: Sequence[tuple[int, float, float]]) -> Markup:
    """Where each channel is; the image above it is read from top to bottom."""
    parts = [
        tag(
            "rect",
            x=f"{1000 * low:.2f}",
            width=f"{1000 * (high - low):.2f}",
            y=0,
            height=10,
            data_tip=f"channel {channel}",
        )
        for channel, low, high in bands
    ]
    about = {"preserveAspectRatio": "none", "role": "img", "class_": "strip"}
    label = f"{len(bands)} channels, from left to right"
    return tag("svg", *parts, viewBox="0 0 1000 10", aria_label=label, **about)


def channel_bands(
    decisions: Decisions, column: Longs, flows: int
) -> list[tuple[int, float, float]]:
    """Channels with the share of all flows where they start and end, from left to right."""
    first = first_of(decisions.channels, flows)
    found = []
    for channel in np.unique(first[first >= 0]).tolist():
        own = column[first == channel]
        low, high = int(own.min()) / flows, (int(own.max()) + 1) / flows
        found.append((channel, round(low, 5), round(high, 5)))
    return sorted(found, key=lambda band: band[1])


def matrix_order(
    decisions: Decisions, wanted: Sides, flows: int, people: int
) -> tuple[Longs, Longs]:
    """The position of each flow and each subscriber, so that what belongs together is together.

    Channels and subscribers are moved to the mean place of those they belong to, again and again
    (reciprocal averaging). Subscribers without a channel come last, as do flows without one. The
    flows of a channel stand by the mean place of those who want them.
    """
    members = decisions.members.sides()
    channels = len(decisions.members.starts) - 1
    place = np.arange(people, dtype=np.float64)
    for _ in range(PASSES):
        seat = ranks_of(mean_of(place[members.right], members.left, channels))
        place = ranks_of(mean_of(seat[members.left], members.right, people))
    row = ascending_places(place)
    first = first_of(decisions.channels, flows)
    by_channel = np.append(seat, np.inf)[first]
    within = mean_of(row[wanted.right].astype(np.float64), wanted.left, flows)
    column = np.empty(flows, np.int64)
    column[np.lexsort((within, first, by_channel))] = np.arange(flows)
    return column, row


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


def image(cells: Pixels, wanted: Counts, unicast: Counts, unwanted: Counts, alt: str) -> Markup:
    """A pixel is as dense as it has pairs, compared with the densest but a few of the picture."""
    there = (wanted + unicast + unwanted)[(wanted + unicast + unwanted) > 0]
    full = max(float(np.quantile(there, DENSEST)) if len(there) else 1.0, 1.0)
    levels = [
        np.ceil(np.minimum(part / full, 1) * (LEVELS - 1)).astype(np.uint8)
        for part in (wanted, unicast, unwanted)
    ]
    pixels = (levels[0] * LEVELS + levels[1]) * LEVELS + levels[2]
    file = png(pixels.astype(np.uint8), palette())
    name = "matrix" if cells.width > COARSE else "matrix coarse"
    return tag("img", src=inline(file), alt=alt, class_=name)


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
