"""The section on the census: the table, most wanted topics first."""

from __future__ import annotations

from fanplan.page.content import Listing, Section
from fanplan.page.material import Told, ToldLayer
from fanplan.page.saving import Saving, Step

from .record import CensusRecord, read_census


def tell_census(planned: ToldLayer) -> Told:
    """What is saved is reading: a row for each topic instead of one for each subscription."""
    record, name = planned.plan.section(CensusRecord), planned.name
    steps = (Step("subscriptions", record.subscriptions), Step("this plan", record.topics))
    rows = sorted(read_census(planned.plan).items(), key=lambda row: (-row[1], row[0]))
    listing = Listing(f"{name}-topics", "Topics", ("topic", "subscribers"), rows)
    return Told(
        Saving(name, planned.title, planned.folder, "rows to read", steps, ("counting",)),
        Section(name, planned.title, "How many want each topic.", listings=[listing]),
    )
