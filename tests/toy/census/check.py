"""The check of a census: subscribers are counted again, and not as the command counts them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fanplan.data.reader import read_stage
from fanplan.plan.findings import Findings, Missed
from fanplan.plan.stored import StoredPlan

from .record import CensusRecord, read_census


def check_census(plan: StoredPlan, dataset: Path, findings: Findings) -> Missed:
    """Each topic with enough subscribers is listed with their number, and no other topic is."""
    record, stated = plan.section(CensusRecord), read_census(plan)
    counted = recount(dataset, record.params.least)
    wrong = [t for t in sorted(stated | counted) if stated.get(t) != counted.get(t)]
    findings.violate("census: wrong numbers of subscribers", len(wrong), wrong)
    said = (record.topics, record.subscriptions)
    own = (len(counted), len(read_stage(dataset, "subscriptions")))
    findings.violate("census: its record", int(said != own), [f"stated {said}, counted {own}"])
    return Missed(len(counted.keys() - stated.keys()))


def recount(dataset: Path, least: int) -> dict[str, int]:
    """Subscribers by their topic, topics with fewer than ``least`` left out."""
    rows = read_stage(dataset, "subscriptions", ("subscriber", "topic")).to_pylist()
    found = Counter(topic for _, topic in {(row["subscriber"], row["topic"]) for row in rows})
    return {topic: count for topic, count in found.items() if count >= least}
