"""*options*: a feed of listed options, as large as that of all exchanges of the United States.

A symbol is an underlying, an expiry, a call or a put, and a strike; its topic has these four words.
Sizes of underlyings, and who follows them, are Zipf's. The larger an underlying, the more expiries
it has: months, quarters, weeks, days. Most traffic is near the money and near the end, and every
day some underlyings are in the news and send many times what they used to.

A subscriber follows underlyings, more of its own sector: all of it, its next expiries, a range of
strikes around the money, or both. ``day`` tells which day it is. Overnight expiries end and new
ones are listed, prices move and ranges with them, and some interest turns to other underlyings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import names, streams, with_mean, zipf
from fanplan.workload.generators.generated import (
    Generated,
    GeneratorParams,
    PublicationLaw,
    WorkloadKind,
    describe,
)

LETTERS = 26
SHARES = (0.01, 0.1, 0.4)
"""Parts of the underlyings that have days, at least weeks, and at least quarters."""
STYLES = (0.3, 0.3, 0.2, 0.2)
"""Chances of a follower of all, of the next expiries, of a range of strikes, of both."""
LASTING = 0.95
"""How much of the news of a day is that of other days."""
NEXT = 6
"""Most of the next expiries that somebody follows."""
WIDTH = (0.05, 0.3)
"""Half of a range of strikes, as a part of all strikes."""
MONTH, QUARTER, WEEK = 21, 63, 5
"""Trading days."""
AT_A_TIME = 500
"""Subscribers whose choices are drawn together: bounds the memory."""


@dataclass(frozen=True)
class OptionsParams(GeneratorParams):
    """Sizes of the feed; the defaults are about those of OPRA."""

    rate: float = option(6.0, "mean rate of a symbol, messages/s", above=0)
    symbols: int = option(1_400_000, "approximate number of symbols, each a topic", at_least=100)
    underlyings: int = option(5_500, "number of underlyings", at_least=1, at_most=LETTERS**4)
    users: int = option(10_000, "number of subscribers", at_least=1)
    follows: float = option(8.0, "mean number of underlyings a user follows", above=0)
    size_skew: float = option(0.6, "Zipf exponent of the symbols of an underlying", at_least=0)
    skew: float = option(1.0, "Zipf exponent of followers and of traffic", at_least=0)
    sectors: int = option(11, "number of sectors", at_least=1)
    local: float = option(8.0, "how much more users follow their own sector", at_least=1)
    activity_sigma: float = option(0.8, "log-normal sigma of users' activity; 0: equal", at_least=0)
    burst_sigma: float = option(1.0, "log-normal sigma of an underlying's day; 0: none", at_least=0)
    day: int = option(0, "number of the day to draw, from 0", at_least=0)
    moved: float = option(0.05, "share of interest that changes overnight", at_least=0, at_most=1)

    def relations(self) -> Iterator[Problem]:
        if self.symbols < 24 * self.underlyings:
            what = f"{self.symbols} symbols for {self.underlyings} underlyings"
            yield Problem("symbols", what, "Give at least 24 for each")


@dataclass(frozen=True, eq=False)
class Listing:
    """What is listed on a day: per underlying its ticker, expiries, strikes and the price.

    ``expiries[u]`` are days, ascending; ``strikes[u]`` is their number, and ``spot[u]`` the strike
    that is at the money.
    """

    tickers: list[str]
    expiries: list[np.ndarray]
    strikes: np.ndarray
    spot: np.ndarray

    def cells(self) -> np.ndarray:
        """Pairs of an expiry and a strike of each underlying; a cell is a call and a put."""
        count: np.ndarray = np.array([len(days) for days in self.expiries]) * self.strikes
        return count


@dataclass(frozen=True, eq=False)
class Follows:
    """Who follows what, ordered by user: the first ``near`` expiries, strikes ``lo`` to ``hi``."""

    user: np.ndarray
    underlying: np.ndarray
    near: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def generate_options(params: OptionsParams, seed: int) -> Generated:
    """The feed of a day; time and memory grow with symbols and subscriptions."""
    listing, follows = draw_listing(params, seed), draw_follows(params, seed)
    topics, publisher = (
        symbol_names(listing),
        np.repeat(np.arange(params.underlyings), 2 * listing.cells()),
    )
    law = PublicationLaw(
        topics,
        np.repeat(cell_rates(params, listing, seed), 2),
        pa.array(listing.tickers).take(pa.array(publisher)),
        params.message_bytes,
    )
    who, what = subscribed_patterns(listing, follows)
    users = pa.DictionaryArray.from_arrays(pa.array(who), names("u", params.users))
    sent = {"publisher": law.publishers, "topic": law.topics, "rate": pa.array(law.rates)}
    tables = {
        "subscriptions": pa.table({"subscriber": users, "topic": what}),
        "advertisements": pa.table(sent),
    }
    return Generated(describe("options"), tables, law)


# ---- what is listed


def draw_listing(params: OptionsParams, seed: int) -> Listing:
    """Underlyings by rank, largest first; their tickers are in no order."""
    naming, pricing, *_ = streams(seed, 6)
    letters = naming.permutation(LETTERS**4)[: params.underlyings]
    rank = np.arange(params.underlyings) / params.underlyings
    level = np.sum([rank < share for share in SHARES], axis=0)
    first = [listed_days(0, kind) for kind in range(len(SHARES) + 1)]
    size = params.symbols * zipf(params.underlyings, params.size_skew)
    count = np.array([len(days) for days in first])[level]
    strikes = np.maximum(3, np.rint(size / (2 * count))).astype(np.int64)
    price = np.full(params.underlyings, 0.5)
    for _ in range(params.day):
        price = np.clip(price + pricing.normal(0.0, 0.03, params.underlyings), 0.1, 0.9)
    today = [listed_days(params.day, kind) for kind in range(len(SHARES) + 1)]
    return Listing(
        [ticker(int(number)) for number in letters],
        [today[kind] for kind in level],
        strikes,
        np.rint(price * (strikes - 1)).astype(np.int64),
    )


def ticker(number: int) -> str:
    """Four letters."""
    return "".join(chr(65 + number // LETTERS**place % LETTERS) for place in range(4))


def listed_days(day: int, level: int) -> np.ndarray:
    """The days on which options expire that are listed on a day, ascending.

    Level 0 has the next four months; each further one quarters, weeks, days as well.
    """
    after = np.arange(day + 1, day + 12 * QUARTER)
    kinds = [after[after % MONTH == 0][:4]]
    kinds.append(after[after % QUARTER == 0])
    kinds.append(after[(after % WEEK == 0) & (after <= day + 2 * MONTH)])
    kinds.append(after[:10])
    return np.unique(np.concatenate(kinds[: level + 1]))


def symbol_names(listing: Listing) -> pa.Array:
    """Topics, in the order of underlyings, expiries, strikes, calls before puts."""
    return pa.array(
        f"{name}.{day:04d}.{side}.{strike:04d}"
        for name, days, strikes in zip(
            listing.tickers, listing.expiries, listing.strikes.tolist(), strict=True
        )
        for day in days.tolist()
        for strike in range(strikes)
        for side in "CP"
    )


def cell_rates(params: OptionsParams, listing: Listing, seed: int) -> np.ndarray:
    """Messages/s of each call, and of the put beside it."""
    # Who is in the news today is likely to be so tomorrow.
    lasting, today = (
        np.random.default_rng((seed, 7, day)).normal(0.0, params.burst_sigma, params.underlyings)
        for day in (0, params.day + 1)
    )
    burst = np.exp(LASTING * lasting + np.sqrt(1 - LASTING**2) * today)
    weight = zipf(params.underlyings, params.skew) * burst
    parts = []
    for u, days in enumerate(listing.expiries):
        soon = 0.05 + np.exp(-(days - params.day) / MONTH)
        far = (np.arange(listing.strikes[u]) - listing.spot[u]) / (0.12 * listing.strikes[u])
        shape = np.outer(soon, 0.01 + np.exp(-(far**2) / 2)).ravel()
        parts.append(weight[u] * shape / shape.sum())
    return with_mean(np.concatenate(parts), params.rate)


# ---- who follows it


def draw_follows(params: OptionsParams, seed: int) -> Follows:
    """Who follows what on the day: the choices of the first day, moved on night by night."""
    choosing, styling = streams(seed, 6)[2:4]
    listing = draw_listing(params, seed)
    user, underlying = draw_choices(params, choosing)
    for night in range(params.day):
        turning = np.random.default_rng((seed, 8, night))
        turned = turning.random(len(user)) < params.moved
        other = turning.choice(
            params.underlyings, len(user), p=zipf(params.underlyings, params.skew)
        )
        underlying = np.where(turned, other, underlying)
    style = styling.choice(len(STYLES), len(user), p=STYLES)
    near = 1 + styling.integers(0, NEXT, len(user))
    half = styling.uniform(*WIDTH, len(user))
    # Whoever turned to what it followed already follows it once.
    once = np.sort(np.unique(user * params.underlyings + underlying, return_index=True)[1])
    user, underlying = user[once], underlying[once]
    style, near, half = style[once], near[once], half[once]
    strikes, spot = listing.strikes[underlying], listing.spot[underlying]
    count = np.array([len(days) for days in listing.expiries])[underlying]
    reach = np.maximum(1, np.rint(half * strikes)).astype(np.int64)
    ranged = style >= 2
    return Follows(
        user,
        underlying,
        np.where(style % 2 == 1, np.minimum(near, count), count),
        np.where(ranged, np.maximum(spot - reach, 0), 0),
        np.where(ranged, np.minimum(spot + reach + 1, strikes), strikes),
    )


def draw_choices(params: OptionsParams, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Users and underlyings, each pair once: by weight, those of the user's sector more."""
    sector = rng.integers(0, params.sectors, params.underlyings)
    home = rng.integers(0, params.sectors, params.users)
    activity = np.exp(rng.normal(0.0, params.activity_sigma, params.users))
    count = np.rint(with_mean(activity, params.follows)).astype(np.int64)
    count = np.clip(count, 1, params.underlyings)
    weight = np.log(zipf(params.underlyings, params.skew))
    users, chosen = [], []
    for first in range(0, params.users, AT_A_TIME):
        some = np.arange(first, min(first + AT_A_TIME, params.users))
        own = np.where(home[some, None] == sector, np.log(params.local), 0.0)
        # The largest of log(weight) + Gumbel noise have the law of draws one after another.
        score = weight + own + rng.gumbel(size=own.shape)
        most = int(count[some].max())
        order = np.argpartition(-score, min(most, score.shape[1] - 1), axis=1)[:, :most]
        order = np.take_along_axis(
            order, np.argsort(-np.take_along_axis(score, order, axis=1), axis=1), axis=1
        )
        taken = np.arange(most) < count[some, None]
        users.append(np.repeat(some, count[some]))
        chosen.append(order[taken])
    return np.concatenate(users), np.concatenate(chosen)


def subscribed_patterns(listing: Listing, follows: Follows) -> tuple[np.ndarray, pa.Array]:
    """Each user's subscriptions, as patterns over the words of symbols."""
    patterns: list[str] = []
    sizes = np.zeros(len(follows.user), np.int64)
    rows = zip(
        *(column.tolist() for column in (follows.underlying, follows.near, follows.lo, follows.hi)),
        strict=True,
    )
    for row, (u, near, lo, hi) in enumerate(rows):
        name, days = listing.tickers[u], listing.expiries[u]
        words = ["*"] if near == len(days) else [f"{day:04d}" for day in days[:near].tolist()]
        before = len(patterns)
        if hi - lo == listing.strikes[u]:
            whole = [f"{name}.>"] if words == ["*"] else [f"{name}.{word}.>" for word in words]
            patterns += whole
        else:
            patterns += [f"{name}.{w}.*.{strike:04d}" for w in words for strike in range(lo, hi)]
        sizes[row] = len(patterns) - before
    return np.repeat(follows.user.astype(np.int32), sizes), pa.array(patterns, pa.string())


OPTIONS = WorkloadKind(
    "options",
    "a feed of listed options, by underlying, expiry and strike",
    OptionsParams,
    generate_options,
)
