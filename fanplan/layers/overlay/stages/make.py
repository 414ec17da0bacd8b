"""Similarity and routes, made when an overlay first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.overlay.params import OverlayParams

if TYPE_CHECKING:
    from fanplan.data.ingest.extents import Measure
    from fanplan.plan.stored import StoredPlan


def make_broker_stages(dataset: Dataset, params: OverlayParams, engine: Engine) -> None:
    """Similarity and routes of brokers."""
    from fanplan.layers.overlay.stages.routes import stage_broker_routes
    from fanplan.layers.overlay.stages.similarity import broker_pairs

    source = derived(dataset, engine)
    broker_pairs(source, measure_of(params), with_cover=params.metric == "cover")
    stage_broker_routes(source)


def make_client_stages(dataset: Dataset, params: OverlayParams, engine: Engine) -> None:
    """Similarity and routes of clients."""
    from fanplan.layers.overlay.stages.routes import stage_client_routes
    from fanplan.layers.overlay.stages.similarity import client_pairs

    source = derived(dataset, engine)
    client_pairs(source, measure_of(params))
    stage_client_routes(source)


def measure_of(params: OverlayParams) -> Measure:
    from fanplan.data.ingest.extents import Measure

    return Measure(params.traffic, params.rates)


def make_overlay_stages(plan: StoredPlan, dataset: Dataset, engine: Engine) -> None:
    """What the overlay of a stored plan was planned from."""
    from fanplan.layers.overlay.record import OverlayRecord

    record = plan.section(OverlayRecord)
    if record.clients == "allocated":
        make_client_stages(dataset, record.params, engine)
    else:
        make_broker_stages(dataset, record.params, engine)
