"""The section of plan.json on channels."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat

from fanplan.layers.channels.map import ChannelLayer
from fanplan.plan.numbers import Count, Positive


class WeightsRecord(BaseModel):
    """Weights of the cost."""

    model_config = ConfigDict(frozen=True)

    w1: Positive
    w2: Positive
    w3: Positive


class ChannelsRecord(BaseModel):
    """How channels were decided and what they cost.

    ``seconds`` is the window that the ledger covers, not a run time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    params: dict[str, Any]
    weights: WeightsRecord
    channels: Count
    flows: Count
    audience_classes: Count
    seconds: FiniteFloat
    cost: FiniteFloat
    perfect: FiniteFloat
    excess_percent: FiniteFloat
    bound: FiniteFloat
    bound_name: str
    bound_percent: FiniteFloat
    single_bound: FiniteFloat
    single_bound_name: str
    single_bound_percent: FiniteFloat
    unicast_fraction: FiniteFloat
    ledger: dict[str, FiniteFloat]


def channels_record(layer: ChannelLayer) -> ChannelsRecord:
    return ChannelsRecord(
        method=layer.method,
        params=layer.params,
        weights=WeightsRecord(**asdict(layer.weights)),
        channels=layer.map.channels,
        flows=layer.flows,
        audience_classes=layer.audience_classes,
        seconds=layer.seconds,
        cost=layer.cost,
        perfect=layer.perfect,
        excess_percent=layer.excess_percent,
        bound=layer.bound.cost,
        bound_name=layer.bound.name,
        bound_percent=layer.bound_percent,
        single_bound=layer.single_bound.cost,
        single_bound_name=layer.single_bound.name,
        single_bound_percent=layer.single_bound_percent,
        unicast_fraction=layer.unicast_fraction,
        ledger=asdict(layer.ledger),
    )
