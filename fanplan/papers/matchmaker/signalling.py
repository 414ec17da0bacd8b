"""The signalling that Ge et al. (2002) left to future work: what the protocol of section 5 sends.

The same publishers and subscribers come and go under all three schemes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fanplan.layers.marking.protocol.churn import MarkingChurn
from fanplan.layers.marking.protocol.messages import MESSAGES
from fanplan.layers.marking.protocol.node import Scheme
from fanplan.layers.marking.protocol.run import marking_churn
from fanplan.papers.matchmaker.networks import CORE, drawn_network

NAMES: dict[str, Scheme] = {"PubE": "pub_everywhere", "SubE": "sub_everywhere", "MCM": "best"}

PURPOSES = {
    "trees": ("source", "graft"),
    "counts and marks": ("count", "mark", "gather", "solve"),
    "descriptors": ("advertise", "subscribe", "withdraw"),
    "data path": ("signal", "release"),
    "all": MESSAGES,
}
"""What messages are for, by their kinds; nothing is lost here, so that nothing is repeated."""


def signalling(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Means over a few networks, each with events of its own."""
    many = setting["networks"]
    runs = [dict(churned(setting, seed * many + i)) for i in range(many)]
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def churned(setting: dict[str, Any], seed: int) -> Iterator[tuple[str, float]]:
    """Messages for each event, and descriptors stored on average whenever the network rests."""
    network = drawn_network(setting, seed)
    trees = f"shared:{network.name(CORE)}" if setting["trees"] == "shared" else setting["trees"]
    churn = MarkingChurn(events=setting["events"], seed=seed, trees=trees)
    schemes = marking_churn(network, churn).summary()["schemes"]
    for name, scheme in NAMES.items():
        figures = schemes[scheme]
        yield f"{name} stored", figures["stored_mean"]
        sent = figures["by_kind_per_event"]
        for purpose, kinds in PURPOSES.items():
            yield f"{name} {purpose}", sum(sent.get(kind, 0.0) for kind in kinds)
