"""One picture per item, as SVG: the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fanplan.papers.experiment import Item, PaperLine, Samples

STYLE: Any = {
    "svg.hashsalt": "fanplan",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
}
INCHES = (7.2, 4.4)
INCHES_PER_BAR = 0.2
LEGEND_WIDTH = 84
"""In letters; an entry takes eight more than its label."""
OURS = "#c1121f"
COLOURS = ("#1f5fa8", "#e08a1e", "#2e8b57", "#7b4fa3", "#8c6d46", "#4fa3b5", "#777777", "#b5a642")
"""Of the paper's lines; red is kept for ours."""
MARKERS = "osD^vPX*"
PUBLISHED = "published"
FEW = 8
"""Up to this many places on the horizontal axis are each named there."""


def draw_item(item: Item, samples: Samples, path: Path) -> None:
    """Curves over a number, or bars by name; whiskers are one standard deviation of a run."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.subplots()
        axes.set_title(f"{item.name}: {item.title}", fontsize=11, loc="left")
        draw_bars(axes, item, samples) if item.x is None else draw_curves(axes, item, samples)
        labels = axes.get_legend_handles_labels()[1]
        figure.legend(loc="outside lower center", ncols=legend_columns(labels))
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def legend_columns(labels: list[str]) -> int:
    """Entries side by side in the legend: rows of equal length, as long as the width allows."""
    count, longest = len(labels), max(map(len, labels))
    most = max(1, min(count, LEGEND_WIDTH // (longest + 8)))
    rows = -(-count // most)
    return -(-count // rows)


def means_and_deviations(line: PaperLine, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each point."""
    values = [samples[point.setting, point.key] for point in line.points]
    means = np.array([np.mean(value) for value in values])
    return means, np.array([np.std(v, ddof=1) if len(v) > 1 else 0.0 for v in values])


def draw_curves(axes: Any, item: Item, samples: Samples) -> None:
    """A line for each of the item's; ours are red and thicker, told apart by their dashes."""
    theirs = ours = 0
    for line in item.lines:
        means, sds = means_and_deviations(line, samples)
        xs = [float(point.x) for point in line.points]
        style: dict[str, Any]
        if line.ours:
            style = {"color": OURS, "lw": 2.2, "ls": ("-", "--", ":")[ours % 3], "marker": "o"}
            ours += 1
        else:
            colour, marker = COLOURS[theirs % len(COLOURS)], MARKERS[theirs % len(MARKERS)]
            style = {"color": colour, "lw": 1.5, "marker": marker}
            theirs += 1
        axes.errorbar(xs, means, sds, label=line.label, ms=4, elinewidth=0.8, capsize=2, **style)
        told = [None if point.published is None else (x, point.published)
                for x, point in zip(xs, line.points, strict=True)]  # fmt: skip
        mark_published(axes, told, style["color"])
    places = sorted({float(point.x) for line in item.lines for point in line.points})
    if len(places) <= FEW:
        axes.set_xticks(places, [f"{x:g}" for x in places])
    elif all(x.is_integer() for x in places):
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    axes.set_xlabel(item.x)
    axes.set_ylabel(item.y)
    scale_axis(axes.set_yscale, axes.yaxis, item)


def draw_bars(axes: Any, item: Item, samples: Samples) -> None:
    """A group of bars for each name, one bar per line, from top to bottom."""
    names = list(dict.fromkeys(str(point.x) for line in item.lines for point in line.points))
    height = 0.8 / len(item.lines)
    axes.figure.set_figheight(1.6 + INCHES_PER_BAR * len(names) * len(item.lines))
    for i, line in enumerate(item.lines):
        means, sds = means_and_deviations(line, samples)
        places = [names.index(str(point.x)) + height * (i + 0.5) - 0.4 for point in line.points]
        axes.barh(places, means, 0.9 * height, xerr=sds, label=line.label, color=COLOURS[i])
        told = [None if point.published is None else (point.published, place)
                for place, point in zip(places, line.points, strict=True)]  # fmt: skip
        mark_published(axes, told, "black")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_xlabel(item.y)
    scale_axis(axes.set_xscale, axes.xaxis, item)


def mark_published(axes: Any, places: list[tuple[float, float] | None], colour: str) -> None:
    """A hollow diamond at each published number; one entry in the legend for all."""
    known = [place for place in places if place]
    if known:
        first = PUBLISHED not in axes.get_legend_handles_labels()[1]
        label = PUBLISHED if first else None
        at = zip(*known, strict=True)
        axes.plot(*at, "D", ms=4, mfc="white", mec=colour, label=label, zorder=3)


def scale_axis(set_scale: Any, axis: Any, item: Item) -> None:
    """A logarithmic axis with plain numbers, if asked for; otherwise it starts at 0."""
    if item.log:
        set_scale("log")
        axis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
    elif axis.axis_name == "y":
        axis.axes.set_ylim(0, 1.02 * axis.axes.get_ylim()[1])
