"""Counts of descriptors, made when a marking first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.overlay.record import allocated

if TYPE_CHECKING:
    from fanplan.plan.stored import PlanRecord


def make_descriptors(dataset: Dataset, engine: Engine) -> None:
    """How many descriptors publishers and subscribers have at each broker."""
    from fanplan.layers.marking.stages.descriptors import descriptors

    descriptors(derived(dataset, engine))


def make_client_descriptors(dataset: Dataset, engine: Engine) -> None:
    """How many descriptors each publisher and subscriber has."""
    from fanplan.layers.marking.stages.descriptors import client_descriptors

    client_descriptors(derived(dataset, engine))


def make_covers(dataset: Dataset, engine: Engine) -> None:
    """Which brokers have descriptors that cover those of others."""
    from fanplan.layers.marking.stages.covers import descriptor_covers

    descriptor_covers(derived(dataset, engine))


def make_marking_stages(record: PlanRecord, dataset: Dataset, engine: Engine) -> None:
    """Descriptors at brokers, or of allocated clients; and which cover others if they merge."""
    marking = record.marking
    if marking and marking.trees == "overlay" and allocated(record):
        make_client_descriptors(dataset, engine)
    elif marking:
        make_descriptors(dataset, engine)
    if marking and marking.merged:
        make_covers(dataset, engine)
