"""Counts of descriptors, made when a marking first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.marking.params import OVERLAY

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan


def make_descriptors(dataset: Dataset, engine: Engine) -> None:
    """How many descriptors publishers and subscribers have at each broker."""
    from fanplan.layers.marking.stages.descriptors import descriptors_stage

    descriptors_stage(derived(dataset, engine))


def make_client_descriptors(dataset: Dataset, engine: Engine) -> None:
    """How many descriptors each publisher and subscriber has."""
    from fanplan.layers.marking.stages.descriptors import client_descriptors

    client_descriptors(derived(dataset, engine))


def make_covers(dataset: Dataset, engine: Engine) -> None:
    """Which brokers have descriptors that cover those of others."""
    from fanplan.layers.marking.stages.descriptors import descriptor_covers

    descriptor_covers(derived(dataset, engine))


def make_marking_stages(plan: StoredPlan, dataset: Dataset, engine: Engine) -> None:
    """Descriptors at brokers, or of allocated clients; and which cover others if they merge."""
    from fanplan.layers.marking.record import MarkingRecord
    from fanplan.layers.overlay.record import clients_allocated

    marking = plan.section(MarkingRecord)
    if marking.params.trees == OVERLAY and clients_allocated(plan):
        make_client_descriptors(dataset, engine)
    else:
        make_descriptors(dataset, engine)
    if marking.merged:
        make_covers(dataset, engine)
