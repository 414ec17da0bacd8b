"""One sample: a workload drawn, planned by the paper's methods and ours, excess in percent.

Excess is over perfect multicast (section 5.1). A share is of the wanted deliveries, in percent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_generated
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.methods import find_method
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.published.params import HybridParams
from fanplan.papers.hybrid.curves import Curve, at, cheapest, second_step_curve
from fanplan.papers.hybrid.settings import DRAWN, LIMIT, SECOND_STEPS, SHARES
from fanplan.workload.generators import load_kind

WEIGHTS = Weights()


@dataclass(frozen=True)
class Drawn:
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


def sample(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    tasks = {"first steps": first_steps, "second steps": second_steps, "ends": ends}
    return tasks[setting["task"]](setting, draw(setting, seed))


def draw(setting: dict[str, Any], seed: int) -> Drawn:
    """The setting's workload (section 5); at equal rate every flow sends one message."""
    kind = load_kind(setting["workload"])
    names = ("topics", "processes") if kind.name == "websphere" else ("flows", "users")
    sizes = dict(zip(names, (setting["flows"], setting["users"]), strict=True))
    generated = kind.generate(kind.params(**sizes), seed)
    drawn = Drawn(from_generated(generated, "flow"), from_generated(generated, "class"), seed)
    return equal_rate(drawn) if setting.get("equal_rate") else drawn


def equal_rate(drawn: Drawn) -> Drawn:
    return replace(
        drawn,
        flow=replace(drawn.flow, messages=drawn.flow.flows.astype(np.float64)),
        classes=replace(drawn.classes, messages=drawn.classes.flows.astype(np.float64)),
    )


def first_steps(setting: dict[str, Any], drawn: Drawn) -> dict[str, float]:
    """Multicast alone: each method at each number of channels."""
    result = {}
    for channels in setting["channels"]:
        for method in setting["methods"]:
            result[f"{method} @ {channels}"] = drawn.measure(method, HybridParams(channels))[1]
        ours = KmodesParams(channels, unicast_limit=0)
        result[f"kmodes @ {channels}"] = drawn.measure("kmodes", ours)[1]
    return result


def second_steps(setting: dict[str, Any], drawn: Drawn) -> dict[str, float]:
    """Curves over the unicast share after K-means, and kmodes with limits of unicast.

    A curve has the excess *at* each share; ``within`` is the least up to the limit of Figure 7,
    ``best`` the least of all and ``best share`` where that is.
    """
    params = HybridParams(setting["channels"])
    map = drawn.plan("tock", params)
    curves = {name: second_step_curve(drawn.flow, map, name, params) for name in DRAWN}
    forced = second_step_curve(drawn.flow, map, "greedy-flow", replace(params, forced=True))
    result = {"tock": at(forced, 0), "unicast": at(forced, 100)}
    for name, curve in {**curves, "greedy-flow forced": forced}.items():
        result |= {f"{name} @ {share}": at(curve, share) for share in SHARES}
        result |= summary(name, curve)
    ours = kmodes_curve(setting, drawn)
    result |= {f"kmodes @ {share}": cheapest(ours, share) for share in SHARES}
    return result | summary("kmodes", ours)


def summary(name: str, curve: Curve) -> dict[str, float]:
    best = int(np.argmin(curve.excess))
    return {
        f"{name} within": cheapest(curve, LIMIT),
        f"{name} best": float(curve.excess[best]),
        f"{name} best share": float(curve.share[best]),
    }


def kmodes_curve(setting: dict[str, Any], drawn: Drawn) -> Curve:
    """Plans by kmodes for some limits of unicast and for none, from the least unicast to the most.

    kmodes limits the share of the messages *sent*. A share of the deliveries is about that one if
    every flow is sent to one channel; what the plan really has is what counts.
    """
    flow = drawn.flow
    sent, wanted = flow.messages.sum(), np.dot(flow.messages, flow.audience_sizes)
    unicast = np.array(setting["kmodes"]) / 100 * wanted
    limits = [*(unicast / (unicast + sent)).tolist(), None]
    found = [
        drawn.measure("kmodes", KmodesParams(setting["channels"], unicast_limit=limit))
        for limit in limits
    ]
    return Curve(*np.array(sorted(found)).T)


def ends(setting: dict[str, Any], drawn: Drawn) -> dict[str, float]:
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
