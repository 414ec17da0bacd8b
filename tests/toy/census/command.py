"""Plans a census."""

from __future__ import annotations

import pyarrow.compute as pc

from fanplan.core.version import __version__
from fanplan.plan.made import Job, Planned

from .params import CensusParams
from .record import CensusRecord, CensusSection


def plan_census(job: Job, params: CensusParams) -> Planned:
    """A subscriber who wants a topic by several filters counts once."""
    wanted = job.dataset.table("subscriptions")
    counts = wanted.group_by("topic").aggregate([("subscriber", "count_distinct")])
    counts = counts.rename_columns(["topic", "subscribers"])
    counts = counts.filter(pc.field("subscribers") >= params.least)
    record = CensusRecord(params=params, topics=len(counts), subscriptions=len(wanted))
    section = CensusSection(record, counts, job.dataset.manifest.key, __version__)
    return Planned((section,), record.model_dump())


PLANS = {"census": plan_census}
