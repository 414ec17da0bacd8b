"""Following drift: what the policy of `fanplan watch` costs, and how much it changes.

    python benchmarks/drift.py [market|enterprise …] [--windows N] [--flows N] [--gap SHARE] …

Interest moves between users, rates wander, flash crowds come for a while, brokers go with their
clients and return; these keep their subscriptions meanwhile, and receive nothing. Rates are
estimated from what was sent, with the half-life of `fanplan watch`; interest is known. Beside the
policy stand plans that are never changed, made afresh in every window, and made once for all
windows together. Changes are pairs of a channel and a member or a flow, with the numbers of
channels matched so that they are fewest. Costs are those of what is truly sent. "Told again" is the
policy's course with its changes at the times that would have been best, which nobody can know. The
bound is one that no plan undercuts, in every BOUND_EVERY-th window. Seconds are processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from fanplan.core.kernels import compiled
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
from fanplan.watching.simulate import Course, courses
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.enterprise import FILTERS, VENUE, VENUE_SHARES, EnterpriseParams
from fanplan.workload.generators.plain_topics import MarketParams

W = Weights()
RECEIVED, ONCE, ALONE = W.w1, W.w2, W.unicast
"""What a message costs: each that receives it, each channel, and each by unicast."""
BOUND_EVERY, TOLD_EVERY, PART = 20, 100, 50
ROUNDS, AGAIN = 3, 0.02
"""Rounds in which a course is told again, and what a change costs then, in windows."""
BROKERS = 12
AMOUNTS = np.array([0, 250, 500, 750])
SENT = 5_000
"""Messages of a window, on average."""


@dataclass(frozen=True)
class Plan:
    """Which flows go to which channels, and who is a member of them."""

    carried: np.ndarray
    members: np.ndarray


FIELDS = ("carried", "members")


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
    base, (flows, users) = rates / rates.sum() * SENT, wanted.shape
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


def together(windows: list[Window]) -> Window:
    """One window that stands for all: whoever wants a flow most of the time wants it."""
    mean = np.mean([window.wanted for window in windows], axis=0)
    sent = np.mean([window.sent for window in windows], axis=0)
    return Window(mean >= 0.5, windows[0].there, sent, sent, windows[0].channels)


class Story(NamedTuple):
    """A course told at once, window by window; what is wanted and sent; who is there."""

    carried: np.ndarray
    members: np.ndarray
    wanted: np.ndarray
    sent: np.ndarray
    there: np.ndarray


def told_again(
    windows: list[Window], first: Plan, policy: Course[Plan], price: float
) -> Course[Plan]:
    """The course with each membership, then each flow, as it would best have been over all windows.

    One after the other, all else as it is: the best times to join and leave at a price per change,
    by dynamic programming over what was truly wanted and sent. A local optimum, which nobody could
    know in time.
    """
    wanted = np.array([window.wanted & window.there for window in windows])
    there = np.array([window.there for window in windows])
    sent = np.array([window.sent for window in windows])
    carried, members = (np.array([getattr(p, name) for p in policy.plans]) for name in FIELDS)
    story = Story(carried, members, wanted, sent, there)
    for _ in range(ROUNDS):
        for user in range(members.shape[2]):
            members_again(story, user, price, first.members)
        for flow in range(carried.shape[1]):
            flow_again(story, flow, price, first.carried)
    course = Course(first)
    for number, window in enumerate(windows):
        course.go_on(window, Plan(carried[number], members[number]))
    return course


@compiled
def members_again(story: Story, user: int, price: float, first: np.ndarray) -> None:
    """The best times for a user to be on each channel."""
    carried, members, wanted, sent, there = story
    windows, flows, channels = carried.shape
    gain = np.zeros(windows)
    for channel in range(channels):
        for t in range(windows):
            gain[t] = 0.0
            for flow in range(flows if there[t, user] else 0):
                if carried[t, flow, channel]:
                    gain[t] -= RECEIVED * sent[t, flow]
                    if wanted[t, flow, user] and not served(story, t, flow, user, channel):
                        gain[t] += ALONE * sent[t, flow]
        members[:, channel, user] = best_times(gain, first[channel, user], price)


@compiled
def flow_again(story: Story, flow: int, price: float, first: np.ndarray) -> None:
    """The best times for a flow to be on each channel."""
    carried, members, wanted, sent, there = story
    windows, channels, users = members.shape
    gain = np.zeros(windows)
    for channel in range(channels):
        for t in range(windows):
            gain[t] = -ONCE
            for user in range(users):
                if members[t, channel, user] and there[t, user]:
                    gain[t] -= RECEIVED
                    if wanted[t, flow, user] and not served(story, t, flow, user, channel):
                        gain[t] += ALONE
            gain[t] *= sent[t, flow]
        carried[:, flow, channel] = best_times(gain, first[flow, channel], price)


@compiled
def served(story: Story, t: int, flow: int, user: int, channel: int) -> bool:
    """Whether another channel brings the flow to the user."""
    for other in range(story.members.shape[1]):
        if other != channel and story.carried[t, flow, other] and story.members[t, other, user]:
            return True
    return False


@compiled
def best_times(gain: np.ndarray, first: bool, price: float) -> np.ndarray:
    """When to be on for the greatest sum of gains less the price of all changes."""
    windows = len(gain)
    came = np.zeros((windows, 2), np.bool_)
    off, on = (price, 0.0) if first else (0.0, price)
    on, off = -on, -off
    for t in range(windows):
        came[t, 0], came[t, 1] = on - price > off, on >= off - price
        off, on = max(off, on - price), max(on, off - price) + gain[t]
    found = np.zeros(windows, np.bool_)
    state = on > off
    for t in range(windows - 1, -1, -1):
        found[t] = state
        state = came[t, 1] if state else came[t, 0]
    return found


def told(windows: list[Window], kind: str) -> Iterator[Window]:
    """The windows one by one; how far it is goes to stderr."""
    for number, window in enumerate(windows):
        if number % TOLD_EVERY == 0:
            print(f"{kind}: window {number:,} of {len(windows):,}", file=sys.stderr, flush=True)
        yield window


def measure(kind: str, asked: argparse.Namespace) -> Iterator[str]:
    """A row for each way to replan, and one for the bound."""
    world = KINDS[kind](asked.flows, asked.users, asked.seed)
    half_life = asked.half_life
    windows = list(drifting(*world, asked.windows, asked.channels, asked.seed, half_life))
    first, later = windows[0].fresh(), together(windows).fresh()
    policy = PolicyParams(**{item.name: getattr(asked, item.name) for item in fields(PolicyParams)})
    found = courses(told(windows, kind), first, later, policy)
    mean = sum(found["policy"].costs) / len(windows)
    found["policy, told again"] = told_again(windows, first, found["policy"], AGAIN * mean)
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
        number = float if "float" in str(item.type) else int
        parser.add_argument(f"--{item.name.replace('_', '-')}", type=number, default=item.default)
    parser.add_argument("--half-life", type=float, default=WatchParams.half_life)
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
