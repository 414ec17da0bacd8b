"""What the layers of a plan are worth on a dataset that they were not made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.layers.channels.changes.world import flow_traffic
from fanplan.layers.channels.check.check import costs
from fanplan.layers.channels.check.evidence import Truth, read_decisions, read_truth
from fanplan.layers.channels.check.service import count_ledger, find_service
from fanplan.layers.groups.check.check import check_groups
from fanplan.layers.marking.changes import marks_of, named_links
from fanplan.layers.marking.check.count import walk
from fanplan.layers.marking.read import stored_problem
from fanplan.layers.overlay.changes.shape import Client, shape_of
from fanplan.layers.overlay.changes.states import evidence, judge
from fanplan.network.dataset import given_clients, load_clients
from fanplan.plan.axis import Axis
from fanplan.plan.findings import TOLERANCE, Findings
from fanplan.plan.stored import StoredPlan

Homes = dict[Client, set[str]]
"""the brokers of each client"""


@dataclass(frozen=True)
class Moved:
    """How many items of a kind came, went, or stayed and changed."""

    came: int
    gone: int
    changed: int = 0


@dataclass(frozen=True)
class LayerNow:
    """A layer on a dataset as it is now.

    ``figures`` has (then, now); a figure that cannot be told is None. ``missed`` counts who is not
    reached: pairs of a flow and a subscriber, clients, or links.
    """

    moved: dict[str, Moved]
    figures: Mapping[str, tuple[float, float | None]]
    missed: int
    notes: tuple[str, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        return {
            "moved": {name: vars(moved) for name, moved in self.moved.items()},
            "figures": {name: list(pair) for name, pair in self.figures.items()},
            "missed": self.missed,
            "notes": list(self.notes),
        }


def came_and_went(then: Iterable[Any], now: Iterable[Any]) -> Moved:
    then, now = set(then), set(now)
    return Moved(len(now - then), len(then - now))


def channels_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same channels, members and unicasts with the interest and traffic of now.

    Rates and costs are per second, as windows may differ.
    """
    truth, record = read_truth(dataset), plan.channels
    decisions = read_decisions(plan, truth, Findings())
    service = find_service(truth, decisions)
    counted = count_ledger(truth, decisions, service)
    seconds = truth.manifest.seconds
    wanted = np.diff(truth.audience_starts)[truth.classes]
    now = costs(record, truth, counted) | counted | {"traffic": float(truth.messages.sum())}
    flows = flow_traffic(plan, record.seconds)
    then = record.model_dump() | record.ledger | {"traffic": pc.sum(flows["messages"]).as_py() or 0}
    rates = ("traffic", "cost", "perfect", "received_wanted", "received_unwanted", "sent_unicast")
    figures = {f"{name}/s": (then[name] / record.seconds, now[name] / seconds) for name in rates}
    figures["excess_percent"] = (record.excess_percent, now["excess_percent"])
    figures["missed/s"] = (then["missed"] / record.seconds, now["missed"] / seconds)
    moved = {"flows": moved_flows(flows, truth, record.seconds)}
    moved["subscribers"] = came_and_went(subscribers_of(plan), interested(truth))
    return LayerNow(moved, figures, int((wanted - service.reached).sum()))


def moved_flows(flows: pa.Table, truth: Truth, seconds: float) -> Moved:
    """Flows that came or went, and those whose rate is another one."""
    at = Axis("flow", truth.names).number(flows)
    known = at >= 0
    then = flows["messages"].to_numpy()[known] / seconds
    now = truth.messages[at[known]] / truth.manifest.seconds
    changed = int((~np.isclose(then, now, rtol=TOLERANCE, atol=0.0)).sum())
    return Moved(len(truth.names) - int(known.sum()), int((~known).sum()), changed)


def subscribers_of(plan: StoredPlan) -> set[str]:
    tables = (plan.read(name, ("subscriber",)) for name in ("channel_subscribers", "unicast"))
    return {name for table in tables for name in pc.unique(table["subscriber"]).to_pylist()}


def interested(truth: Truth) -> set[str]:
    """Subscribers who want some flow."""
    return set(truth.subscribers.take(pa.array(np.unique(truth.audience))).to_pylist())


def overlay_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same trees with the clients and routes of now."""
    shape, record, found = shape_of(plan), plan.overlay, evidence(plan, dataset)
    clients, standing = clients_now(plan, dataset), shape.brokers & found.capacity.keys()
    given = plan.overlay.clients == "given"
    moved = {
        "brokers": came_and_went(shape.brokers, found.capacity if given else standing),
        "publishers": moved_clients(shape.clients, clients, "publisher"),
        "subscribers": moved_clients(shape.clients, clients, "subscriber"),
    }
    homes = [clients[client] or shape.clients.get(client, set()) for client in clients]
    missed = sum(not places or not places <= standing for places in homes)
    then = {f"{name}/s": record.ledger[name] / record.seconds for name in TOLD}
    if moved["brokers"] != Moved(0, 0):
        said = "brokers came or went, so that messages are not counted"
        return LayerNow(
            moved, {name: (value, None) for name, value in then.items()}, missed, (said,)
        )
    state = judge(shape, record.limits, found)
    now = {f"{name}/s": state.figures[name] / found.seconds for name in TOLD}
    figures = {name: (value, now[name]) for name, value in then.items()}
    return LayerNow(moved, figures, missed, state.exceeded)


TOLD = ("link_messages", "processed", "forwarded", "delay")
"""Entries of an overlay's ledger that are told."""


def moved_clients(then: Homes, now: Homes, role: str) -> Moved:
    """Clients of a role that came, went, or that the workload has at another broker."""
    then, now = ({c: at for c, at in homes.items() if c[1] == role} for homes in (then, now))
    both = then.keys() & now.keys()
    changed = sum(bool(now[client]) and now[client] != then[client] for client in both)
    return replace(came_and_went(then, now), changed=changed)


def clients_now(plan: StoredPlan, dataset: Path) -> Homes:
    """Clients with the brokers that the workload gives them; none if the plan allocates them."""
    clients: Homes = {}
    if plan.overlay.clients == "given":
        for row in given_clients(dataset).to_pylist():
            clients.setdefault((row["client"], row["role"]), set()).add(row["broker"])
        return clients
    problem = load_clients(dataset)
    roles = {"publisher": problem.publishers, "subscriber": problem.subscribers}
    return {(name, role): set() for role, names in roles.items() for name in names.to_pylist()}


def marking_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same marks with the trees and descriptors of now."""
    record, marks = plan.marking, marks_of(plan)
    problem = stored_problem(plan, dataset)
    links = named_links(problem)
    moved = {"links": came_and_went(marks, links)}
    descriptors = {
        "published": (record.published, float(problem.published.sum())),
        "subscribed": (record.subscribed, float(problem.subscribed.sum())),
    }
    if moved["links"].came:
        unknown: dict[str, tuple[float, float | None]] = {"cost": (record.cost, None)}
        return LayerNow(
            moved, unknown | descriptors, moved["links"].came, ("some links of trees have no mark",)
        )
    publish = np.array([marks[link]["mark"] == "p" for link in links], bool)
    found = walk(problem, publish)
    price = problem.sending + record.storing
    cost = float((np.where(publish, found.sigma, found.tau) * price).sum())
    return LayerNow(moved, {"cost": (record.cost, cost), **descriptors}, int(found.broken.sum()))


def groups_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same groups on the routes of now, as the check finds them."""
    findings = Findings()
    missed = check_groups(plan, dataset, findings)
    return LayerNow({}, {}, missed, tuple(findings.violations))
