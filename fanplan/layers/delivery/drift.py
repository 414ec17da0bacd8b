"""What a delivery is worth on a dataset that it was not made for: all layers together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.channels.changes.changes import fed
from fanplan.layers.channels.check.check import UNWANTED, count_ledger, find_service
from fanplan.layers.channels.check.evidence import (
    ChannelTruth,
    Decisions,
    PlanRelation,
    read_channel_truth,
    read_decisions,
)
from fanplan.layers.delivery.changes.world import (
    Sites,
    broker_ledger,
    dataset_sites,
    home_in_shape,
    problem_on,
    read_senders,
    unicast_beyond,
)
from fanplan.layers.delivery.check.check import priced_parts
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.read import direct_flows
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.changes import groups_of
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.changes.shape import Shape, overlay_shape
from fanplan.layers.overlay.drift import clients_now
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.dataset import read_brokers
from fanplan.plan.drift import LayerNow, Moved
from fanplan.plan.findings import Findings, sentence
from fanplan.plan.stored import StoredPlan


def delivery_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same channels, last hops and direct classes with the interest and the clients of now.

    A member of a channel at another site does not get it any more. Costs are per second, as
    windows may differ. What is missed here is missed beside what the channels miss by themselves.
    """
    found = DeliveryNow.of(plan, dataset)
    service = find_service(found.truth, found.sent())
    channels = find_service(found.truth, found.decisions)
    outside = found.outside()
    moved = {
        "classes": moved_classes(plan, found.truth, found.decisions),
        "channel members": Moved(0, found.gone_members(), len(outside)),
    }
    missed = int((channels.reached - service.reached).sum())
    return LayerNow(moved, figures(plan, found), missed, tuple(drift_notes(found, outside)))


