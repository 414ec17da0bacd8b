"""Sections of a design from what was decided, and the trees that it is decided on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fanplan.layers.delivery.ledger import DeliveryLedger
from fanplan.layers.delivery.params import DesignParams
from fanplan.layers.delivery.record import (
    BoundName,
    Delivery,
    DeliveryRecord,
    DeliverySection,
    DomainRecord,
    StepRecord,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fanplan.core.arrays import Ints
    from fanplan.layers.channels.map import ChannelsSection
    from fanplan.layers.delivery.problem import DeliveryProblem
    from fanplan.layers.delivery.search.joint import JudgedDelivery
    from fanplan.layers.delivery.search.params import DeliveryParams
    from fanplan.layers.groups.problem.trees import PartTrees
    from fanplan.layers.groups.record import GroupsSection
    from fanplan.layers.marking.problem.dataset import MarkedOverlay
    from fanplan.layers.overlay.record import OverlaySection


@dataclass(frozen=True)
class Settled:
    """What was asked for and what came of it, as the plan records it.

    ``channels`` are the most of a multicast domain. ``steps`` are systems on the way from the
    naive one to the plan: names, and parts of the cost.
    """

    params: DesignParams
    channels: int
    domains: tuple[str, ...]
    multicast: tuple[DomainRecord, ...]
    assumed: str
    layered: float
    bound: float
    bound_name: BoundName
    steps: tuple[tuple[str, dict[str, float]], ...]
    warnings: tuple[str, ...]


def delivery_layer(
    delivery: Delivery,
    ledger: DeliveryLedger,
    settled: Settled,
    source: str,
    seed: int,
    version: str,
) -> DeliverySection:
    parts = ledger.parts(settled.params.prices)
    record = DeliveryRecord(
        params=settled.params,
        channels=settled.channels,
        domains=settled.domains,
        multicast=settled.multicast,
        assumed=settled.assumed,
        classes=len(delivery.direct),
        direct=int(delivery.direct.sum()),
        unicast_fraction=ledger.unicast_fraction,
        unicast_counted=ledger.counted_fraction,
        parts=parts,
        cost=sum(parts.values()),
        layered=settled.layered,
        bound=settled.bound,
        bound_name=settled.bound_name,
        steps=tuple(
            StepRecord(name=name, cost=sum(parts.values()), parts=parts)
            for name, parts in settled.steps
        ),
        warnings=settled.warnings,
    )
    names = pa.array(settled.domains, pa.string())
    tables = {
        "channel_domains": pa.table(
            {
                "channel": np.arange(delivery.map.channels),
                "domain": names.take(pa.array(delivery.domain)),
            }
        ),
        "direct_classes": pa.table({"audience_class": np.flatnonzero(delivery.direct)}),
    }
    return DeliverySection(record, tables, source, seed, version)


def domain_records(problem: DeliveryProblem, names: tuple[str, ...]) -> tuple[DomainRecord, ...]:
    """Every domain with its brokers and subscribers; last those in none, without a name."""
    own = problem.domain[problem.home]
    counts: list[tuple[str | None, int, int]] = [
        (name, int((problem.domain == i).sum()), int((own == i).sum()))
        for i, name in enumerate(names)
    ]
    if (problem.domain < 0).any():
        counts.append((None, int((problem.domain < 0).sum()), int(np.sum(own < 0))))
    return tuple(DomainRecord(domain=n, brokers=b, subscribers=s) for n, b, s in counts)


def channels_layer(
    problem: DeliveryProblem, judged: JudgedDelivery, params: DeliveryParams, seed: int
) -> ChannelsSection:
    """The channels of a delivery as a layer of their own."""
    from fanplan.core.version import __version__
    from fanplan.layers.channels.bounds import any_bound
    from fanplan.layers.channels.ledger import analytic_ledger, perfect
    from fanplan.layers.channels.lone import counted_fraction
    from fanplan.layers.channels.map import ChannelsSection
    from fanplan.layers.channels.params import DESIGNED, ChannelPrices, ChannelsParams

    interest, map = problem.interest, judged.delivery.map
    prices = ChannelPrices(params.prices.received, params.prices.sent, 1.0)
    weights = prices.weights
    # A class has a channel in each domain, so bounds for one channel per flow do not bind it.
    bound = any_bound(interest, weights, map.channels)
    return ChannelsSection(
        map=map,
        rows=interest.rows,
        source=interest.source,
        params=ChannelsParams(
            params.channels,
            DESIGNED,
            unicast_limit=params.unicast_limit,
            options={"swaps": params.swaps},
            prices=prices,
        ),
        seed=seed,
        ledger=analytic_ledger(interest, map),
        perfect=perfect(interest, weights),
        bound=bound,
        single_bound=bound,
        counted=counted_fraction(interest, map),
        flows=interest.flow_count,
        audience_classes=interest.class_count,
        seconds=interest.seconds,
        version=__version__,
    )


def groups_section(
    judged: JudgedDelivery, params: DeliveryParams, dataset: Path, source: str
) -> GroupsSection:
    """The groups of a delivery as a layer of their own."""
    from fanplan.core.version import __version__
    from fanplan.layers.groups.build import groups_layer
    from fanplan.layers.groups.problem.dataset import FoundGroups
    from fanplan.layers.groups.search.choose import candidates_of, choose_among

    delivery, told = judged.delivery, params.groups
    weighed = candidates_of(delivery.groups)
    if params.fixed_groups is not None:
        # Fixed groups follow no rule; beside them stands what as many entries could save.
        entries = int(weighed.entries[delivery.selected].sum())
        told = replace(told, select=f"budget:{entries}")
    chosen = choose_among(weighed, told.choice)
    decided = replace(chosen, selected=delivery.selected)
    found = FoundGroups(delivery.groups, dataset)
    return groups_layer(found, decided, told, source, __version__)


def planned_trees(layer: OverlaySection, brokers: pa.Array) -> PartTrees:
    """The trees of an overlay, over the brokers of the workload that it uses."""
    from fanplan.layers.groups.problem.trees import PartTrees

    trees = layer.trees
    edges = tuple(trees.links[own] for own in trees.members)
    return PartTrees(edges, trees.of, used_brokers(layer, brokers), len(brokers))


def random_trees(layer: OverlaySection, brokers: pa.Array, dataset: Path, seed: int) -> PartTrees:
    """The naive overlay: a random tree of the same brokers, over links there are."""
    from fanplan.layers.groups.problem.trees import PartTrees
    from fanplan.layers.overlay.published.similar import random_tree
    from fanplan.network.dataset import silent_overlay

    used = used_brokers(layer, brokers)
    names = layer.tables["brokers"]["broker"].combine_chunks()
    tree = random_tree(silent_overlay(dataset, names), seed)
    return PartTrees((tree.edges,), np.zeros(len(used), np.int32), used, len(brokers))


def used_brokers(layer: OverlaySection, brokers: pa.Array) -> Ints:
    """Positions of the brokers that an overlay uses, in its own order."""
    import pyarrow.compute as pc

    names = layer.tables["brokers"]["broker"]
    found: Ints = pc.index_in(names, brokers).to_numpy().astype(np.int32)
    return found


def marked_overlay(layer: OverlaySection) -> MarkedOverlay:
    """The tree of an overlay, hung at its first broker, and its clients if they were allocated."""
    from fanplan.layers.marking.problem.dataset import MarkedOverlay, tree_table
    from fanplan.network.trees import hang

    names = layer.tables["brokers"]["broker"].combine_chunks()
    tree = tree_table(names, hang(layer.trees.links, 0, len(names)).parent)
    allocated = layer.record.clients == "allocated"
    return MarkedOverlay(tree, layer.tables["clients"] if allocated else None)
