"""Interest in plain topics, after section 5 of Bickson et al.: market, random and WebSphere twice.

*market*: human portfolios, constants of ours. Topics are symbols in markets of equal size, most
popular first. A user follows a few markets, chosen by Zipf weight, and in each wants a symbol with
a chance that falls exponentially with its rank. Users differ in activity: some want ten times what
others want.

*random*: no structure that a plan could use. Every user wants every topic with the same chance,
and all topics have the same rate.

*websphere*: mechanical interest, like the cell of the paper, whose trace is not public. Processes
subscribe by configuration, so many topics have the same audience. A process has a role; an audience
is a few whole roles, give or take a few processes; a topic takes its audience from a pool, by Zipf
weight, and some topics are noisy copies. All topics have the same rate.

*structured*: the same with four times the roles, of very different size, and more of them in an
audience: few audiences are alike, so there is less to be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import (
    choose_by_weight,
    grouped_names,
    keep,
    names,
    streams,
    with_mean,
    zipf,
)
from fanplan.workload.generators.generated import (
    Generated,
    GeneratorParams,
    InterestPairs,
    PublicationLaw,
    WorkloadKind,
    describe,
    subscribed,
)


@dataclass(frozen=True)
class MarketParams(GeneratorParams):
    """Decays are fractions of a market's size: the rank at which a value has fallen to 1/e."""

    flows: int = option(10_000, "number of symbols, each a topic", at_least=1)
    users: int = option(250, "number of subscribers", at_least=1)
    markets: int = option(10, "number of markets of equal size", at_least=1)
    markets_per_user: int = option(4, "markets each user follows", at_least=1)
    zipf: float = option(1.0, "Zipf exponent of the markets' weights", at_least=0)
    want: float = option(0.8, "chance that a user wants a market's first symbol", above=0)
    want_decay: float = option(0.15, "decay of that chance with rank", above=0)
    rate_floor: float = option(0.01, "rate of the last symbols, if the first has 1", at_least=0)
    rate_decay: float = option(0.2, "decay of the rate with rank", above=0)
    activity_sigma: float = option(1.0, "log-normal sigma of users' activity; 0: equal", at_least=0)

    def relations(self) -> Iterator[Problem]:
        if self.markets > self.flows:
            what = f"{self.markets} markets for {self.flows} flows"
            yield Problem("markets", what, "Give at most as many markets as flows")
        if self.markets_per_user > self.markets:
            what = f"{self.markets_per_user} of {self.markets} markets"
            yield Problem("markets_per_user", what, "Give at most as many as there are markets")


def generate_market(params: MarketParams, seed: int) -> Generated:
    """A market workload; time and memory grow with the number of subscriptions."""
    interest = draw_portfolios(params, market_starts(params), seed)
    return subscribed(describe("market"), market_law(params), names("u", params.users), interest)


def market_starts(params: MarketParams) -> np.ndarray:
    """The first symbol of each market, with the end appended."""
    return np.linspace(0, params.flows, params.markets + 1).astype(np.int64)


def market_law(params: MarketParams) -> PublicationLaw:
    """What is sent: each symbol by the exchange of its market."""
    starts = market_starts(params)
    sizes = np.diff(starts)
    market = np.repeat(np.arange(params.markets), sizes)
    rank = np.arange(params.flows) - starts[market]
    return PublicationLaw(
        grouped_names("m", market, "s", rank),
        symbol_rates(params, market, rank / sizes[market]),
        names("exchange", params.markets).take(pa.array(market)),
        params.message_bytes,
    )


