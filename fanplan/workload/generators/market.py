"""A financial market: human portfolios, after section 5 of Bickson et al., constants of ours.

Topics are symbols in markets of equal size, most popular first. A user follows a few markets,
chosen by Zipf weight, and in each wants a symbol with a chance that falls exponentially with its
rank. Users differ in activity: some want ten times what others want.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import Params, option
from fanplan.workload.description import Description
from fanplan.workload.generators.draws import choose, keep, names, streams, with_mean, zipf
from fanplan.workload.generators.generated import Generated, Kind, advertisements, subscriptions
from fanplan.workload.generators.law import PublicationLaw


@dataclass(frozen=True)
class MarketParams(Params):
    """Decays are fractions of a market's size: the rank at which a value has fallen to 1/e."""

    flows: int = option(10_000, "number of symbols, each a topic", at_least=1)
    users: int = option(250, "number of subscribers", at_least=1)
    markets: int = option(10, "number of markets of equal size", at_least=1)
    markets_per_user: int = option(4, "markets each user follows", at_least=1)
    zipf: float = option(1.0, "Zipf exponent of the markets' weights", at_least=0)
    want: float = option(0.8, "chance that a user wants a market's first symbol", above=0)
    want_decay: float = option(0.15, "decay of that chance with rank", above=0)
    rate_floor: float = option(0.01, "rate of the last symbols beside 1 for the first", at_least=0)
    rate_decay: float = option(0.2, "decay of the rate with rank", above=0)
    activity_sigma: float = option(1.0, "log-normal sigma of users' activity; 0: equal", at_least=0)

    def relations(self) -> Iterator[Problem]:
        if self.markets > self.flows:
            what = f"{self.markets} markets for {self.flows} flows"
            yield Problem("markets", what, "Give at most as many markets as flows")
        if self.markets_per_user > self.markets:
            what = f"{self.markets_per_user} of {self.markets} markets"
            yield Problem("markets_per_user", what, "Give at most as many as there are markets")


def generate(params: MarketParams, seed: int) -> Generated:
    """A market workload; time and memory grow with the number of subscriptions."""
    law = market_law(params)
    interest = draw_interest(params, market_starts(params), seed)
    tables = {
        "subscriptions": subscriptions(names("u", params.users), law.topics, interest),
        "advertisements": advertisements(law),
    }
    return Generated(Description(name="market", topic_syntax="nats"), tables, law)


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
        symbol_names(market, rank),
        symbol_rates(params, market, rank / sizes[market]),
        names("exchange", params.markets).take(pa.array(market)),
        params.message_bytes,
    )


def symbol_names(market: np.ndarray, rank: np.ndarray) -> pa.Array:
    """Names such as ``m03.s0127``: the market, then the rank in it."""
    wide, deep = len(str(market[-1])), len(str(rank.max()))
    return pa.array([f"m{m:0{wide}d}.s{r:0{deep}d}" for m, r in zip(market, rank, strict=True)])


def symbol_rates(params: MarketParams, market: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Rate of each symbol, messages/s; depth is its rank as a fraction of its market's size."""
    shape = params.rate_floor + np.exp(-depth / params.rate_decay)
    return with_mean(zipf(params.markets, params.zipf)[market] * shape, params.rate)


def draw_interest(
    params: MarketParams, starts: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Who wants what, as positions of users and of symbols, ordered by user."""
    choosing, activity, wanting = streams(seed, 3)
    chosen = choose(
        choosing, params.users, zipf(params.markets, params.zipf), params.markets_per_user
    )
    active = draw_activity(activity, params.users, params.activity_sigma)
    chances = [want_chances(params, int(size)) for size in np.diff(starts)]
    wanted = [
        keep(wanting, chances[m], active[user]) + starts[m]
        for user in range(params.users)
        for m in chosen[user]
    ]
    who = np.repeat(
        np.repeat(np.arange(params.users), params.markets_per_user), [len(w) for w in wanted]
    )
    return who, np.concatenate(wanted)


def draw_activity(rng: np.random.Generator, users: int, sigma: float) -> np.ndarray:
    """Log-normal factors with median one: half of the users are less active than that."""
    return rng.lognormal(0.0, sigma, users)


def want_chances(params: MarketParams, size: int) -> np.ndarray:
    """Chance that a user of activity one wants each symbol of a market that the user follows."""
    return params.want * np.exp(-np.arange(size) / (params.want_decay * size))


KIND = Kind("market", "human portfolios in a financial market", MarketParams, generate)
