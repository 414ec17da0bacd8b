"""Which subscriptions go by multicast (Guimarães & Rodrigues 2003, section 5.2): the heavy ones."""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.published.genetic.params import EvolutionParams, GeneticParams
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem, lists
from fanplan.layers.channels.published.genetic.weight import subscription_weight

CONTENT_SHARE = 0.7


def heavy_subscriptions(problem: SubscriptionProblem, params: GeneticParams) -> Longs:
    """Positions of the subscriptions to map; all of them if they are subject-based."""
    share = params.heavy
    if share is None:
        share = CONTENT_SHARE if problem.content_based else 1.0
    how = params.probability, params.sample, params.weight
    return heaviest(subscription_weight(problem, *how), share)


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


def heavy_rows(problem: InterestProblem, params: EvolutionParams) -> Longs:
    """Positions of the rows to map: the part with most messages, or all."""
    return heaviest(problem.messages, 1.0 if params.heavy is None else params.heavy)


def heaviest(weights: Floats, share: float) -> Longs:
    """Positions of the heaviest part, ascending; of equal weights the first ones."""
    count = math.ceil(share * len(weights) - 1e-9)
    return np.sort(np.argsort(-weights, kind="stable")[:count])
