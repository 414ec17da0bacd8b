"""Who sends what, made when a design first needs it."""

from __future__ import annotations

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived


def make_senders(dataset: Dataset, engine: Engine) -> None:
    """How much of each audience class every publisher sends."""
    from fanplan.layers.delivery.stages.senders import senders

    senders(derived(dataset, engine))
