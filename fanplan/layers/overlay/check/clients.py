"""Allocated clients, as the check counts them: where they are, and what they bring to brokers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints
from fanplan.layers.overlay.record import AllocationRecord, OverlayRecord
from fanplan.network.brokers import ClientProblem, Routes
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings
from fanplan.plan.stored import StoredPlan


def homes(
    plan: StoredPlan, role: str, names: pa.Array, problem: ClientProblem, findings: Findings
) -> Ints:
    """The broker of every client of a role; -1 where the plan has none or several."""
    table = plan.read("clients", ("client", "role", "broker"))
    table = table.filter(pc.equal(table["role"], role))
    at = Axis("client", names).number(table)
    broker = Axis("broker", problem.brokers).number(table)
    strange = (at < 0) | (broker < 0)
    odd = [repr(name.as_py()) for name in whole(table["client"]).filter(pa.array(strange))]
    findings.violate(f"clients: no such {role} or broker", len(odd), odd)
    times = np.bincount(at[~strange], minlength=len(names))
    home = np.full(len(names), -1, np.int32)
    home[at[~strange]] = broker[~strange]
    home[times != 1] = -1
    wrong = np.flatnonzero(times != 1)
    examples = [repr(names[int(i)].as_py()) for i in wrong[:EXAMPLES]]
    findings.violate(f"clients: {role} not at exactly one broker", len(wrong), examples)
    return home


def between_brokers(routes: Routes, sending: Ints, wanting: Ints) -> Routes:
    """Routes of clients as routes of brokers, each destination once."""
    lists = [np.unique(wanting[routes.destinations(i)]) for i in range(len(routes))]
    starts = np.concatenate(([0], np.cumsum([len(found) for found in lists]))).astype(np.int64)
    brokers = np.concatenate(lists).astype(np.int32) if lists else np.empty(0, np.int32)
    source = sending[routes.source].astype(np.int32)
    return Routes(source, starts, brokers, routes.messages, routes.deliveries)


def check_client_loads(
    plan: StoredPlan,
    table: pa.Table,
    problem: ClientProblem,
    brokers: pa.Array,
    capacity: Floats,
    sending: Ints,
    wanting: Ints,
    findings: Findings,
) -> None:
    """Loads by the rule of the allocation, and none above its room but that of a lone client."""
    record = plan.section(OverlayRecord).allocation
    assert record is not None
    exact = plan.section(OverlayRecord).allocating.load == "exact"
    rule = exact_loads if exact else estimated_loads
    load = rule(problem, len(brokers), sending, wanting)
    at = Axis("broker", brokers).number(table)
    stated = np.full(len(brokers), np.nan)
    stated[at[at >= 0]] = table["client_load"].fill_null(np.nan).to_numpy()[at >= 0]
    scale = TOLERANCE * float(np.abs(load).max(initial=1.0))
    wrong = np.flatnonzero(~np.isclose(stated, load, TOLERANCE, scale))
    names = brokers.to_pylist()
    examples = [f"{names[i]!r}: {stated[i]:g}, counted {load[i]:g}" for i in wrong[:EXAMPLES]]
    findings.violate("brokers: client_load", len(wrong), examples)
    check_room(record, problem, names, capacity, load, (sending, wanting), findings)


def check_room(
    record: AllocationRecord,
    problem: ClientProblem,
    names: list[str],
    capacity: Floats,
    load: Floats,
    home: tuple[Ints, Ints],
    findings: Findings,
) -> None:
    reserved = np.array([record.reserved.get(name, 0.0) for name in names])
    room = np.maximum(record.lcf * capacity - reserved, 0.0)
    clients = np.bincount(np.concatenate(home), minlength=len(names))
    lone = set(record.lone)
    people = problem.publishers.to_pylist() + problem.subscribers.to_pylist()
    alone = {
        int(broker)
        for name, broker in zip(people, np.concatenate(home).tolist(), strict=True)
        if name in lone and clients[broker] == 1
    }
    over = [i for i in np.flatnonzero(load > room * (1 + TOLERANCE) + TOLERANCE) if i not in alone]
    examples = [f"{names[i]!r} has {load[i]:g} of {room[i]:g} messages/s" for i in over[:EXAMPLES]]
    findings.violate("brokers: over their share", len(over), examples)


def exact_loads(problem: ClientProblem, brokers: int, sending: Ints, wanting: Ints) -> Floats:
    """Each message once at every broker with its publisher or a subscriber who wants it."""
    load = np.zeros(brokers)
    routes = problem.routes
    for i, rate in enumerate((routes.messages / problem.seconds).tolist()):
        ends = np.append(wanting[routes.destinations(i)], sending[routes.source[i]])
        load[np.unique(ends)] += rate
    return load


def estimated_loads(problem: ClientProblem, brokers: int, sending: Ints, wanting: Ints) -> Floats:
    """Tajuddin (2011), Eq. 6.2: impacts of all clients, less what is published and wanted there."""
    load = np.bincount(sending, problem.rates, brokers).astype(np.float64)
    pairs = problem.interest.tocoo()
    wanted = pairs.data * problem.rates[pairs.row]
    load += np.bincount(wanting[pairs.col], wanted, brokers)
    here = sending[pairs.row] == wanting[pairs.col]
    return load - np.bincount(wanting[pairs.col[here]], wanted[here], brokers)
