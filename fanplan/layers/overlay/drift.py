"""A stored overlay counted anew on a dataset as it is now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fanplan.layers.overlay.changes.shape import (
    TOLD,
    Client,
    evidence,
    judge_overlay,
    overlay_shape,
)
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.dataset import given_clients, load_clients
from fanplan.plan.drift import LayerNow, Moved, came_and_went
from fanplan.plan.stored import StoredPlan

Homes = dict[Client, set[str]]
"""the brokers of each client"""


def overlay_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same trees with the clients and routes of now."""
    shape, record, found = overlay_shape(plan), plan.section(OverlayRecord), evidence(plan, dataset)
    clients, standing = clients_now(plan, dataset), shape.brokers & found.capacity.keys()
    given = record.clients == "given"
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
        unknown = {name: (value, None) for name, value in then.items()}
        return LayerNow(moved, unknown, missed, (said,))
    state = judge_overlay(shape, record.limits, found)
    now = {f"{name}/s": state.figures[name] / found.seconds for name in TOLD}
    figures = {name: (value, now[name]) for name, value in then.items()}
    return LayerNow(moved, figures, missed, state.exceeded)


def moved_clients(then: Homes, now: Homes, role: str) -> Moved:
    """Clients of a role that came, went, or that the workload has at another broker."""
    then, now = ({c: at for c, at in homes.items() if c[1] == role} for homes in (then, now))
    both = then.keys() & now.keys()
    changed = sum(bool(now[client]) and now[client] != then[client] for client in both)
    return replace(came_and_went(then, now), changed=changed)


def clients_now(plan: StoredPlan, dataset: Path) -> Homes:
    """Clients with the brokers that the workload gives them; none if the plan allocates them."""
    clients: Homes = {}
    if plan.section(OverlayRecord).clients == "given":
        for row in given_clients(dataset).to_pylist():
            clients.setdefault((row["client"], row["role"]), set()).add(row["broker"])
        return clients
    problem = load_clients(dataset)
    roles = {"publisher": problem.publishers, "subscriber": problem.subscribers}
    return {(name, role): set() for role, names in roles.items() for name in names.to_pylist()}