def symbol_rates(params: MarketParams, market: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Rate of each symbol, messages/s; depth is its rank as a fraction of its market's size."""
    shape = params.rate_floor + np.exp(-depth / params.rate_decay)
    return with_mean(zipf(params.markets, params.zipf)[market] * shape, params.rate)


def draw_portfolios(params: MarketParams, starts: np.ndarray, seed: int) -> InterestPairs:
    """Who wants which symbols, ordered by user."""
    choosing, activity, wanting = streams(seed, 3)
    weights = zipf(params.markets, params.zipf)
    chosen = choose_by_weight(choosing, params.users, weights, params.markets_per_user)
    active = draw_activity(activity, params)
    chances = [want_chances(params, int(size)) for size in np.diff(starts)]
    wanted = [
        keep(wanting, chances[m], active[user]) + starts[m]
        for user in range(params.users)
        for m in chosen[user]
    ]
    followers = np.repeat(np.arange(params.users), params.markets_per_user)
    return np.repeat(followers, [len(w) for w in wanted]), np.concatenate(wanted)


def draw_activity(rng: np.random.Generator, params: MarketParams) -> np.ndarray:
    """Log-normal factors with median one: half of the users are less active than that."""
    return rng.lognormal(0.0, params.activity_sigma, params.users)


def want_chances(params: MarketParams, size: int) -> np.ndarray:
    """Chance that a user of activity one wants each symbol of a market that the user follows."""
    return params.want * np.exp(-np.arange(size) / (params.want_decay * size))


@dataclass(frozen=True)
class RandomParams(GeneratorParams):
    """Sizes of the market workload, which this one is compared with."""

    flows: int = option(10_000, "number of topics", at_least=1)
    users: int = option(250, "number of subscribers", at_least=1)
    interest: float = option(0.03, "chance that a user wants a topic", above=0, at_most=1)


def generate_random(params: RandomParams, seed: int) -> Generated:
    """A random workload; time and memory grow with the number of subscriptions."""
    (wanting,) = streams(seed, 1)
    chances = np.full(params.flows, params.interest)
    wanted = [keep(wanting, chances, 1.0) for _ in range(params.users)]
    who = np.repeat(np.arange(params.users), [len(w) for w in wanted])
    law, users = even_law(names("f", params.flows), params), names("u", params.users)
    return subscribed(describe("random"), law, users, (who, np.concatenate(wanted)))


def even_law(topics: pa.Array, params: RandomParams | WebsphereParams) -> PublicationLaw:
    """The same rate for all topics, each with a publisher of its own."""
    rates = np.full(len(topics), params.rate)
    return PublicationLaw(topics, rates, names("p", len(topics)), params.message_bytes)


@dataclass(frozen=True)
class WebsphereParams(GeneratorParams):
    """Sizes of the published cell. Memory: one byte per topic and process."""

    topics: int = option(6_100, "number of topics", at_least=1)
    processes: int = option(79, "number of subscribers", at_least=1)
    pool: int = option(300, "number of audiences that topics choose from", at_least=1)
    zipf: float = option(1.0, "Zipf exponent of the audiences' weights", at_least=0)
    roles: int = option(5, "number of roles a process may have", at_least=1)
    role_zipf: float = option(0.0, "Zipf exponent of the roles' sizes; 0: equal", at_least=0)
    roles_per_audience: float = option(2.0, "mean number of roles in an audience", at_least=1)
    deviation: float = option(
        0.05, "chance that a process differs from its role in an audience", at_least=0, at_most=1
    )
    noisy: float = option(0.1, "fraction of topics with noise", at_least=0, at_most=1)
    noise: float = option(
        0.05, "chance that a process changes its mind on a noisy topic", at_least=0, at_most=1
    )


@dataclass(frozen=True)
class StructuredParams(WebsphereParams):
    """More roles, of different size: constants that come near the recorded figures."""

    roles: int = option(20, "number of roles a process may have", at_least=1)
    role_zipf: float = option(1.0, "Zipf exponent of the roles' sizes; 0: equal", at_least=0)
    roles_per_audience: float = option(3.0, "mean number of roles in an audience", at_least=1)
    deviation: float = option(
        0.01, "chance that a process differs from its role in an audience", at_least=0, at_most=1
    )
    noise: float = option(
        0.02, "chance that a process changes its mind on a noisy topic", at_least=0, at_most=1
    )


def generate_websphere(params: WebsphereParams, seed: int) -> Generated:
    """A workload like a WebSphere cell; O(topics × processes)."""
    law = even_law(names("t", params.topics), params)
    what, who = np.nonzero(draw_role_interest(params, seed))
    name = "structured" if isinstance(params, StructuredParams) else "websphere"
    return subscribed(describe(name), law, names("u", params.processes), (who, what))


def draw_role_interest(params: WebsphereParams, seed: int) -> np.ndarray:
    """The interest matrix, topics × processes."""
    audiences, choosing, noise = streams(seed, 3)
    pool = draw_pool(params, audiences)
    interest = pool[choosing.choice(params.pool, params.topics, p=zipf(params.pool, params.zipf))]
    noisy = np.flatnonzero(noise.random(params.topics) < params.noisy)
    interest[noisy] ^= noise.random((noisy.size, params.processes)) < params.noise
    return interest


def draw_pool(params: WebsphereParams, rng: np.random.Generator) -> np.ndarray:
    """The audiences to choose from, pool × processes: whole roles with a few deviations."""
    role = draw_roles(params, rng)
    count = rng.geometric(1 / params.roles_per_audience, params.pool)
    places = rng.permuted(np.tile(np.arange(params.roles), (params.pool, 1)), axis=1)
    pool = (places < count[:, None])[:, role]
    return pool ^ (rng.random(pool.shape) < params.deviation)


def draw_roles(params: WebsphereParams, rng: np.random.Generator) -> np.ndarray:
    """The role of each process."""
    if params.role_zipf == 0:
        return rng.integers(0, params.roles, params.processes)
    return rng.choice(params.roles, params.processes, p=zipf(params.roles, params.role_zipf))


MARKET = WorkloadKind(
    "market", "human portfolios in a financial market", MarketParams, generate_market
)
RANDOM = WorkloadKind(
    "random", "every user wants every topic with the same chance", RandomParams, generate_random
)
WEBSPHERE = WorkloadKind(
    "websphere",
    "mechanical interest, with many equal audiences",
    WebsphereParams,
    generate_websphere,
)
STRUCTURED = WorkloadKind(
    "structured",
    "mechanical interest, with many roles of different size",
    StructuredParams,
    generate_websphere,
)
