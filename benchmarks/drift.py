"""Following drift: what the policy of `fanplan watch` costs, and how much it changes.

    python benchmarks/drift.py [market|enterprise …] [--sizes small medium large] [--windows N]
        [--seeds 0 …] [--gap SHARE] …

Interest moves between users, rates wander, flash crowds come for a while, brokers go with their
clients and return; these keep their subscriptions meanwhile, and receive nothing. Rates are
estimated from what was sent, with the half-life of `fanplan watch`; interest is known. Beside the
policy stand plans that are never changed, made afresh in every window, and made once for all
windows together. Changes are pairs of a channel and a member or a flow, with the numbers of
channels matched so that they are fewest. Costs are those of what is truly sent. The bound is one
that no plan undercuts, in every BOUND_EVERY-th window. Seconds are processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.bounds import best_bounds
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.watching.params import PolicyParams, WatchParams
from fanplan.watching.planning import TRIALS
from fanplan.watching.simulate import courses
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.enterprise import FILTERS, VENUE, VENUE_SHARES, EnterpriseParams
from fanplan.workload.generators.plain_topics import MarketParams

W = Weights()
SIZES = {"small": (600, 120, 24), "medium": (2_400, 240, 48), "large": (10_000, 250, 100)}
"""Flows, users and channels; the large one is that of the Market of Bickson et al."""
BOUND_EVERY, TOLD_EVERY, PART = 20, 100, 50
BROKERS = 12
AMOUNTS = np.array([0, 250, 500, 750])
SENT = 25 / 3
"""Messages of a flow in a window, on average."""


@dataclass(frozen=True)
class Plan:
    """Which flows go to which channels, and who is a member of them."""

    carried: np.ndarray
    members: np.ndarray


@dataclass(frozen=True)
class Window:
    """Who wants what, who is there, what is believed to be sent, and what is.

    Who is away has not given up what it wants: that is known of subscriptions, and nothing else.
    """

    wanted: np.ndarray
    there: np.ndarray
    estimate: np.ndarray
    sent: np.ndarray
    channels: int

    def believed(self, plan: Plan) -> float:
        return self.cost(plan, self.estimate, self.subscribed, self.wanted)

    def true(self, plan: Plan) -> float:
        """Who is away receives nothing."""
        return self.cost(plan, self.sent, np.flatnonzero(self.there), self.wanted & self.there)

    def cost(
        self, plan: Plan, messages: np.ndarray, users: np.ndarray, wanted: np.ndarray
    ) -> float:
        """Who is not reached by a channel gets unicast."""
        each = plan.carried @ (W.w1 * plan.members[:, users].sum(axis=1) + W.w2)
        reached = plan.carried.astype(np.float32) @ plan.members.astype(np.float32) > 0
        return float(messages @ (each + W.unicast * (wanted & ~reached).sum(axis=1)))

    def fresh(self) -> Plan:
        return self.afresh

    @cached_property
    def afresh(self) -> Plan:
        return self.planned(KmodesParams(self.channels, W))

    def step(self, plan: Plan, churn: int, price: float) -> Plan:
        at = self.rows
        assigned = map_pairs(*np.nonzero(plan.carried[at]))
        members = map_pairs(*np.nonzero(plan.members[:, self.subscribed]))
        start = ChannelMap(self.channels, assigned, members, NO_PAIRS)
        # A price of 0 and no limit would be a plan afresh.
        dear = max(price, 1e-9)
        params = KmodesParams(self.channels, W, start=start, max_changes=churn, change_price=dear)
        return self.planned(replace(params, swaps=TRIALS))

    def changes(self, old: Plan, new: Plan) -> int:
        """With channels numbered so that most is the same."""
        rows = [np.vstack([p.carried, p.members.T]) for p in (old, new)]
        both = rows[0].T.astype(np.float32) @ rows[1].astype(np.float32)
        same = both[linear_sum_assignment(both, maximize=True)].sum()
        return int(rows[0].sum() + rows[1].sum() - 2 * same)

    def places(self, plan: Plan) -> int:
        return int(plan.carried.sum() + plan.members.sum())

    @cached_property
    def subscribed(self) -> np.ndarray:
        """Who wants something: a subscriber without subscriptions is in no dataset."""
        return np.flatnonzero(self.wanted.any(axis=0))

    @cached_property
    def rows(self) -> np.ndarray:
        """Flows that somebody wants and that are sent."""
        return np.flatnonzero(self.wanted.any(axis=1) & (self.estimate > 0))

    @cached_property
    def problem(self) -> InterestProblem:
        flow, user = np.nonzero(self.wanted[np.ix_(self.rows, self.subscribed)])
        names = [f"u{i}" for i in self.subscribed]
        return from_pairs(flow, user, self.estimate[self.rows], names=names, kind="flow")

    def planned(self, params: KmodesParams) -> Plan:
        found = kmodes(self.problem, params, 0, never)
        carried = np.zeros((len(self.wanted), self.channels), bool)
        members = np.zeros((self.channels, self.wanted.shape[1]), bool)
        carried[self.rows[found.assigned.left], found.assigned.right] = True
        members[found.members.left, self.subscribed[found.members.right]] = True
        return Plan(carried, members)

    def bound(self) -> float:
        """No plan costs less in this window."""
        flow, user = np.nonzero(self.wanted & self.there)
        names = [f"u{i}" for i in range(self.wanted.shape[1])]
        true = from_pairs(flow, user, self.sent, names=names)
        return max(found.cost for found in best_bounds(true, W, self.channels)[:1])


def market(flows: int, users: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Who wants which symbol, and the rates of symbols."""
    made = load_kind("market").generate(MarketParams(flows=flows, users=users), seed)
    table = made.tables["subscriptions"]
    user = table["subscriber"].combine_chunks().indices.to_numpy()
    place = {name: i for i, name in enumerate(made.law.topics.to_pylist())}
    wanted = np.zeros((flows, users), bool)
    wanted[[place[name] for name in table["topic"].to_pylist()], user] = True
    return wanted, made.law.rates


