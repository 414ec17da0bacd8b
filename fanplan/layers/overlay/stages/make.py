"""Similarity and routes, made when an overlay first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived

if TYPE_CHECKING:
    from fanplan.data.ingest.extents import Measure


def make_broker_stages(
    dataset: Dataset, params: dict[str, Any], cover: bool, engine: Engine
) -> None:
    """Similarity and routes of brokers."""
    from fanplan.layers.overlay.stages.routes import stage_broker_routes
    from fanplan.layers.overlay.stages.similarity import broker_pairs

    source = derived(dataset, engine)
    broker_pairs(source, measure_of(params), with_cover=cover)
    stage_broker_routes(source)


def make_client_stages(dataset: Dataset, params: dict[str, Any], engine: Engine) -> None:
    """Similarity and routes of clients."""
    from fanplan.layers.overlay.stages.routes import stage_client_routes
    from fanplan.layers.overlay.stages.similarity import client_pairs

    source = derived(dataset, engine)
    client_pairs(source, measure_of(params))
    stage_client_routes(source)


def measure_of(params: dict[str, Any]) -> Measure:
    from fanplan.data.ingest.extents import Measure

    return Measure(params["traffic"], params["rates"])
