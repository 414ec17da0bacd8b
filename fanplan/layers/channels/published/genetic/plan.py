"""The genetic planners: a map over subscriptions, as in the paper, or over atomic volumes.

The heavy ones go by multicast (Guimarães & Rodrigues 2003, section 5.2), the rest point to point.
"""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Stop
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, MapPairs, map_pairs
from fanplan.layers.channels.method_params import require_enough_flows
from fanplan.layers.channels.published.genetic.evolve import Generation, advance, start
from fanplan.layers.channels.published.genetic.genes import row_genes, subscription_genes
from fanplan.layers.channels.published.genetic.params import (
    AtomicParams,
    GeneticParams,
)
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem, lists
from fanplan.layers.channels.published.genetic.weight import row_weight, subscription_weight

CONTENT_SHARE = 0.7


def genetic(
    problem: SubscriptionProblem, params: GeneticParams, seed: int, stop: Stop
) -> ChannelMap:
    """The paper's map: each heavy subscription to one channel, the light ones point to point."""
    state = first_state(problem, params, seed)
    return finished_map(problem, advance(state, params.iterations, stop))


def first_state(
    problem: SubscriptionProblem, params: GeneticParams, seed: int, island: int = 0
) -> Generation:
    """Where an island's search over the heavy subscriptions starts."""
    require_enough_flows(problem.interest, params.channels)
    if params.near == "place" and problem.place is None:
        what = "subscriptions have no brokers, so nobody's place is known"
        raise InputError(Problem("near", what, "Use near=wants, or give subscriptions a broker"))
    chosen = heavy_subscriptions(problem, params)
    weight = row_weight(problem, params.probability, params.sample, params.weight)
    return start(subscription_genes(problem, chosen, weight), params, seed, island)


def finished_map(problem: SubscriptionProblem, state: Generation) -> ChannelMap:
    """The channel map of a state's best map of subscriptions."""
    return map_subscriptions(problem, state.genes.chosen, state.best, state.params.channels)


def genetic_atomic(
    problem: InterestProblem, params: AtomicParams, seed: int, stop: Stop
) -> ChannelMap:
    """The search over rows: each goes to one channel, so nothing is received twice.

    With ``heavy`` only that part of the rows, those with most messages, goes by multicast.
    """
    state = advance(first_atomic(problem, params, seed), params.iterations, stop)
    genes = row_genes(problem, state.genes.chosen)
    sent = map_pairs(genes.chosen, state.best[genes.gene])
    joined = members_of(state.best, Lists(genes.indptr, genes.audience))
    return completed(problem, params.channels, sent, joined)


def first_atomic(
    problem: InterestProblem, params: AtomicParams, seed: int, island: int = 0
) -> Generation:
    """Where an island's search over the heavy rows starts: those with most messages, or all."""
    require_enough_flows(problem, params.channels)
    share = 1.0 if params.heavy is None else params.heavy
    heavy = heaviest_positions(problem.messages, share)
    return start(row_genes(problem, heavy), params, seed, island)


def map_subscriptions(
    problem: SubscriptionProblem, chosen: Longs, channel: Ints, channels: int
) -> ChannelMap:
    """A flow goes on every channel with a subscription that covers it; subscribers join those."""
    rows = problem.rows.take(chosen)
    sent = map_pairs(rows.values, np.repeat(channel, np.diff(rows.starts)))
    joined = members_of(channel, problem.subscribers.take(chosen))
    return completed(problem.interest, channels, sent, joined)


def map_rest(problem: InterestProblem, rows: Lists, part: ChannelMap) -> ChannelMap:
    """A map over classes of some rows, as one over all rows, with unicast for the rest."""
    own = rows.take(part.assigned.left.astype(np.int64))
    sent = map_pairs(own.values, np.repeat(part.assigned.right, np.diff(own.starts)))
    return completed(problem, part.channels, sent, part.members)


def members_of(channel: Ints, subscribers: Lists) -> MapPairs:
    """(channel, subscriber) for the subscribers of everything that a channel holds."""
    return map_pairs(np.repeat(channel, np.diff(subscribers.starts)), subscribers.values)


def heavy_subscriptions(problem: SubscriptionProblem, params: GeneticParams) -> Longs:
    """Positions of the subscriptions to map; all of them if they are subject-based."""
    share = params.heavy
    if share is None:
        share = CONTENT_SHARE if problem.content_based else 1.0
    how = params.probability, params.sample, params.weight
    return heaviest_positions(subscription_weight(problem, *how), share)


def wanted_of(problem: SubscriptionProblem, chosen: Longs) -> tuple[Lists, InterestProblem]:
    """What the chosen subscriptions alone want, by audience classes, and the rows of each class."""
    rows, who = problem.rows.take(chosen), problem.subscribers.take(chosen)
    users = np.diff(who.starts)
    sizes = np.diff(rows.starts) * users
    of = np.repeat(np.arange(len(chosen)), sizes)
    place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row = rows.values[rows.starts[of] + place // users[of]]
    user = who.values[who.starts[of] + place % users[of]]
    whole = problem.interest
    totals = (whole.messages, whole.bytes, whole.seconds, whole.subscribers)
    flows = from_pairs(row, user, *totals, "flow", whole.source)
    wanted = from_pairs(row, user, *totals, "class", whole.source)
    return lists(flows.classes, np.unique(row), wanted.size), wanted


def heaviest_positions(weights: Floats, share: float) -> Longs:
    """Positions of the heaviest part, ascending; of equal weights the first ones."""
    count = math.ceil(share * len(weights) - 1e-9)
    return np.sort(np.argsort(-weights, kind="stable")[:count])
