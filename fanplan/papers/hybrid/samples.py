"""What is sampled: the systems of Bickson et al. (2010), section 5, planned by all methods.

A sample draws a workload and measures the excess over perfect multicast (section 5.1), in percent.
A share is of the wanted deliveries, or of the messages sent, in percent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.ledger import cost, unicast_fraction
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_workload
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.methods import find_method
from fanplan.layers.channels.published.params import (
    BmdParams,
    FirstStepParams,
    HybridParams,
    ReverseParams,
    Towards,
)
from fanplan.layers.channels.published.second_step.moves import greedy_path, order_path
from fanplan.layers.channels.published.second_step.moving_pairs import (
    COST,
    MULTICAST,
    UNICAST,
    served_by_map,
)
from fanplan.layers.channels.published.second_step.two_step import GREEDY, ORDERS
from fanplan.workload.generators import load_kind

WEIGHTS = Weights()
SHARES = (0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Percent that goes by unicast: the axis of Figures 5, 6, 8 and 9."""

LIMIT = 20
"""The limit of unicast of Figure 7 in percent; the paper does not tell its own."""

STILL = "bmd, memberships"
"""BMD from random memberships, which no round changes."""
FIRST_STEPS = (
    *("random", "tock", "lloyd", "bmd", STILL, "interior-point", "flow-merge", "user-merge"),
)
TIMED = ("random", "tock", "lloyd", "bmd", "interior-point")
"""The algorithms of Table 1."""
REPEATS = 3
"""Runs of an algorithm, of which the quickest counts."""
FEW = 8
"""Swaps of kmodes under a limit of unicast; its default is 64."""
BINS = 100
"""Parts of equal size that the flows of Figure 2 are summed up in."""
RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of most common audiences in Figure 3."""
BY_ORDER = ("lightest-flow", "heaviest-flow", "lightest-user", "heaviest-user")
ITERATIVE = tuple(f"{name}-iterative" for name in (*BY_ORDER, "greedy-flow"))
SECOND_STEPS = (*BY_ORDER, "greedy-flow", "greedy-user", "greedy-pair", *ITERATIVE)
DRAWN = ("lightest-flow", "heaviest-user", "greedy-flow", "greedy-user")
"""The second steps of Figures 5, 7 and 8."""


@dataclass(frozen=True)
class HybridSizes:
    """How large the systems are: flows × users × channels."""

    market: tuple[int, int, int]
    small: tuple[int, int, int]
    """The small system of section 4.1, on which BMD does well."""
    websphere: tuple[int, int, int]
    channels: tuple[int, ...]
    """The horizontal axis of Figure 4."""
    scales: tuple[tuple[int, int, int], ...]
    """The systems of Figure 7."""


FULL = HybridSizes(
    market=(10_000, 250, 100),
    small=(200, 100, 10),
    websphere=(6_100, 79, 50),
    channels=(10, 20, 50, 100, 200),
    scales=tuple((4_000 + 1_000 * i, 50 * i, 50) for i in range(1, 7)),
)
QUICK = HybridSizes(
    market=(2_000, 100, 40),
    small=(200, 100, 10),
    websphere=(1_500, 40, 20),
    channels=(10, 20, 40),
    scales=tuple((800 + 200 * i, 20 * i, 20) for i in range(1, 4)),
)


def hybrid_settings(sizes: HybridSizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    market = system("market", sizes.market)
    websphere = system("websphere", sizes.websphere, "websphere")
    random = system("random", sizes.market, "random")
    equal = {**system("market, equal rate", sizes.market), "equal_rate": True}
    return (
        *first_step_settings(sizes),
        *time_settings(sizes),
        *({**s, "name": f"{s['name']}, ends", "task": "ends"} for s in (market, websphere)),
        *(
            {**setting, "task": "second steps", "kmodes": targets}
            for setting, targets in (
                (equal, (0,)),
                (market, (0, 10)),
                (random, (0,)),
                (websphere, (0, 2)),
            )
        ),
        *scale_settings(sizes),
        *(
            {**setting, "name": f"{setting['name']}, matrix", "task": "matrix"}
            for setting in (market, websphere, random)
        ),
    )


def time_settings(sizes: HybridSizes) -> Iterator[dict[str, Any]]:
    """Table 1: a half of the large system, each of its sizes doubled in turn, and the small one."""
    half = tuple(size // 2 for size in sizes.market)
    yield system("times, small", sizes.small) | {"task": "times", "methods": list(TIMED)}
    for name, factors in {"": (1, 1, 1), "n": (2, 1, 1), "m": (1, 2, 1), "k": (1, 1, 2)}.items():
        flows, users, channels = (f * size for f, size in zip(factors, half, strict=True))
        made = system(f"times, double {name}" if name else "times", (flows, users, channels))
        yield made | {"task": "times", "methods": list(TIMED[:4])}


def system(name: str, size: tuple[int, int, int], workload: str = "market") -> dict[str, Any]:
    """A setting: a workload of that many flows and users, and a number of channels."""
    flows, users, channels = size
    sizes = {"flows": flows, "users": users, "channels": channels}
    return {"name": name, "workload": workload, **sizes}


def scale_settings(sizes: HybridSizes) -> Iterator[dict[str, Any]]:
    """Figure 7: one setting per system, the largest first."""
    for i, size in reversed(list(enumerate(sizes.scales, start=1))):
        task = {"task": "second steps", "kmodes": (0, LIMIT)}
        yield {**system(f"scale {i}", size), **task}


def first_step_settings(sizes: HybridSizes) -> Iterator[dict[str, Any]]:
    """Table 1 on a large and a small system, and Figure 4 at equal and at the market's rates."""
    task = {"task": "first steps"}
    large = [name for name in FIRST_STEPS if name != "interior-point"]
    for rates in ("equal", "market"):
        setting = system(f"figure 4, {rates} rate", sizes.market)
        setting |= {"equal_rate": rates == "equal", "methods": ["random", "tock", "lloyd"]}
        setting["ours"] = rates == "market"
        yield setting | task | {"channels": list(sizes.channels)}
    for name, size, methods in (
        ("table 1, large", sizes.market, large),
        ("table 1, small", sizes.small, FIRST_STEPS),
    ):
        yield system(name, size) | task | {"channels": [size[2]], "methods": list(methods)}


