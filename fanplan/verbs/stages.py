"""The stages of a dataset that layers are planned from, made by Spark when they are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fanplan.data.engine import Engine
from fanplan.verbs.datasets import Dataset

if TYPE_CHECKING:
    from fanplan.data.ingest.derived import Derived
    from fanplan.data.ingest.extents import Measure
    from fanplan.layers.groups.problem.dataset import Grouping


def make_broker_stages(
    dataset: Dataset, params: dict[str, Any], cover: bool, engine: Engine
) -> None:
    """Similarity and routes of brokers."""
    from fanplan.layers.overlay.stages.routes import broker_routes
    from fanplan.layers.overlay.stages.similarity import broker_pairs

    source = derived(dataset, engine)
    broker_pairs(source, measure(params), with_cover=cover)
    broker_routes(source)


def make_client_stages(dataset: Dataset, params: dict[str, Any], engine: Engine) -> None:
    """Similarity and routes of clients."""
    from fanplan.layers.overlay.stages.routes import client_routes
    from fanplan.layers.overlay.stages.similarity import client_pairs

    source = derived(dataset, engine)
    client_pairs(source, measure(params))
    client_routes(source)


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


def make_group_stages(dataset: Dataset, grouping: Grouping, engine: Engine) -> None:
    """What groups are found from: routes of brokers, and regions or cells."""
    from fanplan.layers.groups.stages.groups import group_stages

    group_stages(derived(dataset, engine), grouping)


def make_senders(dataset: Dataset, engine: Engine) -> None:
    """How much of each audience class every publisher sends."""
    from fanplan.layers.delivery.stages.senders import senders

    senders(derived(dataset, engine))


def derived(dataset: Dataset, engine: Engine) -> Derived:
    from fanplan.data.ingest.derived import Derived

    return Derived(engine.session, dataset.path.absolute(), engine.progress)


def measure(params: dict[str, Any]) -> Measure:
    from fanplan.data.ingest.extents import Measure

    return Measure(params["traffic"], params["rates"])
