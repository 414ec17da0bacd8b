"""What is sampled: the systems of Bickson et al. (2010), section 5, planned by all methods.

A sample draws a workload and measures the excess over perfect multicast (section 5.1), in percent.
A share is of the wanted deliveries, in percent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_workload
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.methods import find_method
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.moves import greedy_path, order_path
from fanplan.layers.channels.published.second_step.moving_pairs import COST, UNICAST, served_by_map
from fanplan.layers.channels.published.second_step.two_step import GREEDY, ORDERS
from fanplan.workload.generators import load_kind

WEIGHTS = Weights()
SHARES = (0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Percent of the wanted deliveries that go by unicast: the axis of Figures 5, 6, 8 and 9."""

LIMIT = 20
"""The limit of unicast of Figure 7 in percent; the paper does not tell its own."""

FIRST_STEPS = ("random", "tock", "lloyd", "bmd", "interior-point", "flow-merge", "user-merge")
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
        *({**s, "name": f"{s['name']}, ends", "task": "ends"} for s in (market, websphere)),
        *(
            {**setting, "task": "second steps", "kmodes": targets}
            for setting, targets in (
                (equal, (0, 5, 10, 20)),
                (market, (0, 5, 10, 20)),
                (random, (0, 20, 40)),
                (websphere, (0, 1, 2, 5)),
            )
        ),
        *scale_settings(sizes),
    )


def system(name: str, size: tuple[int, int, int], workload: str = "market") -> dict[str, Any]:
    """A setting: a workload of that many flows and users, and a number of channels."""
    flows, users, channels = size
    sizes = {"flows": flows, "users": users, "channels": channels}
    return {"name": name, "workload": workload, **sizes}


def scale_settings(sizes: HybridSizes) -> Iterator[dict[str, Any]]:
    """Figure 7: one setting per system, the largest first."""
    for i, size in reversed(list(enumerate(sizes.scales, start=1))):
        task = {"task": "second steps", "kmodes": (0, 5, LIMIT)}
        yield {**system(f"scale {i}", size), **task}


def first_step_settings(sizes: HybridSizes) -> Iterator[dict[str, Any]]:
    """Table 1 on a large and a small system, and Figure 4 at equal and at the market's rates."""
    task = {"task": "first steps"}
    large = [name for name in FIRST_STEPS if name != "interior-point"]
    for rates in ("equal", "market"):
        setting = system(f"figure 4, {rates} rate", sizes.market)
        setting |= {"equal_rate": rates == "equal", "methods": ["random", "tock", "lloyd"]}
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
    }
    return tasks[setting["task"]](setting, draw_traffic(setting, seed))


class ShareCurve(NamedTuple):
    """Excess over the unicast share, both in percent; the share ascends."""

    share: Floats
    excess: Floats

    def at(self, share: float) -> float:
        """The excess at a share; beyond its end a curve keeps its last value."""
        return float(np.interp(share, self.share, self.excess))

    def within(self, share: float) -> float:
        """The least excess with at most that share."""
        return float(self.excess[self.share <= share].min())

    def figures(self, name: str) -> dict[str, float]:
        best = int(np.argmin(self.excess))
        return {
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

    def measure(self, method: str, params: Any, second: str | None = None) -> tuple[float, float]:
        """Unicast share and excess of a method's plan, both in percent."""
        problem = self.rows(method)
        ledger = analytic_ledger(problem, self.plan(method, params, second))
        wanted = float(np.dot(problem.messages, problem.audience_sizes))
        excess = cost(ledger, WEIGHTS) / perfect(problem, WEIGHTS) - 1
        return 100 * ledger.sent_unicast / wanted, 100 * excess


def draw_traffic(setting: dict[str, Any], seed: int) -> DrawnTraffic:
    """The setting's workload (section 5); at equal rate every flow sends one message."""
    kind = load_kind(setting["workload"])
    names = ("topics", "processes") if kind.name == "websphere" else ("flows", "users")
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
        for method in setting["methods"]:
            result[f"{method} @ {channels}"] = drawn.measure(method, HybridParams(channels))[1]
        ours = KmodesParams(channels, unicast_limit=0, lone=True)
        result[f"kmodes @ {channels}"] = drawn.measure("kmodes", ours)[1]
    return result


def second_step_curves(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Curves over the unicast share after K-means, and kmodes with limits of unicast.

    A curve has the excess *at* each share; ``within`` is the least up to the limit of Figure 7,
    ``best`` the least of all and ``best share`` where that is.
    """
    params = HybridParams(setting["channels"])
    map = drawn.plan("tock", params)
    curves = {name: share_curve(drawn.flow, map, name, params) for name in DRAWN}
    forced = share_curve(drawn.flow, map, "greedy-flow", replace(params, forced=True))
    result = {"tock": forced.at(0), "unicast": forced.at(100)}
    for name, curve in {**curves, "greedy-flow forced": forced}.items():
        result |= {f"{name} @ {share}": curve.at(share) for share in SHARES}
        result |= curve.figures(name)
    ours = kmodes_curve(setting, drawn)
    result |= {f"kmodes @ {share}": ours.within(share) for share in SHARES}
    return result | ours.figures("kmodes")


def share_curve(
    problem: InterestProblem, map: ChannelMap, name: str, params: HybridParams
) -> ShareCurve:
    """Bickson et al. 2010, section 4.2: the totals after every move, as share and excess.

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
    wanted = np.dot(problem.messages, problem.audience_sizes)
    share = 100 * path[:, UNICAST] / wanted
    return ShareCurve(share, 100 * (path[:, COST] / perfect(problem, params.weights) - 1))


def kmodes_curve(setting: dict[str, Any], drawn: DrawnTraffic) -> ShareCurve:
    """Plans by kmodes for some limits of unicast and for none, from the least unicast to the most.

    kmodes limits the share of the messages *sent*. A share of the deliveries is about that one if
    every flow is sent to one channel; what the plan really has is what counts.
    """
    flow = drawn.flow
    sent, wanted = flow.messages.sum(), np.dot(flow.messages, flow.audience_sizes)
    unicast = np.array(setting["kmodes"]) / 100 * wanted
    limits = [*(unicast / (unicast + sent)).tolist(), None]
    # As in the paper all unicast counts, and a channel may have one member.
    wished = [KmodesParams(setting["channels"], unicast_limit=f, lone=True) for f in limits]
    found = [drawn.measure("kmodes", params) for params in wished]
    return ShareCurve(*np.array(sorted(found)).T)


def second_step_ends(setting: dict[str, Any], drawn: DrawnTraffic) -> dict[str, float]:
    """Every second step of section 4.2 after K-means and without a limit of unicast."""
    channels = setting["channels"]
    result = {"tock": drawn.measure("tock", HybridParams(channels))[1]}
    for second in SECOND_STEPS:
        items = len(drawn.flow.subscribers) if "user" in second else drawn.flow.size
        params = HybridParams(channels, batch=max(1, items // 100), patience=25)
        result[second] = drawn.measure("tock", params, second)[1]
    result["reverse"] = drawn.measure("reverse", HybridParams(channels))[1]
    result["kmodes"] = drawn.measure("kmodes", KmodesParams(channels))[1]
    return result
