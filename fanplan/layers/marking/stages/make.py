"""Counts of descriptors, made when a marking first needs them."""

from __future__ import annotations

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.marking.params import OVERLAY
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import clients_allocated
from fanplan.plan.stored import StoredPlan


def make_descriptors(
    dataset: Dataset, engine: Engine, allocated: bool = False, covers: bool = False
) -> None:
    """How many descriptors publishers and subscribers have at each broker, or if clients are
    ``allocated`` how many each of them has; and which brokers' descriptors cover those of others.
    """
    from fanplan.layers.marking.stages import descriptors

    source = derived(dataset, engine)
    (descriptors.client_descriptors if allocated else descriptors.descriptors_stage)(source)
    if covers:
        descriptors.descriptor_covers(source)


def make_marking_stages(plan: StoredPlan, dataset: Dataset, engine: Engine) -> None:
    """Descriptors at brokers, or of allocated clients; and which cover others if they merge."""
    marking = plan.section(MarkingRecord)
    allocated = marking.params.trees == OVERLAY and clients_allocated(plan)
    make_descriptors(dataset, engine, allocated, covers=marking.merged is not None)
