"""Who sends what and where it leads, made when a design first needs it."""

from __future__ import annotations

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived


def make_routes(dataset: Dataset, engine: Engine) -> None:
    """Where selectors lead messages, from broker to brokers."""
    from fanplan.layers.overlay.stages.routes import stage_broker_routes

    stage_broker_routes(derived(dataset, engine))


def make_senders(dataset: Dataset, engine: Engine) -> None:
    """How much of each audience class every publisher sends."""
    from fanplan.layers.delivery.stages.senders import senders

    senders(derived(dataset, engine))
