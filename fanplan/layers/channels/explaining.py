"""Explanations by name: the flows and the subscribers of a plan."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.dataset import Dataset
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.explain import Joined, explain_row, explain_subscriber
from fanplan.layers.channels.map import ChannelLayer
from fanplan.layers.channels.names import FlowNames
from fanplan.layers.channels.write import subscriber_names

MOST_FLOWS = 20
"""Flows of one topic that are explained."""


@dataclass(frozen=True)
class Found:
    """What a name means in a dataset: wanted flows by position, and a subscriber or −1."""

    flows: FlowNames
    numbers: Longs
    subscriber: int


def find(dataset: Dataset, name: str) -> Found:
    """The flow or the flows of the topic of that name, and the subscriber; an error if neither."""
    flows, names = FlowNames(dataset.path), subscriber_names(dataset.path)
    found = Found(flows, flows.rows(name), pc.index(names, name).as_py())
    if not len(found.numbers) and found.subscriber < 0:
        raise InputError(unknown(name, flows, names))
    return found


def explain(plan: ChannelLayer, dataset: Dataset, name: str) -> list[dict[str, Any]]:
    """All that the name means: the subscriber, and the flow or the first flows of the topic."""
    found, problem = find(dataset, name), dataset.interest(plan.rows)
    explained = []
    if found.subscriber >= 0:
        explained.append(explained_subscriber(plan, problem, found.subscriber, name))
    for number in map(int, found.numbers[:MOST_FLOWS]):
        row = number if plan.rows == "flow" else int(found.flows.classes[number])
        flow = found.flows.wanted.slice(number, 1).to_pylist()[0]
        rate = flow["messages"] / problem.seconds
        explained.append(explained_flow(plan, problem, row, flow, rate))
    return explained


def unknown(name: str, flows: FlowNames, subscribers: pa.Array) -> Problem:
    told = flows.unknown(name, "explain")
    if "nobody wants" in told.what:
        return told
    what = f"there is no flow, topic or subscriber {name!r}"
    close = similar(name, subscribers.to_pylist()) or told.remedy
    return Problem("explain", what, close)


def explained_flow(
    plan: ChannelLayer, problem: InterestProblem, row: int, flow: dict[str, Any], rate: float
) -> dict[str, Any]:
    """One flow; a row is its audience class or itself, so its share of the row's rate is told."""
    because = asked_for(plan, flow)
    by_unicast = plan.params.get("unicast_limit") != 0 and because != "pinned"
    told = explain_row(problem, plan.map, plan.weights, row, by_unicast)
    if because == "off multicast":
        told = replace(told, runner_up="none", runner_up_cost=math.nan)
    share = rate / told.rate if told.rate else 0.0
    result = asdict(told) | {
        "rate": rate,
        "channels": [asdict(c) | {"unwanted_rate": c.unwanted_rate * share} for c in told.channels],
        **{key: getattr(told, key) * share for key in ("cost", "perfect")},
        "runner_up_cost": no_nan(told.runner_up_cost * share),
    }
    return {"flow": flow["flow"], "asked_for": because, **result}


def asked_for(plan: ChannelLayer, flow: dict[str, Any]) -> str | None:
    """Whether the user wanted the flow on channels or off them."""
    for option, word in (("pinned", "pinned"), ("off_multicast", "off multicast")):
        if {flow["flow"], flow["topic"]} & set(plan.params.get(option, ())):
            return word
    return None


def explained_subscriber(
    plan: ChannelLayer, problem: InterestProblem, who: int, name: str
) -> dict[str, Any]:
    told = explain_subscriber(problem, plan.map, plan.weights, who)
    runner_up = None if told.runner_up is None else joined(told.runner_up)
    result = asdict(told) | {"joined": [joined(j) for j in told.joined], "runner_up": runner_up}
    return {"subscriber": name, **result}


def joined(option: Joined) -> dict[str, Any]:
    return asdict(option) | {"unwanted_rate": option.unwanted_rate}


def no_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
