"""What the cost of a plan of all layers consists of, at every step from the naive system to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from fanplan.evaluation.prices import LedgerPrices
from fanplan.plan.delivery.read import domains_of
from fanplan.plan.delivery.record import DeliveryRecord
from fanplan.plan.stored import StoredPlan
from fanplan.planners.delivery.joint import judge, without_channels
from fanplan.planners.delivery.layers import layer_by_layer, with_groups
from fanplan.planners.delivery.params import DeliveryParams
from fanplan.planners.overlay.similar import random_tree
from fanplan.planners.stop import never
from fanplan.problem.delivery import DeliveryProblem
from fanplan.problem.delivery_dataset import load_delivery
from fanplan.problem.group_trees_dataset import PartTrees
from fanplan.problem.overlay_dataset import read_brokers
from fanplan.reporting.bars import Stack
from fanplan.reporting.delivery_steps import TOGETHER, words_of
from fanplan.simulation.stored import read_overlay

SUBSCRIPTIONS = "subscriptions"
"""What descriptors cost that travel from broker to broker."""

SAME = 1e-6
"""How far, relatively, a step counted anew may be from what the plan says."""

Parts = dict[str, float]


def params_of(record: DeliveryRecord) -> DeliveryParams:
    """What delivery was planned with."""
    return DeliveryParams(
        channels=record.channels,
        entries=record.entries,
        unicast_limit=record.unicast_limit,
        direct=record.direct_allowed,
        prices=LedgerPrices(**record.prices.model_dump()),
    )


def systems(plan: StoredPlan, dataset: Path | None, problem: DeliveryProblem | None) -> list[Stack]:
    """The parts of every step, from the naive system to the plan; without a dataset of the plan.

    A step that does not come to what the plan says of it is left out: its search was stopped, or
    layers were fixed to those of other plans.
    """
    record = plan.delivery
    known: dict[str, Parts] = {TOGETHER: record.parts}
    if dataset is not None and problem is not None:
        naive = random_problem(plan, dataset) if plan.record.overlay else None
        known |= dict(counted(plan, problem, naive))
    everywhere = {name: parts | subscriptions(plan, marked=False) for name, parts in known.items()}
    last = record.steps[-1].name
    everywhere[last] = record.parts | subscriptions(plan, marked=True)
    words = dict(zip((step.name for step in record.steps), words_of(record), strict=True))
    stacks = ((step, Stack(words[step.name], everywhere[step.name])) for step in record.steps
              if step.name in everywhere)  # fmt: skip
    return [one for step, one in stacks if np.isclose(one.total, step.cost, rtol=SAME)]


def counted(
    plan: StoredPlan, problem: DeliveryProblem, naive: DeliveryProblem | None
) -> Iterator[tuple[str, Parts]]:
    """The steps before the plan, by name."""
    params = params_of(plan.delivery)
    if naive is None:
        yield "broadcast", broadcast(problem, params.prices)
        yield "unicast", routed(problem, params)
    else:
        yield "flooding on a random tree", flooding(naive, params.prices)
        yield "content routing on a random tree", routed(naive, params)
        yield "planned tree", routed(problem, params)
    alone = layer_by_layer(problem, replace(params, entries=0), plan.record.seed, never)
    yield "channels", judge(problem, params, alone).ledger.parts(params.prices)
    both = with_groups(problem, params, alone.map, alone.domain, alone.direct)
    yield "layer by layer", judge(problem, params, both).ledger.parts(params.prices)


def routed(problem: DeliveryProblem, params: DeliveryParams) -> Parts:
    """Content-based routing, matched at every hop, without channels and groups."""
    plain = replace(params, entries=0, channels=0)
    return judge(problem, plain, without_channels(problem, plain)).ledger.parts(params.prices)


def flooding(problem: DeliveryProblem, prices: LedgerPrices) -> Parts:
    """Every message visits every broker of its tree."""
    interest = problem.interest
    hops = (problem.trees.parent >= 0).sum(axis=1)[problem.tree]
    return {
        "last hop": prices.unicast * float(interest.messages @ interest.audience_sizes),
        "forwarding": prices.forwarded * float(problem.messages @ hops),
        "matching": prices.matched * float(problem.messages @ (hops + 1)),
    }


def broadcast(problem: DeliveryProblem, prices: LedgerPrices) -> Parts:
    """Every message is sent once, to everybody."""
    total = float(problem.interest.messages.sum())
    each = prices.sent + prices.received * len(problem.interest.subscribers)
    return {"multicast": total * each, "matching": prices.matched * total}


def subscriptions(plan: StoredPlan, marked: bool) -> Parts:
    """On marked links, or everywhere; nothing is known of them where no links are marked."""
    marking = plan.record.marking
    if marking is None:
        return {}
    count = marking.cost if marked else marking.sub_everywhere
    return {SUBSCRIPTIONS: plan.delivery.prices.control * count}


def random_problem(plan: StoredPlan, dataset: Path) -> DeliveryProblem:
    """The delivery problem on a random tree of the plan's brokers, drawn with the plan's seed."""
    overlay = read_overlay(plan, dataset).problem
    tree = random_tree(overlay, plan.record.seed)
    brokers = read_brokers(dataset).names
    used = pc.index_in(overlay.brokers, brokers).to_numpy().astype(np.int32)
    trees = PartTrees((tree.edges,), np.zeros(len(used), np.int32), used, len(brokers))
    clients = plan.read("clients", ("client", "role", "broker"))
    domain, _ = domains_of(plan, dataset, brokers)
    return load_delivery(dataset, brokers, clients, trees, domain)
