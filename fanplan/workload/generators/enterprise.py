"""An enterprise: market data with filters, desks on several sites, brokers on every site.

Topics, rates and portfolios are those of `market`. Users sit on sites, and users of a site follow
much the same markets. Some follow a symbol only at certain venues or above a certain amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import choose_by_weight, keep, names, streams, zipf
from fanplan.workload.generators.generated import (
    AxisLaw,
    Generated,
    InterestPairs,
    WorkloadKind,
    describe,
    generated_brokers,
    generated_links,
    subscribed,
)
from fanplan.workload.generators.plain_topics import (
    MarketParams,
    draw_activity,
    market_law,
    market_starts,
    want_chances,
)
from fanplan.workload.space import CategoryAttribute, NumberAttribute

VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))
VENUE_SHARES = np.array([0.5, 0.35, 0.15])
AMOUNT = NumberAttribute("amount", 0.0, 1000.0, "thousand USD")
AMOUNT_CELLS = 4
FILTERS = (
    "venue = 'N'",
    "venue IN ('N', 'Q')",
    "amount >= 500",
    "amount >= 750",
    "venue = 'N' AND amount >= 250",
)
"""House styles of filters; they end where cells of the grid end, so that no cell is cut."""


@dataclass(frozen=True)
class EnterpriseParams(MarketParams):
    """Sizes of `market`, smaller, and of the network."""

    flows: int = option(400, "number of symbols, each a topic", at_least=1)
    users: int = option(200, "number of subscribers", at_least=1)
    markets: int = option(8, "number of markets of equal size", at_least=1)
    markets_per_user: int = option(3, "markets each user follows", at_least=1)
    sites: int = option(4, "number of sites", at_least=1)
    brokers_per_site: int = option(3, "brokers on each site", at_least=1)
    local: float = option(4.0, "how much more users follow the markets of their site", at_least=1)
    filtered: float = option(0.5, "share of subscriptions with a filter", at_least=0, at_most=1)
    capacity: float = option(100_000.0, "messages/s that a broker can process", above=0)
    site_ms: float = option(0.2, "latency of a link inside a site, ms", above=0)
    wide_ms: float = option(20.0, "mean latency of a link between sites, ms", above=0)

    def relations(self) -> Iterator[Problem]:
        yield from super().relations()
        if self.users < self.sites * self.brokers_per_site:
            what = f"{self.users} users for {self.sites * self.brokers_per_site} brokers"
            yield Problem("users", what, "Give at least as many users as brokers")


def generate_enterprise(params: EnterpriseParams, seed: int) -> Generated:
    """An enterprise; time and memory grow with the number of subscriptions."""
    placing, choosing, activity, wanting, filtering, timing = streams(seed, 6)
    law = replace(market_law(params), axes=(AxisLaw(VENUE, VENUE_SHARES), AxisLaw(AMOUNT)))
    brokers = names("b", params.sites * params.brokers_per_site)
    site = np.repeat(np.arange(params.sites), params.brokers_per_site)
    # Each broker has a user, so that none is idle; the rest sit anywhere.
    home = np.arange(params.users) % len(brokers)
    home[len(brokers) :] = placing.integers(0, len(brokers), max(params.users - len(brokers), 0))
    who, what = draw_site_portfolios(params, site[home], choosing, activity, wanting)
    description = describe("enterprise", (VENUE, AMOUNT), (len(VENUE.values), AMOUNT_CELLS))
    filters = draw_filters(params, filtering, who)
    made = subscribed(description, law, names("u", params.users), (who, what), filters)
    entry = entry_brokers(params, len(law.topics))
    sites = names("site", params.sites).take(pa.array(site))
    wanted, sent = made.tables["subscriptions"], made.tables["advertisements"]
    tables = {
        "subscriptions": wanted.append_column("broker", brokers.take(pa.array(home[who]))),
        "advertisements": sent.append_column("broker", brokers.take(pa.array(entry))),
        "brokers": generated_brokers(brokers, params.capacity).append_column("site", sites),
        "links": draw_site_links(params, brokers, timing),
    }
    return replace(made, tables=tables)


def draw_site_portfolios(
    params: EnterpriseParams,
    site: np.ndarray,
    choosing: np.random.Generator,
    activity: np.random.Generator,
    wanting: np.random.Generator,
) -> InterestPairs:
    """Who wants what, as in a market, but every site has markets of its own that it prefers."""
    starts = market_starts(params)
    active = draw_activity(activity, params)
    weights = zipf(params.markets, params.zipf)
    wanted, who = [], []
    for user in range(params.users):
        near = np.arange(params.markets) % params.sites == site[user]
        chosen = choose_by_weight(
            choosing, 1, weights * np.where(near, params.local, 1.0), params.markets_per_user
        )
        for market in chosen[0]:
            size = int(starts[market + 1] - starts[market])
            own = keep(wanting, want_chances(params, size), active[user]) + starts[market]
            wanted.append(own)
            who.append(np.full(len(own), user))
    return np.concatenate(who), np.concatenate(wanted)


def draw_filters(
    params: EnterpriseParams, rng: np.random.Generator, who: np.ndarray
) -> list[str | None]:
    """A user has one style of filter and uses it on some of the symbols."""
    style = rng.integers(0, len(FILTERS), params.users)
    used = rng.random(len(who)) < params.filtered
    return [FILTERS[style[user]] if on else None for user, on in zip(who, used, strict=True)]


def entry_brokers(params: EnterpriseParams, topics: int) -> np.ndarray:
    """The exchange of market m is at the first broker of site m mod sites."""
    starts = market_starts(params)
    market = np.repeat(np.arange(params.markets), np.diff(starts))
    return market[:topics] % params.sites * params.brokers_per_site


def draw_site_links(
    params: EnterpriseParams, brokers: pa.Array, rng: np.random.Generator
) -> pa.Table:
    """All brokers of a site are linked with each other, and the first ones of all sites."""
    size = params.brokers_per_site
    firsts = range(0, params.sites * size, size)
    inside = [pair for first in firsts for pair in combinations(range(first, first + size), 2)]
    between = list(combinations(firsts, 2))
    wide = np.round(params.wide_ms * rng.uniform(0.5, 1.5, len(between)), 3)
    a, b = np.array(inside + between, np.int64).reshape(-1, 2).T
    return generated_links(
        brokers, a, b, np.concatenate((np.full(len(inside), params.site_ms), wide))
    )


ENTERPRISE = WorkloadKind(
    "enterprise",
    "market data on several sites, with brokers",
    EnterpriseParams,
    generate_enterprise,
)
