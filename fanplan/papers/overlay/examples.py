"""The worked examples of Tajuddin (2011): Figure 4.1 with Eq. 4.1, and Figure 5.4."""

from __future__ import annotations

import numpy as np

from fanplan.boxes.extents import make_extents
from fanplan.layers.overlay.problem import owner_overlap
from fanplan.network.brokers import OverlayProblem, Routes, no_similarity
from fanplan.papers.experiment import Item, PaperLine, Point
from fanplan.papers.overlay.settings import EXAMPLES
from fanplan.simulation.messages import as_publications
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import simulate_tree
from fanplan.workload.generators.draws import names

BOXES = {
    "a": (((0.0, 0.0), (7.5, 5.0)), ((2.5, 2.0), (12.5, 8.0))),
    "b": (((0.0, 0.0), (5.0, 3.0)), ((0.0, 1.0), (5.0, 5.3))),
}
"""Figure 4.1: two subscriptions each, with the areas that the text tells: 15 is 40 % of the first
in (a), and 10 is 67 % in (b)."""

LINKS = {"top": ((0, 1), (1, 2), (2, 3), (3, 4)), "bottom": ((0, 3), (1, 2), (2, 3), (3, 4))}
"""Figure 5.4: five brokers; the first hangs from the second or from the fourth."""

PUBLISHER, SUBSCRIBERS = 2, (0, 4)
LATENCY = 100.0


def example_topologies() -> dict[str, float]:
    """The same in every run."""
    result = {f"overlap {part}": overlap_of_boxes(part) for part in BOXES}
    for part in LINKS:
        result |= measured_topology(part)
    return result


def overlap_of_boxes(part: str) -> float:
    """Eq. 4.1 of the two subscriptions of a part of Figure 4.1."""
    lo, hi = (np.array(corner) for corner in zip(*BOXES[part], strict=True))
    pair = make_extents([0, 1], [0, 1], [0, 0], lo, hi)
    i, j, value = owner_overlap(pair, pair)
    return float(value[(i == 0) & (j == 1)][0])


def measured_topology(part: str) -> dict[str, float]:
    """Messages and latency (in link latencies) of one publication in a part of Figure 5.4."""
    size, wanted = 5, len(SUBSCRIBERS)
    routes = Routes(
        np.array([PUBLISHER], np.int32),
        np.array([0, wanted]),
        np.array(SUBSCRIBERS, np.int32),
        np.ones(1),
        np.array([float(wanted)]),
    )
    problem = OverlayProblem(
        names("b", size),
        np.full(size, np.inf),
        np.ones(size),
        routes,
        no_similarity(size),
        None,
        1.0,
        "Figure 5.4",
    )
    params = SimulationParams(congestion="none", latency_ms=LATENCY)
    one = as_publications(np.zeros(1), np.zeros(1, np.int64))
    result = simulate_tree(problem, np.array(LINKS[part], np.int32), one, params)
    return {
        f"{part} messages": float(result.link_messages),
        f"{part} latency": result.delay_mean_ms / LATENCY,
    }


def topology_examples() -> tuple[Item, Item]:
    """Eq. 4.1 on Figure 4.1, and the two topologies of Figure 5.4."""
    return (
        Item(
            "Equation 4.1",
            "Overlap of the two pairs of Figure 4.1",
            (
                PaperLine(
                    "overlap",
                    (
                        Point(EXAMPLES, "overlap a", "(a)", 0.10),
                        Point(EXAMPLES, "overlap b", "(b)", 0.31),
                    ),
                ),
            ),
            "overlap",
            reading="The text gives the common areas and their shares; the other sides are chosen "
            "to fit both.",
        ),
        Item(
            "Figure 5.4",
            "Two topologies with equal latency",
            tuple(
                PaperLine(
                    name,
                    tuple(
                        Point(EXAMPLES, f"{part} {key}", f"{part} topology", number)
                        for part, number in published.items()
                    ),
                )
                for name, key, published in (
                    ("messages", "messages", {"top": 4, "bottom": 3}),
                    ("latency, in L", "latency", {"top": 2, "bottom": 2}),
                )
            ),
            "messages, or latency in L",
        ),
    )