def enterprise(flows: int, users: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by symbol, venue and amount: filters end where these cells end."""
    cells = len(VENUE.values) * len(AMOUNTS)
    symbols = max(8, flows // cells)
    params = EnterpriseParams(flows=symbols, users=users)
    made = load_kind("enterprise").generate(params, seed)
    table = made.tables["subscriptions"]
    place = {name: i for i, name in enumerate(made.law.topics.to_pylist())}
    venue, amount = (a.ravel() for a in np.meshgrid(range(3), AMOUNTS, indexing="ij"))
    inside = {
        "": np.ones(cells, bool),
        FILTERS[0]: venue == 0,
        FILTERS[1]: venue <= 1,
        FILTERS[2]: amount >= 500,
        FILTERS[3]: amount >= 750,
        FILTERS[4]: (venue == 0) & (amount >= 250),
    }
    wanted = np.zeros((symbols, cells, users), bool)
    names = {name: i for i, name in enumerate(sorted(set(table["subscriber"].to_pylist())))}
    for row in table.select(["subscriber", "topic", "filter"]).to_pylist():
        wanted[place[row["topic"]], :, names[row["subscriber"]]] |= inside[row["filter"] or ""]
    share = VENUE_SHARES[venue] / len(AMOUNTS)
    return wanted.reshape(-1, users), (made.law.rates[:, None] * share).ravel()


KINDS = {"market": market, "enterprise": enterprise}


def drifting(
    wanted: np.ndarray,
    rates: np.ndarray,
    windows: int,
    channels: int,
    seed: int,
    half_life: float,
) -> Iterator[Window]:
    """Windows of a workload that drifts; the first is planned for."""
    random = np.random.default_rng(seed)
    flows, users = wanted.shape
    base = rates / rates.sum() * SENT * flows
    wanted, walk = wanted.copy(), np.zeros(flows)
    estimate, weight = np.zeros(flows), 0.0
    broker, away = random.integers(0, BROKERS, users), np.zeros(BROKERS, int)
    crowd, left, joined = np.zeros(0, int), 0, np.zeros(0, int)
    for _ in range(windows):
        walk = 0.98 * walk + random.normal(0, 0.05, flows)
        for user in random.choice(users, random.poisson(0.02 * users), replace=False):
            move(random, wanted, user)
        away = np.maximum(away - 1, 0)
        if random.random() < 0.01:
            away[random.integers(BROKERS)] = 30
        left -= 1
        if left < 0 and random.random() < 0.02:
            first, left = random.integers(flows), 20
            crowd = np.arange(first, first + max(1, flows // 50)) % flows
            joined = random.choice(users, users // 5, replace=False)
        now, rate = wanted.copy(), base * np.exp(walk)
        if left >= 0 and len(crowd):
            rate[crowd] *= 10
            now[np.ix_(crowd, joined)] = True
        sent = random.poisson(rate).astype(float)
        yield Window(now, away[broker] == 0, estimate / weight if weight else base, sent, channels)
        kept = 0.5 ** (1 / half_life)
        estimate, weight = kept * estimate + sent, kept * weight + 1


def move(random: np.random.Generator, wanted: np.ndarray, user: int) -> None:
    """A user gives up a tenth of what it wants for what another one wants."""
    own = np.flatnonzero(wanted[:, user])
    other = np.flatnonzero(wanted[:, random.integers(wanted.shape[1])] & ~wanted[:, user])
    size = min(len(own), len(other), max(1, len(own) // 10))
    wanted[random.choice(own, size, replace=False), user] = False
    wanted[random.choice(other, size, replace=False), user] = True


def together(windows: Iterator[Window]) -> Window:
    """One window that stands for all: whoever wants a flow most of the time wants it."""
    first = next(windows)
    wanted, sent, count = first.wanted.astype(np.int32), first.sent.copy(), 1
    for window in windows:
        wanted += window.wanted
        sent += window.sent
        count += 1
    return replace(first, wanted=2 * wanted >= count, estimate=sent / count)


def measure(kind: str, size: str, seed: int, asked: argparse.Namespace) -> str:
    """A row: costs over those of fresh plans, changes, and the bound."""
    flows, users, channels = SIZES[size]
    world = KINDS[kind](flows, users, seed)

    def windows() -> Iterator[Window]:
        return drifting(*world, asked.windows, channels, seed, asked.half_life)

    bounds: dict[int, float] = {}

    def told() -> Iterator[Window]:
        """The windows one by one, with bounds of some; how far it is goes to stderr."""
        for number, window in enumerate(windows()):
            if number % TOLD_EVERY == 0:
                at = f"{kind}, {size}, seed {seed}: window {number:,} of {asked.windows:,}"
                print(at, file=sys.stderr, flush=True)
            if number % BOUND_EVERY == 0:
                bounds[number] = window.bound()
            yield window

    first, later = next(windows()).fresh(), together(windows()).fresh()
    policy = PolicyParams(**{item.name: getattr(asked, item.name) for item in fields(PolicyParams)})
    found = courses(told(), first, later, policy)
    fresh, own = found["every window"], found["policy"]
    over = {name: percent_over(course.costs, fresh.costs) for name, course in found.items()}
    parts = [slice(i, i + PART) for i in range(0, asked.windows, PART)]
    worst = max(percent_over(own.costs[part], fresh.costs[part]) for part in parts)
    bound = percent_over(list(bounds.values()), [fresh.costs[number] for number in bounds])
    costs = [over["never"], over["hindsight"], over["policy"], worst, bound]
    told_costs = " | ".join(f"{cost:.2f}" for cost in costs)
    changes, of = sum(own.changes), max(1, sum(fresh.changes))
    title = f"{kind}, {size} | {seed}"
    return f"| {title} | {told_costs} | {changes:,} | {of:,} | {100 * changes / of:.2f} |"


def percent_over(costs: list[float], others: list[float]) -> float:
    """How much more they are together."""
    return 100 * (sum(costs) / sum(others) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="market|enterprise")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--windows", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    for item in fields(PolicyParams):
        number = float if "float" in str(item.type) else int
        parser.add_argument(f"--{item.name.replace('_', '-')}", type=number, default=item.default)
    parser.add_argument("--half-life", type=float, default=WatchParams.half_life)
    asked = parser.parse_args()
    print(f"Costs in % over fresh plans; the worst are those of the policy in {PART} windows.\n")
    head = (
        "workload | seed | never | hindsight | policy | worst | bound | changes | fresh | of it %"
    )
    print(f"| {head} |\n|{' --- |' * 10}")
    for size in asked.sizes:
        for kind in asked.kinds or KINDS:
            for seed in asked.seeds:
                began = time.process_time()
                print(measure(kind, size, seed, asked), flush=True)
                seconds = time.process_time() - began
                print(f"{kind}, {size}, seed {seed}: {seconds:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
