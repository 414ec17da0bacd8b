"""What the check of an overlay goes by: the dataset's problem in the plan's brokers and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from fanplan.core.arrays import Floats, Ints, starts_of, values_at
from fanplan.layers.overlay.check.fewest import fewest_brokers_proved
from fanplan.layers.overlay.params import AllocateParams
from fanplan.layers.overlay.record import AllocationRecord, OverlayRecord
from fanplan.network.brokers import ClientProblem, Links, Routes
from fanplan.network.dataset import given_clients, load_clients, load_overlay, read_links
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.stored import StoredPlan

Weigh = Callable[[Ints], Floats]
Pair = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Truth:
    """Brokers of the plan by name, and what the dataset says of them, in their positions.

    ``load`` is what the plan states. ``latency`` and ``bandwidth`` are of the given links, None if
    any two brokers may be linked; ``timed``: the latency of some is known.
    """

    brokers: pa.Array
    capacity: Floats
    load: Floats
    routes: Routes
    weights: Weigh
    latency: dict[Pair, float] | None
    bandwidth: dict[Pair, float] | None
    seconds: float
    timed: bool = False

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.brokers.to_pylist()]


def read_truth(plan: StoredPlan, dataset: Path, findings: Findings) -> Truth | None:
    """The problem in the plan's brokers; None if brokers or clients are too wrong to go on."""
    table = plan.read("brokers", ("broker", "capacity", "load", "client_load"))
    known = len(findings.violations)
    truth = allocated_truth if plan.section(OverlayRecord).clients == "allocated" else given_truth
    found = truth(plan, table, dataset, findings)
    return found if len(findings.violations) == known else None


def given_truth(plan: StoredPlan, table: pa.Table, dataset: Path, findings: Findings) -> Truth:
    """Clients stay where the workload has them: all brokers, and nobody moved."""
    problem = load_overlay(dataset)
    if plan.section(OverlayRecord).allocation is not None:
        findings.violate("plan.json: overlay.allocation", 1, ["clients are where they were"])
    require_used_brokers(table, problem.brokers, problem.brokers, problem.capacity, findings)
    require_same_clients(plan, given_clients(dataset), findings)
    matrix = metric_matrix(plan, problem.similarity.overlap, problem.similarity.interest)
    if plan.section(OverlayRecord).params.weighed_by == "cover":
        matrix = problem.similarity.cover
    return Truth(
        problem.brokers,
        problem.capacity,
        stated_loads(table, problem.brokers, "load"),
        problem.routes,
        lambda ends: heavier(matrix, ends),
        *link_facts(problem.links),
        problem.seconds,
        problem.timed,
    )


def allocated_truth(
    plan: StoredPlan, table: pa.Table, dataset: Path, findings: Findings
) -> Truth | None:
    """Every client is at exactly one broker, and no broker holds more than its share."""
    problem = load_clients(dataset)
    sending = stated_homes(plan, "publisher", problem.publishers, problem, findings)
    wanting = stated_homes(plan, "subscriber", problem.subscribers, problem, findings)
    if (sending < 0).any() or (wanting < 0).any():
        return None
    used = np.unique(np.concatenate((sending, wanting)))
    brokers = problem.brokers.take(pa.array(used))
    require_used_brokers(table, problem.brokers, brokers, problem.capacity, findings)
    number = np.full(len(problem.brokers), -1, np.int32)
    number[used] = np.arange(len(used))
    sending, wanting = number[sending], number[wanting]
    capacity = problem.capacity[used]
    record = plan.section(OverlayRecord)
    if record.allocation is None or not isinstance(record.params, AllocateParams):
        findings.violate("plan.json: overlay.allocation", 1, ["is missing, or was not asked for"])
        return None
    cost = float(problem.cost[used].sum())
    told = record.allocation.cost
    require_close("plan.json: overlay.allocation.cost", told, cost, cost, findings)
    room = record.allocation.lcf * problem.capacity
    proved = fewest_brokers_proved(problem, record.params.load == "exact", room)
    require_close(
        "plan.json: overlay.allocation.bound", record.allocation.bound, proved, 0.0, findings
    )
    check_client_loads(plan, table, problem, brokers, capacity, sending, wanting, findings)
    links = read_links(dataset, brokers)
    return Truth(
        brokers,
        capacity,
        stated_loads(table, brokers, "load"),
        between_brokers(problem.routes, sending, wanting),
        lambda ends: client_weights(plan, problem, len(used), sending, wanting, ends),
        *link_facts(links),
        problem.seconds,
        links is not None and links.timed,
    )