def groups_in_delivery(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The groups of a delivery: a message goes by one only if that has just the brokers it needs.

    So none misses anybody, but some have nothing to do any more.
    """
    found = DeliveryNow.of(plan, dataset)
    then = (
        float(plan.section(GroupsRecord).selected),
        sum(group.messages for group in groups_of(plan).values()),
    )
    if found.gone_brokers():
        now: tuple[float | None, ...] = (None, None)
    else:
        ledger = found.ledger()
        now = (ledger["groups"], ledger["grouped"] / found.truth.manifest.seconds)
    seconds = plan.record.input.seconds
    told = {"groups with traffic": (then[0], now[0]), "matched once/s": (then[1] / seconds, now[1])}
    return LayerNow({}, told, 0)


@dataclass(frozen=True, eq=False)
class DeliveryNow:
    """A plan's decisions in the numbers of a dataset, and where brokers and clients are by it."""

    plan: StoredPlan
    dataset: Path
    truth: ChannelTruth
    decisions: Decisions
    direct: Longs
    shape: Shape | None
    sites: Sites

    @classmethod
    def of(cls, plan: StoredPlan, dataset: Path) -> DeliveryNow:
        truth = read_channel_truth(dataset)
        decisions = read_decisions(plan, truth, Findings())
        shape, sites = None, {}
        if plan.has(OverlayRecord):
            planned = overlay_shape(plan)
            clients = {
                client: places or planned.clients.get(client, set())
                for client, places in clients_now(plan, dataset).items()
            }
            shape, sites = replace(planned, clients=clients), dataset_sites(plan, dataset)
        return cls(plan, dataset, truth, decisions, direct_flows(plan, truth), shape, sites)

    def outside(self) -> list[tuple[int, int]]:
        """Channels with a member who is where they do not reach."""
        if self.shape is None:
            return []
        table = self.plan.read("channel_domains", ("channel", "domain")).sort_by("channel")
        domain, names = table["domain"].to_pylist(), self.truth.subscribers.to_pylist()
        channel, member = (side.tolist() for side in self.decisions.members.sides())
        site = {m: self.sites.get(home_in_shape(self.shape, names[m]) or "") for m in set(member)}
        return [
            (c, m) for c, m in zip(channel, member, strict=True) if domain[c] not in ("", site[m])
        ]

    def sent(self) -> Decisions:
        """What reaches somebody: no channel another site, and none a flow that goes directly."""
        channel, member = self.decisions.members.sides()
        width = len(self.truth.subscribers)
        lost = np.array([c * width + m for c, m in self.outside()], np.int64)
        kept = ~np.isin(channel * width + member, lost)
        starts = np.searchsorted(channel[kept], np.arange(len(self.decisions.members.starts)))
        members = PlanRelation(starts, self.decisions.members.right[kept])
        return fed(replace(self.decisions, members=members), self.direct)

    def gone_members(self) -> int:
        """Rows of members of whom the dataset knows nothing."""
        planned = self.plan.read("channel_subscribers", ("channel",)).num_rows
        result: int = planned - len(self.decisions.members.right)
        return result

    def gone_brokers(self) -> set[str]:
        if self.shape is None:
            return set()
        return self.shape.brokers - set(read_brokers(self.dataset).names.to_pylist())

    def ledger(self) -> dict[str, float]:
        """What brokers do now; nothing without brokers."""
        if self.shape is None:
            return {}
        groups = groups_of(self.plan).values()
        return broker_ledger(self.problem(self.shape), self.sent(), self.direct, groups)

    def problem(self, shape: Shape) -> DeliveryProblem:
        senders = read_senders(self.dataset, self.truth)
        homes = self.plan.section(DeliveryRecord).homes
        return problem_on(shape, self.sites, self.truth, senders, homes)

    def past(self) -> float:
        """Messages that go past brokers to another domain."""
        if self.shape is None:
            return 0.0
        return unicast_beyond(self.problem(self.shape), self.sent(), self.direct)


def figures(plan: StoredPlan, found: DeliveryNow) -> dict[str, tuple[float, float | None]]:
    """The cost and its parts, then and now; now is unknown if a broker of the plan is gone."""
    record, seconds = plan.section(DeliveryRecord), plan.record.input.seconds
    then = {"cost": record.cost, **record.parts}
    if found.gone_brokers():
        return {f"{name}/s": (value / seconds, None) for name, value in then.items()}
    truth, decisions = found.truth, found.sent()
    counted = count_ledger(truth, decisions, find_service(truth, decisions))
    total = float(truth.messages.sum())
    parts = priced_parts(record.params.prices, counted, found.past(), found.ledger(), total)
    now = {"cost": sum(parts.values()), **parts}
    window = truth.manifest.seconds
    return {f"{name}/s": (then[name] / seconds, now[name] / window) for name in then}


def moved_classes(plan: StoredPlan, truth: ChannelTruth, decisions: Decisions) -> Moved:
    """Audience classes that came or went, and those whose flows or audiences are known to differ.

    A class that stayed has the same flows, all its audience is reached, and no unicast of it is in
    vain. Who left a channel's audience cannot be told from the plan.
    """
    table = plan.read("flows", ("flow", "audience_class"))
    then = flow_sets(table["flow"].to_pylist(), table["audience_class"].to_numpy())
    names = truth.names.to_pylist()
    now = flow_sets(names, truth.classes)
    known, present = set().union(*then), set(names)
    differing = {names[flow] for flow in differing_flows(truth, decisions)}
    stayed = {flows for flows in then & now if not flows & differing}
    gone = sum(not flows & present for flows in then)
    came = sum(not flows & known for flows in now)
    return Moved(came, gone, len(then) - gone - len(stayed))


def flow_sets(names: list[str], classes: np.ndarray) -> set[frozenset[str]]:
    """The flows of each class."""
    found: dict[int, set[str]] = {}
    for name, number in zip(names, classes.tolist(), strict=True):
        found.setdefault(number, set()).add(name)
    return {frozenset(flows) for flows in found.values()}


def differing_flows(truth: ChannelTruth, decisions: Decisions) -> Longs:
    """Flows with somebody who is not reached, or who gets a unicast and does not want it."""
    service = find_service(truth, decisions)
    flow, _ = decisions.unicast.sides()
    wanted = np.diff(truth.audience_starts)[truth.classes]
    missed = np.flatnonzero(wanted > service.reached)
    return np.union1d(missed, flow[service.unicast_use == UNWANTED])


def drift_notes(found: DeliveryNow, outside: list[tuple[int, int]]) -> Iterator[str]:
    names = sorted({found.truth.subscribers[m].as_py() for _, m in outside})
    if names:
        what = "at another site than a channel that they are on"
        yield sentence(f"subscribers {what}", len(names), [repr(name) for name in names])
    gone = sorted(found.gone_brokers())
    if gone:
        yield sentence("brokers of the plan that are gone", len(gone), [repr(b) for b in gone])