# ---- a sample


def sample_hybrid(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    tasks = {
        "first steps": first_steps,
        "second steps": second_step_curves,
        "ends": second_step_ends,
        "times": first_step_times,
        "matrix": interest_figures,
    }
    return tasks[setting["task"]](setting, draw_traffic(setting, seed))


class ShareCurve(NamedTuple):
    """Excess over the unicast share, both in percent; the share ascends."""

    share: Floats
    excess: Floats

    def at(self, share: float) -> float:
        """The excess at a share; beyond its ends a curve keeps its last value."""
        return float(np.interp(share, self.share, self.excess))

    def within(self, share: float) -> float:
        """The least excess with at most that share."""
        return float(self.excess[self.share <= share].min(initial=self.excess[0]))

    def figures(self, name: str) -> dict[str, float]:
        """The curve at every share, at its best, and within the limit of Figure 7.

        Of kmodes there are only some plans, so it has the best of them within each share.
        """
        at = self.within if name.startswith("kmodes") else self.at
        best = int(np.argmin(self.excess))
        return {f"{name} @ {share}": at(share) for share in SHARES} | {
            f"{name} within": self.within(LIMIT),
            f"{name} best": float(self.excess[best]),
            f"{name} best share": float(self.share[best]),
        }


@dataclass(frozen=True)
class DrawnTraffic:
    """The same traffic as flows and as audience classes; methods want one or the other."""

    flow: InterestProblem
    classes: InterestProblem
    seed: int

    def plan(self, method: str, params: Any, second: str | None = None) -> ChannelMap:
        chosen = find_method(method, second)
        return chosen.planner(self.rows(method), params, self.seed, never)

    def rows(self, method: str) -> InterestProblem:
        return self.classes if find_method(method).rows == "class" else self.flow

    def measure(self, method: str, params: Any, second: str | None = None) -> UnicastShares:
        problem = self.rows(method)
        ledger = analytic_ledger(problem, self.plan(method, params, second))
        wanted = float(np.dot(problem.messages, problem.audience_sizes))
        excess = cost(ledger, WEIGHTS) / perfect(problem, WEIGHTS) - 1
        delivered = 100 * ledger.sent_unicast / wanted
        return UnicastShares(delivered, 100 * unicast_fraction(ledger), 100 * excess)


class UnicastShares(NamedTuple):
    """What a plan sends by unicast, of the wanted deliveries and of what is sent; in percent."""

    delivered: float
    sent: float
    excess: float


def draw_traffic(setting: dict[str, Any], seed: int) -> DrawnTraffic:
    """The setting's workload (section 5); at equal rate every flow sends one message."""
    kind = load_kind(setting["workload"])
    names = ("flows", "users") if kind.name in ("market", "random") else ("topics", "processes")
    sizes = dict(zip(names, (setting["flows"], setting["users"]), strict=True))
    generated = kind.generate(kind.params(**sizes), seed)
    drawn = DrawnTraffic(from_workload(generated, "flow"), from_workload(generated, "class"), seed)
    return equal_rate(drawn) if setting.get("equal_rate") else drawn


def equal_rate(drawn: DrawnTraffic) -> DrawnTraffic:
    return replace(
        drawn,
        flow=replace(drawn.flow, messages=drawn.flow.flows.astype(np.float64)),
        classes=replace(drawn.classes, messages=drawn.classes.flows.astype(np.float64)),
    )


def first_steps(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Multicast alone: each method at each number of channels."""
    result = {}
    for channels in setting["channels"]:
        for name in setting["methods"]:
            method, params = told_first_step(name, channels)
            result[f"{name} @ {channels}"] = drawn.measure(method, params).excess
        if setting.get("ours", True):
            ours = drawn.measure("kmodes", few_swaps(channels, 0.0)).excess
            result[f"kmodes @ {channels}"] = ours
    return result


def told_first_step(name: str, channels: int) -> tuple[str, FirstStepParams]:
    """The method, and what it is told."""
    if name == STILL:
        return "bmd", BmdParams(channels, first="memberships")
    return name, FirstStepParams(channels)


def first_step_times(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Processor seconds of each algorithm of Table 1, the least of some runs."""
    return {
        f"{name} seconds": min(
            plan_seconds(drawn, name, FirstStepParams(setting["channels"])) for _ in range(REPEATS)
        )
        for name in setting["methods"]
    }


def plan_seconds(drawn: DrawnTraffic, method: str, params: FirstStepParams) -> float:
    begin = time.process_time()
    drawn.plan(method, params)
    return time.process_time() - begin


def interest_figures(_setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Figures 2 and 3: who wants which flows, what they send, and how many audiences are alike."""
    flow, users = drawn.flow, len(drawn.flow.subscribers)
    edges = np.linspace(0, flow.size, BINS + 1).astype(np.int64)
    wanted = np.add.reduceat(flow.audience_sizes, edges[:-1]) / np.diff(edges) / users
    sent = np.add.reduceat(flow.messages, edges[:-1]) / flow.messages.sum()
    alike = np.sort(drawn.classes.flows)[::-1]
    told = np.cumsum(alike)
    shared = alike[alike > 1].sum()
    return {
        **{f"wanted @ {i}": float(100 * value) for i, value in enumerate(wanted)},
        **{f"sent @ {i}": float(100 * value) for i, value in enumerate(sent)},
        **{f"alike @ {r}": float(100 * told[min(r, len(told)) - 1] / told[-1]) for r in RANKS},
        "shared": float(100 * shared / told[-1]),
    }


def second_step_curves(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Curves over both unicast shares after K-means, and kmodes with limits of unicast.

    A curve has the excess *at* each share; ``within`` is the least up to the limit of Figure 7,
    ``best`` the least of all and ``best share`` where that is.
    """
    params = HybridParams(setting["channels"])
    map = drawn.plan("tock", params)
    paths = {name: second_step_path(drawn.flow, map, name, params) for name in DRAWN}
    forced = second_step_path(drawn.flow, map, "greedy-flow", replace(params, forced=True))
    result = {"tock": forced[0].excess, "unicast": forced[-1].excess}
    paths |= {"greedy-flow forced": forced, "kmodes": kmodes_plans(setting, drawn)}
    for name, path in paths.items():
        for axis in ("delivered", "sent"):
            told = name if axis == "delivered" else f"{name} {axis}"
            result |= curve_over(axis, path).figures(told)
    return result


def curve_over(axis: str, path: list[UnicastShares]) -> ShareCurve:
    """The excess over one of the shares."""
    ordered = sorted(path, key=lambda own: getattr(own, axis))
    shares = np.array([getattr(own, axis) for own in ordered])
    return ShareCurve(shares, np.array([own.excess for own in ordered]))


def second_step_path(
    problem: InterestProblem, map: ChannelMap, name: str, params: HybridParams
) -> list[UnicastShares]:
    """Bickson et al. 2010, section 4.2: the totals after every move, as shares and excess.

    An order goes on until everything is sent by unicast; a greedy step ends at its best unless
    ``forced``.
    """
    state = served_by_map(problem, map, params.weights)
    before = state.totals.copy()
    if name in GREEDY:
        parts = list(greedy_path(state, GREEDY[name](problem), params, never))
        path = np.concatenate([before[None], *parts])
    else:
        items, ranking = ORDERS[name]
        movable = items(problem)
        path = np.concatenate([before[None], order_path(state, movable, ranking(movable), 1.0)])
    delivered = 100 * path[:, UNICAST] / np.dot(problem.messages, problem.audience_sizes)
    sent = 100 * path[:, UNICAST] / (path[:, UNICAST] + path[:, MULTICAST])
    excess = 100 * (path[:, COST] / perfect(problem, params.weights) - 1)
    return [UnicastShares(*own) for own in np.stack((delivered, sent, excess), axis=1).tolist()]


def kmodes_plans(setting: dict[str, Any], drawn: DrawnTraffic) -> list[UnicastShares]:
    """Plans by kmodes for some limits of unicast and for none.

    kmodes limits the share of the messages *sent*. A share of the deliveries is about that one if
    every flow is sent to one channel; what the plan really has is what counts.
    """
    flow = drawn.flow
    sent, wanted = flow.messages.sum(), np.dot(flow.messages, flow.audience_sizes)
    unicast = np.array(setting["kmodes"]) / 100 * wanted
    limits = [*(unicast / (unicast + sent)).tolist(), None]
    return [drawn.measure("kmodes", few_swaps(setting["channels"], f)) for f in limits]


def few_swaps(channels: int, limit: float | None) -> KmodesParams:
    """Few swaps under a limit of unicast, as these searches are long."""
    # As in the paper all unicast counts, and a channel may have one member.
    params = KmodesParams(channels, unicast_limit=limit, lone=True)
    return params if limit is None else replace(params, swaps=FEW)


def second_step_ends(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Every second step of section 4.2 after K-means and without a limit of unicast."""
    channels = setting["channels"]
    result = {"tock": drawn.measure("tock", HybridParams(channels)).excess}
    for second in SECOND_STEPS:
        items = len(drawn.flow.subscribers) if "user" in second else drawn.flow.size
        params = HybridParams(channels, batch=max(1, items // 100), patience=25)
        result[second] = drawn.measure("tock", params, second).excess
    for towards in get_args(Towards):
        params = ReverseParams(channels, towards=towards)
        result[f"reverse, {towards}"] = drawn.measure("reverse", params).excess
    result["kmodes"] = drawn.measure("kmodes", KmodesParams(channels)).excess
    return result