def stated_loads(table: pa.Table, brokers: pa.Array, column: str) -> Floats:
    """Stated loads in the order of the brokers; not a number where none is stated."""
    at = Axis("broker", brokers).number(table)
    load = np.full(len(brokers), np.nan)
    load[at[at >= 0]] = table[column].fill_null(np.nan).to_numpy()[at >= 0]
    return load


def metric_matrix(
    plan: StoredPlan, overlap: scipy.sparse.csr_array, interest: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """The similarity that the plan weighs links by."""
    params = plan.section(OverlayRecord).params
    if params.weighed_by != "hybrid":
        return interest if params.weighed_by == "interest" else overlap
    alpha = params.mix
    common, wanted = (matrix.tocoo(copy=True) for matrix in (overlap, interest))
    common.data /= common.data.max(initial=0.0) or 1.0
    most = np.full(interest.shape[0], wanted.data.max(initial=0.0))
    if params.scale == "own":
        most[:] = 0.0
        np.maximum.at(most, wanted.row, wanted.data)
    wanted.data /= np.where(most > 0, most, 1.0)[wanted.row]
    return (1 - alpha) * common.tocsr() + alpha * wanted.tocsr()


def heavier(matrix: scipy.sparse.csr_array, ends: Ints) -> Floats:
    """The weight of pairs: of two directions the heavier."""
    both = [values_at(matrix, ends[:, i], ends[:, 1 - i]) for i in (0, 1)]
    return np.maximum(*both)


def client_weights(
    plan: StoredPlan, problem: ClientProblem, brokers: int, sending: Ints, wanting: Ints, ends: Ints
) -> Floats:
    """Weights of pairs of brokers: sums over their clients (Tajuddin 2011, Eq. 4.2 and 4.7)."""
    shape = (brokers, brokers)
    sums = []
    for matrix, rows in ((problem.common, wanting), (problem.interest, sending)):
        pairs = matrix.tocoo()
        at = (rows[pairs.row], wanting[pairs.col])
        apart = at[0] != at[1]
        kept = (pairs.data[apart], (at[0][apart], at[1][apart]))
        sums.append(scipy.sparse.coo_array(kept, shape=shape).tocsr())
    return heavier(metric_matrix(plan, *sums), ends)


def link_facts(links: Links | None) -> tuple[dict[Pair, float] | None, dict[Pair, float] | None]:
    if links is None:
        return None, None
    pairs: list[Pair] = list(zip(links.a.tolist(), links.b.tolist(), strict=True))
    latency = dict(zip(pairs, links.latency_ms.tolist(), strict=True))
    return latency, dict(zip(pairs, links.bandwidth.tolist(), strict=True))


def require_used_brokers(
    table: pa.Table, all_names: pa.Array, used: pa.Array, capacity: Floats, findings: Findings
) -> None:
    """The table of brokers must be the used ones, each once, with the dataset's capacity."""
    stated = whole(table["broker"]).to_pylist()
    expected = used.to_pylist()
    wrong = sorted(map(repr, set(stated) ^ set(expected)))
    findings.violate("brokers: not those that are used", len(wrong), wrong)
    twice = sorted(repr(name) for name, times in Counter(stated).items() if times > 1)
    findings.violate("brokers: given twice", len(twice), twice)
    at = Axis("broker", all_names).number(table)
    own = capacity[np.maximum(at, 0)]
    said = table["capacity"].fill_null(np.inf).to_numpy()
    differs = np.flatnonzero((at >= 0) & (said != own))
    examples = [repr(stated[int(i)]) for i in differs[:EXAMPLES]]
    findings.violate("brokers: capacity differs from the dataset", len(differs), examples)


def require_same_clients(plan: StoredPlan, expected: pa.Table, findings: Findings) -> None:
    """Every client at its brokers, and nobody else."""
    columns = ["client", "role", "broker"]
    stated = plan.read("clients", tuple(columns))
    text = pa.string()
    schema = pa.schema([(name, text) for name in columns])
    stated, expected = stated.cast(schema), expected.select(columns).cast(schema)
    for what, left, right in (("unknown", stated, expected), ("missing", expected, stated)):
        odd = left.join(right, keys=columns, join_type="left anti").slice(0, 10**6)
        examples = [f"{row['client']!r} at {row['broker']!r}" for row in odd[:EXAMPLES].to_pylist()]
        findings.violate(f"clients: {what}", len(odd), examples)
    if len(stated) != len(stated.group_by(columns).aggregate([])):
        findings.violate("clients: given twice", 1, [f"{len(stated)} rows"])


def stated_homes(
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
    starts = starts_of([len(found) for found in lists])
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
    stated = stated_loads(table, brokers, "client_load")
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
