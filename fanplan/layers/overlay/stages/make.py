"""Similarity and routes, made when an overlay first needs them."""

from __future__ import annotations

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.overlay.params import OverlayParams
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.stored import StoredPlan


def make_stages(
    dataset: Dataset, params: OverlayParams, engine: Engine, allocated: bool = False
) -> None:
    """Similarity and routes of brokers, or of clients that are to be allocated."""
    from fanplan.data.ingest.extents import Measure
    from fanplan.layers.overlay.stages import routes, similarity

    source, measure = derived(dataset, engine), Measure(params.traffic, params.rates)
    if allocated:
        similarity.client_pairs(source, measure)
        routes.stage_client_routes(source)
    else:
        with_cover = params.metric == "cover"
        similarity.broker_pairs(source, measure, with_cover, params.interest)
        routes.stage_broker_routes(source)


def make_overlay_stages(plan: StoredPlan, dataset: Dataset, engine: Engine) -> None:
    """What the overlay of a stored plan was planned from."""
    record = plan.section(OverlayRecord)
    make_stages(dataset, record.params, engine, record.clients == "allocated")
