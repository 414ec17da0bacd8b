"""The overlay layer of a plan from what was decided: its tables, its figures, its ledger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse

from fanplan.core.arrays import Floats
from fanplan.layers.overlay.params import OverlayParams
from fanplan.layers.overlay.record import (
    AllocationRecord,
    LimitsRecord,
    OverlayRecord,
    OverlaySection,
)
from fanplan.network.brokers import OverlayProblem, Routes, values_at
from fanplan.network.carried import OverlayLedger, trees_ledger
from fanplan.network.trees import Trees


@dataclass(frozen=True, eq=False)
class ChosenTrees:
    """How trees and clients were decided, to be recorded.

    ``similarity`` holds the weights of links; of two directions the heavier counts.
    ``client_load`` is that of an allocation.
    """

    params: OverlayParams
    similarity: scipy.sparse.csr_array
    clients: pa.Table
    limits: LimitsRecord
    allocation: AllocationRecord | None = None
    client_load: Floats | None = None


def overlay_layer(
    problem: OverlayProblem, trees: Trees, decided: ChosenTrees, seed: int, version: str
) -> OverlaySection:
    """Count what the trees cost and put everything into tables, by names."""
    ledger = trees_ledger(problem, trees)
    load = ledger.processed / problem.seconds
    weight = weights(decided.similarity, trees)
    record = OverlayRecord(
        params=decided.params,
        clients="given" if decided.allocation is None else "allocated",
        limits=decided.limits,
        allocation=decided.allocation,
        brokers=problem.size,
        links=len(trees.links),
        trees=len(trees.members),
        weight=float(weight.sum()),
        latency="ms" if problem.timed else "hops",
        seconds=problem.seconds,
        bound=fewest_messages(problem.routes),
        ledger=totals(ledger),
    )
    tables = {
        "brokers": brokers_as_table(problem, load, decided.client_load),
        "clients": decided.clients,
        "links": links_as_table(problem, trees, weight, ledger.link.sum(axis=1) / problem.seconds),
        **(tree_tables(problem, trees) if len(trees.members) > 1 else {}),
    }
    return OverlaySection(record, tables, trees, load, problem.source, seed, version)


def totals(ledger: OverlayLedger) -> dict[str, float]:
    """The ledger as numbers in the plan."""
    return {
        "publications": ledger.publications,
        "deliveries": ledger.deliveries,
        "arrivals": ledger.arrivals,
        "link_messages": ledger.link_messages,
        "processed": float(ledger.processed.sum()),
        "forwarded": float(ledger.forwarded.sum()),
        "delay": ledger.delay,
    }


def fewest_messages(routes: Routes) -> float:
    """Messages on links that no overlay can undercut: one for each end of a route but the first."""
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    local = np.bincount(row[routes.brokers == routes.source[row]], minlength=len(routes))
    return float((routes.messages * (np.diff(routes.starts) - local)).sum())


def weights(similarity: scipy.sparse.csr_array, trees: Trees) -> Floats:
    """The heavier of both directions."""
    a, b = trees.links[:, 0], trees.links[:, 1]
    return np.maximum(values_at(similarity, a, b), values_at(similarity, b, a))


def brokers_as_table(problem: OverlayProblem, load: Floats, client_load: Floats | None) -> pa.Table:
    limited = np.isfinite(problem.capacity)
    nothing = pa.nulls(problem.size, pa.float64())
    return pa.table(
        {
            "broker": problem.brokers,
            "capacity": pa.array(problem.capacity, mask=~limited),
            "load": load,
            "client_load": nothing if client_load is None else pa.array(client_load),
        }
    )


def links_as_table(problem: OverlayProblem, trees: Trees, weight: Floats, rate: Floats) -> pa.Table:
    return pa.table(link_ends(problem, trees.links) | {"weight": weight, "rate": rate})


def link_ends(problem: OverlayProblem, links: np.ndarray) -> dict[str, pa.Array]:
    """Names of the ends of links; positions ascend by name."""
    return {end: problem.brokers.take(pa.array(links[:, i])) for i, end in enumerate("ab")}


def tree_tables(problem: OverlayProblem, trees: Trees) -> dict[str, pa.Table]:
    number = np.repeat(np.arange(len(trees.members)), [len(m) for m in trees.members])
    links = link_ends(problem, trees.links[np.concatenate(trees.members)])
    return {
        "tree_links": pa.table({"tree": number} | links),
        "tree_sources": pa.table({"broker": problem.brokers, "tree": trees.of}),
    }
