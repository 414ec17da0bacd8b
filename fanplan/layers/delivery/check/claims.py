"""What a design says beside its costs: who is in which multicast domain, and what it warns of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fanplan.data.reader import read_manifest
from fanplan.layers.delivery.params import MARKING
from fanplan.layers.delivery.read import StoredDelivery
from fanplan.layers.delivery.record import (
    ALLOCATED_CELLS,
    ANY,
    ASKED,
    NO_BROKERS,
    OF_CELLS,
    ONE_BROKER,
    SEVERAL_TREES,
    SILENT,
    DeliveryRecord,
    assumed,
)
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord, clients_allocated
from fanplan.network.dataset import domain_columns
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan


def check_claims(
    plan: StoredPlan, dataset: Path, stored: StoredDelivery, findings: Findings
) -> None:
    """Every claim follows from the dataset and from the other layers."""
    record, exact = plan.section(DeliveryRecord), read_manifest(dataset).exact
    multicast = [(told.domain, told.brokers, told.subscribers) for told in record.multicast]
    for name, stated, own in (
        ("domains", record.domains, stored.names),
        ("multicast", multicast, domains_counted(stored)),
        ("assumed", record.assumed, assumption(plan, dataset, stored)),
        ("bound_name", record.bound_name, ANY if exact else OF_CELLS),
    ):
        findings.violate(f"plan.json: delivery.{name}", int(stated != own), [f"not {own}"])
    expected = warnings_due(plan, dataset)
    missing = sorted(set(expected) - set(record.warnings))
    findings.violate("plan.json: delivery.warnings: missing", len(missing), missing)
    invented = sorted((Counter(record.warnings) - Counter(expected)).elements())
    findings.violate("plan.json: delivery.warnings: invented", len(invented), invented)


def domains_counted(stored: StoredDelivery) -> list[tuple[str | None, int, int]]:
    """Each domain with its brokers and subscribers; last those in none."""
    problem = stored.problem
    brokers = Counter(problem.domain.tolist())
    people = Counter(problem.domain[problem.home].tolist())
    numbers: list[tuple[str | None, int]] = [(name, i) for i, name in enumerate(stored.names)]
    outside = [(None, number) for number in brokers if number < 0]
    return [(name, brokers[number], people[number]) for name, number in numbers + outside]


def assumption(plan: StoredPlan, dataset: Path, stored: StoredDelivery) -> str:
    """What the reach of multicast is taken from."""
    if not plan.has(OverlayRecord):
        return NO_BROKERS
    if plan.section(DeliveryRecord).params.multicast == "everywhere":
        return ASKED
    return assumed(domain_columns(dataset), len(stored.problem.brokers))


def warnings_due(plan: StoredPlan, dataset: Path) -> list[str]:
    """Why there is no marking, if there is none though nobody left it out; and what cells hide."""
    manifest, overlay = read_manifest(dataset), plan.find(OverlayRecord)
    if overlay is None:
        return []
    due = []
    if not plan.has(MarkingRecord) and MARKING not in plan.section(DeliveryRecord).params.without:
        if overlay.trees > 1:
            due.append(SEVERAL_TREES)
        else:
            due.append(SILENT if overlay.links else ONE_BROKER)
    cells = not manifest.exact and clients_allocated(plan)
    return [*due, *([ALLOCATED_CELLS] if cells else [])]
