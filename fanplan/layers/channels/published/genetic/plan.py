"""The genetic planners: a map over subscriptions, as in the paper, or over atomic volumes."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.bitmap import Bitmap
from fanplan.layers.channels.ledger import joined_any
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, Pairs, pairs
from fanplan.layers.channels.params import require_enough_flows
from fanplan.layers.channels.published.genetic.evolve import State, advance, start
from fanplan.layers.channels.published.genetic.genes import subscription_genes
from fanplan.layers.channels.published.genetic.params import AtomicParams, GeneticParams
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem
from fanplan.layers.channels.published.genetic.selection import heavy_rows, heavy_subscriptions
from fanplan.layers.channels.published.genetic.settle import row_genes
from fanplan.layers.channels.published.genetic.weight import row_weight


def genetic(
    problem: SubscriptionProblem, params: GeneticParams, seed: int, stop: Stop
) -> ChannelMap:
    """The paper's map: each heavy subscription to one channel, the light ones point to point."""
    state = first_state(problem, params, seed)
    return finished_map(problem, advance(state, params.iterations, stop))


def first_state(
    problem: SubscriptionProblem, params: GeneticParams, seed: int, island: int = 0
) -> State:
    """Where an island's search over the heavy subscriptions starts."""
    require_enough_flows(problem.interest, params.channels)
    chosen = heavy_subscriptions(problem, params)
    weight = row_weight(problem, params.probability, params.sample, params.weight)
    return start(subscription_genes(problem, chosen, weight), params, seed, island)


def finished_map(problem: SubscriptionProblem, state: State) -> ChannelMap:
    """The channel map of a state's best map of subscriptions."""
    return map_subscriptions(problem, state.genes.chosen, state.best, state.params.channels)


def genetic_atomic(
    problem: InterestProblem, params: AtomicParams, seed: int, stop: Stop
) -> ChannelMap:
    """The search over rows: each goes to one channel, so nothing is received twice.

    With ``heavy`` only that part of the rows, those with most messages, goes by multicast.
    """
    state = first_atomic(problem, params, seed)
    return finished_atomic(problem, advance(state, params.iterations, stop))


def first_atomic(
    problem: InterestProblem, params: AtomicParams, seed: int, island: int = 0
) -> State:
    """Where an island's search over the heavy rows starts."""
    require_enough_flows(problem, params.channels)
    return start(row_genes(problem, heavy_rows(problem, params)), params, seed, island)


def finished_atomic(problem: InterestProblem, state: State) -> ChannelMap:
    """The channel map of a state's best map of rows."""
    genes = row_genes(problem, state.genes.chosen)
    channel = state.best[genes.gene]
    joined = members_of(state.best, genes.audiences)
    return served(problem, pairs(genes.chosen, channel), joined, state.params.channels)


def map_subscriptions(
    problem: SubscriptionProblem, chosen: Longs, channel: Ints, channels: int
) -> ChannelMap:
    """A flow goes on every channel with a subscription that covers it; subscribers join those."""
    rows = problem.rows.take(chosen)
    sent = pairs(rows.values, np.repeat(channel, np.diff(rows.starts)))
    joined = members_of(channel, problem.subscribers.take(chosen))
    return served(problem.interest, sent, joined, channels)


def map_rest(problem: InterestProblem, rows: Lists, part: ChannelMap) -> ChannelMap:
    """A map over classes of some rows, as one over all rows, with unicast for the rest."""
    own = rows.take(part.assigned.left.astype(np.int64))
    sent = pairs(own.values, np.repeat(part.assigned.right, np.diff(own.starts)))
    return served(problem, sent, part.members, part.channels)


def members_of(channel: Ints, subscribers: Lists) -> Pairs:
    """(channel, subscriber) for the subscribers of everything that a channel holds."""
    return pairs(np.repeat(channel, np.diff(subscribers.starts)), subscribers.values)


def served(problem: InterestProblem, sent: Pairs, joined: Pairs, channels: int) -> ChannelMap:
    """The map with these channels, and unicast to everybody whom they do not reach."""
    map = ChannelMap(channels, sent, joined, NO_PAIRS)
    bits = map.member_bits(len(problem.subscribers))
    starts = sent.starts(problem.size)
    missing = unreached(problem.indptr, problem.audience, starts, sent.right, bits)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    return ChannelMap(channels, sent, joined, pairs(row[missing], problem.audience[missing]))


@compiled
def unreached(
    indptr: Longs, audience: Ints, starts: Longs, channels: Ints, members: Bitmap
) -> np.ndarray:
    """Whether each (row, interested subscriber) pair is served by none of the row's channels."""
    missing = np.empty(len(audience), dtype=np.bool_)
    for row in range(len(indptr) - 1):
        used = channels[starts[row] : starts[row + 1]]
        for i in range(indptr[row], indptr[row + 1]):
            missing[i] = not joined_any(members, used, audience[i])
    return missing
