"""Following drift: what the policy of `fanplan watch` costs, and how much it changes.

    python benchmarks/drift.py [market|enterprise …] [--windows N] [--flows N] [--gap SHARE] …

Interest moves between users, rates wander, flash crowds come for a while, brokers go with their
clients and return. Rates are estimated from what was sent, with a half-life; interest is known.
Beside the policy stand plans that are never changed, made afresh in every window, and made once for
all windows together. Changes are pairs of a channel and a member or a flow, with the numbers of
channels matched so that they are fewest. Costs are those of what is truly sent. "Known ahead" takes
the same steps in every FORESEEN_EVERY-th window, for what the next FORESEEN will be like on
average, which nobody can know. The bound is one that no plan undercuts, in every BOUND_EVERY-th
window. Seconds are processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
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
from fanplan.watching.params import PolicyParams
from fanplan.watching.simulate import Course, courses
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.enterprise import FILTERS, VENUE, VENUE_SHARES, EnterpriseParams
from fanplan.workload.generators.plain_topics import MarketParams

W = Weights()
HALF_LIFE = 10
BOUND_EVERY, TOLD_EVERY, PART = 20, 100, 50
FORESEEN, FORESEEN_EVERY = 30, 10
BROKERS = 12
AMOUNTS = np.array([0, 250, 500, 750])
SENT = 5_000
"""Messages of a window, on average."""


@dataclass(frozen=True)
class Plan:
    """Which flows go to which channels, and who is a member of them."""

    carried: np.ndarray
    members: np.ndarray


@dataclass(frozen=True)
class Window:
    """Who wants what, what is believed to be sent, and what is."""

    wanted: np.ndarray
    estimate: np.ndarray
    sent: np.ndarray
    channels: int

    def believed(self, plan: Plan) -> float:
        return self.cost(plan, self.estimate)

    def true(self, plan: Plan) -> float:
        return self.cost(plan, self.sent)

    def cost(self, plan: Plan, messages: np.ndarray) -> float:
        """Who is not reached by a channel gets unicast, and who is away receives nothing."""
        each = plan.carried @ (W.w1 * plan.members[:, self.present].sum(axis=1) + W.w2)
        reached = plan.carried.astype(np.float32) @ plan.members.astype(np.float32) > 0
        return float(messages @ (each + W.unicast * (self.wanted & ~reached).sum(axis=1)))

    def fresh(self) -> Plan:
        return self.afresh

    @cached_property
    def afresh(self) -> Plan:
        return self.planned(KmodesParams(self.channels, W))

    def step(self, plan: Plan, churn: int, price: float) -> Plan:
        at = self.rows
        assigned = map_pairs(*np.nonzero(plan.carried[at]))
        members = map_pairs(*np.nonzero(plan.members[:, self.present]))
        start = ChannelMap(self.channels, assigned, members, NO_PAIRS)
        # A price of 0 and no limit would be a plan afresh.
        dear = max(price, 1e-9)
        params = KmodesParams(self.channels, W, start=start, max_changes=churn, change_price=dear)
        return self.planned(params)

    def changes(self, old: Plan, new: Plan) -> int:
        """With channels numbered so that most is the same; who is away is told nothing."""
        rows = [np.vstack([p.carried, p.members[:, self.present].T]) for p in (old, new)]
        both = rows[0].T.astype(np.float32) @ rows[1].astype(np.float32)
        same = both[linear_sum_assignment(both, maximize=True)].sum()
        return int(rows[0].sum() + rows[1].sum() - 2 * same)

    @cached_property
    def present(self) -> np.ndarray:
        """Who wants something: a subscriber without subscriptions is in no dataset."""
        return np.flatnonzero(self.wanted.any(axis=0))

    @cached_property
    def rows(self) -> np.ndarray:
        """Flows that somebody wants and that are sent."""
        return np.flatnonzero(self.wanted.any(axis=1) & (self.estimate > 0))

    @cached_property
    def problem(self) -> InterestProblem:
        flow, user = np.nonzero(self.wanted[np.ix_(self.rows, self.present)])
        names = [f"u{i}" for i in self.present]
        return from_pairs(flow, user, self.estimate[self.rows], names=names, kind="flow")

    def planned(self, params: KmodesParams) -> Plan:
        found = kmodes(self.problem, params, 0, never)
        carried = np.zeros((len(self.wanted), self.channels), bool)
        members = np.zeros((self.channels, self.wanted.shape[1]), bool)
        carried[self.rows[found.assigned.left], found.assigned.right] = True
        members[found.members.left, self.present[found.members.right]] = True
        return Plan(carried, members)

    def bound(self) -> float:
        """No plan costs less in this window."""
        flow, user = np.nonzero(self.wanted)
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
    wanted: np.ndarray, rates: np.ndarray, windows: int, channels: int, seed: int
) -> Iterator[Window]:
    """Windows of a workload that drifts; the first is planned for."""
    random = np.random.default_rng(seed)
    base, (flows, users) = rates / rates.sum() * SENT, wanted.shape
    wanted, walk, estimate, weight = wanted.copy(), np.zeros(flows), np.zeros(flows), 0.0
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
        now[:, away[broker] > 0] = False
        sent = random.poisson(rate).astype(float)
        yield Window(now, estimate / weight if weight else base, sent, channels)
        kept = 0.5 ** (1 / HALF_LIFE)
        estimate, weight = kept * estimate + sent, kept * weight + 1


def move(random: np.random.Generator, wanted: np.ndarray, user: int) -> None:
    """A user gives up a tenth of what it wants for what another one wants."""
    own = np.flatnonzero(wanted[:, user])
    other = np.flatnonzero(wanted[:, random.integers(wanted.shape[1])] & ~wanted[:, user])
    size = min(len(own), len(other), max(1, len(own) // 10))
    wanted[random.choice(own, size, replace=False), user] = False
    wanted[random.choice(other, size, replace=False), user] = True


def together(windows: list[Window]) -> Window:
    """One window that stands for all: whoever wants a flow most of the time wants it."""
    mean = np.mean([window.wanted for window in windows], axis=0)
    sent = np.mean([window.sent for window in windows], axis=0)
    return Window(mean >= 0.5, sent, sent, windows[0].channels)


def known_ahead(windows: list[Window], first: Plan, policy: PolicyParams) -> Course[Plan]:
    """Steps for what comes; whoever is away in all of these windows keeps the place."""
    course = Course(first)
    for number, window in enumerate(windows):
        plan = course.plan
        if number % FORESEEN_EVERY == 0:
            coming = ahead(windows[number : number + FORESEEN])
            step = coming.step(plan, policy.churn, policy.price(coming.believed(plan)))
            carried, members = plan.carried.copy(), plan.members.copy()
            carried[coming.rows] = step.carried[coming.rows]
            members[:, coming.present] = step.members[:, coming.present]
            plan = Plan(carried, members)
        course.go_on(window, plan)
    return course


def ahead(windows: list[Window]) -> Window:
    """One window for all: whoever wants a flow in half of the windows with any wish wants it."""
    there = np.mean([window.wanted.any(axis=0) for window in windows], axis=0)
    mean = np.mean([window.wanted for window in windows], axis=0) / np.maximum(there, 1e-9)
    sent = np.mean([window.sent for window in windows], axis=0)
    return Window(mean >= 0.5, sent, sent, windows[0].channels)


def told(windows: list[Window], kind: str) -> Iterator[Window]:
    """The windows one by one; how far it is goes to stderr."""
    for number, window in enumerate(windows):
        if number % TOLD_EVERY == 0:
            print(f"{kind}: window {number:,} of {len(windows):,}", file=sys.stderr, flush=True)
        yield window


def measure(kind: str, asked: argparse.Namespace) -> Iterator[str]:
    """A row for each way to replan, and one for the bound."""
    world = KINDS[kind](asked.flows, asked.users, asked.seed)
    windows = list(drifting(*world, asked.windows, asked.channels, asked.seed))
    first, later = windows[0].fresh(), together(windows).fresh()
    policy = PolicyParams(**{item.name: getattr(asked, item.name) for item in fields(PolicyParams)})
    found = courses(told(windows, kind), first, later, policy)
    found["known ahead"] = known_ahead(windows, first, policy)
    fresh = found["every window"]
    for name, course in found.items():
        over, parts = sum(course.costs) / sum(fresh.costs), range(0, len(windows), PART)
        worst = max(sum(course.costs[i : i + PART]) / sum(fresh.costs[i : i + PART]) for i in parts)
        changes, of = sum(course.changes), sum(course.changes) / max(1, sum(fresh.changes))
        figures = f"{sum(course.costs):,.0f} | {100 * over - 100:.2f} | {100 * worst - 100:.2f}"
        yield f"| {kind} | {name} | {figures} | {changes:,} | {100 * of:.2f} |"
    some = range(0, len(windows), BOUND_EVERY)
    bound = sum(windows[i].bound() for i in some) / sum(fresh.costs[i] for i in some)
    yield f"| {kind} | bound | | {100 * bound - 100:.2f} | | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="market|enterprise")
    sizes = {"windows": 1_000, "flows": 600, "users": 120, "channels": 24, "seed": 0}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for item in fields(PolicyParams):
        option = f"--{item.name.replace('_', '-')}"
        parser.add_argument(option, type=type(item.default), default=item.default)
    asked = parser.parse_args()
    print(f"| workload | way | cost | over fresh % | worst {PART} windows % | changes | of its % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in asked.kinds or KINDS:
        began = time.process_time()
        for row in measure(kind, asked):
            print(row, flush=True)
        print(f"{kind}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
