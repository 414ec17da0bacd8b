"""The Python interface: a few verbs over datasets and plans.

>>> import fanplan
>>> dataset = fanplan.ingest("desk", "desk.dataset")
>>> plan = fanplan.channels(dataset, 100)
>>> folder = plan.save("desk.plan")
>>> fanplan.check(folder, dataset).ok
True
>>> fanplan.replay(folder, dataset).ledger.missed
0.0

Only ``generate`` with publications, ``ingest``, ``replay`` and ``channels`` with restarts start
Spark.
"""

from __future__ import annotations

from fanplan.api.channel_plans import (
    ChannelPlan,
    channels,
    compare,
    require_methods,
    require_names,
)
from fanplan.api.curves import Curve, curve
from fanplan.api.datasets import (
    Dataset,
    as_dataset,
    dataset_of_plan,
    generate,
    ingest,
    open_dataset,
)
from fanplan.api.engine import Engine
from fanplan.api.plans import check, replay

__all__ = [
    "ChannelPlan",
    "Curve",
    "Dataset",
    "Engine",
    "as_dataset",
    "channels",
    "check",
    "compare",
    "curve",
    "dataset_of_plan",
    "generate",
    "ingest",
    "open_dataset",
    "replay",
    "require_methods",
    "require_names",
]
