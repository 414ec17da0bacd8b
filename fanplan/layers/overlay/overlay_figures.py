"""The figures of an overlay, as a person or a program asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanplan.layers.overlay.build import fewest_messages, trees_ledger
from fanplan.layers.overlay.types import OverlayLayer
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger
from fanplan.network.trees import Trees, tree_of


def figures(layer: OverlayLayer, problem: OverlayProblem) -> dict[str, Any]:
    """What was decided and what it costs."""
    record = layer.record
    ledger = trees_ledger(problem, layer.trees)
    over = np.flatnonzero(layer.load > problem.capacity * (1 + 1e-9))
    return {
        "method": record.method,
        "brokers": record.brokers,
        **allocation_figures(layer),
        "clients": len(layer.tables["clients"]),
        "links": record.links,
        "trees": record.trees,
        "weight": record.weight,
        **ledger_figures(ledger, layer.trees, problem),
        "latency": record.latency,
        "overloaded": [problem.brokers[int(broker)].as_py() for broker in over],
    }


def allocation_figures(layer: OverlayLayer) -> dict[str, Any]:
    found = layer.record.allocation
    if found is None:
        return {}
    return {
        "ranking": found.method,
        "lcf": found.lcf,
        "load": found.load,
        "brokers_bound": found.bound,
        "cost": found.cost,
        "lone": list(found.lone),
    }


def ledger_figures(ledger: OverlayLedger, trees: Trees, problem: OverlayProblem) -> dict[str, Any]:
    """Messages and delays beside their bounds, and the shape of the trees."""
    bound = fewest_messages(problem.routes)
    degree = np.bincount(trees.links.ravel(), minlength=problem.size)
    shapes = [tree_of(*trees.links[member].T) for member in trees.members]
    return {
        "link_messages": ledger.link_messages,
        "bound": bound,
        "over_bound_percent": 100.0 * (ledger.link_messages / bound - 1) if bound else 0.0,
        "messages_per_publication": ledger.messages_per_publication,
        "messages_per_arrival": ledger.messages_per_arrival,
        "delay_mean": ledger.delay_mean,
        "forwarded": float(ledger.forwarded.sum()),
        "degree_max": int(degree.max(initial=0)),
        "diameter": max((shape.diameter for shape in shapes), default=0),
    }
