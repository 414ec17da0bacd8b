"""The bounds that plan.json states of channels, each proved by the argument that it names.

The arguments are those of `bounds`, beside this folder; the counting is the check's own: products
of sparse matrices here, kernels over lists there. A dual bound is proved by any dual values, and
so by those that the plan has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.channels.check.evidence import ChannelTruth
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.findings import TOLERANCE, Findings, require_proved
from fanplan.plan.stored import StoredPlan

LARGEST = 2_000
"""Rows or columns of the matrix whose eigenvalues are computed."""
CHUNK = 256
"""Rows that are compared with all others at a time."""


class Costs(NamedTuple):
    """Of each audience class its messages and size, the least that it costs in any plan, and how
    much more unicast costs; ``beta`` is what one member too many or too few costs per message."""

    messages: Floats
    sizes: Longs
    least: Floats
    excess: Floats
    beta: float


def check_bounds(
    plan: StoredPlan,
    truth: ChannelTruth,
    channels: int,
    several: bool,
    single: bool,
    findings: Findings,
) -> None:
    """No bound is above what is proved, nor above the cost where it binds the plan.

    Only where channels reach everybody, ``single``, do arguments for one channel per flow hold.
    """
    record = plan.section(ChannelsRecord)
    for name, argument, bound, binds in (
        ("bound", record.bound_name, record.bound, True),
        ("single_bound", record.single_bound_name, record.single_bound, not several),
    ):
        any_plan = name == "bound" or not single
        proved = proved_by(argument, plan, truth, channels, any_plan, findings)
        require_proved(f"plan.json: {name}", bound, proved, findings)
        if binds and bound > record.cost * (1 + TOLERANCE):
            what = f"{bound} lies above the cost {record.cost}"
            findings.violate(f"plan.json: {name}", 1, [what])


def proved_by(
    argument: str,
    plan: StoredPlan,
    truth: ChannelTruth,
    channels: int,
    any_plan: bool,
    findings: Findings,
) -> float:
    """What an argument proves; one that is unknown, or of another kind of plans, proves nothing."""
    record, at = plan.section(ChannelsRecord), "" if truth.asked is None else ", at these cells"
    if argument == f"distinct audiences{at}":
        return distinct_bound(record, truth, channels)
    if not any_plan and argument == f"spectral{at}":
        return spectral_bound(costs_of(record, truth), truth, channels)
    if not any_plan and argument == f"dual{at}":
        return dual_bound(costs_of(record, truth), plan, truth, channels, findings)
    findings.violate("plan.json: no such argument for a bound", 1, [repr(argument)])
    return np.inf


def distinct_bound(record: ChannelsRecord, truth: ChannelTruth, channels: int) -> float:
    """No plan costs less: docs/ledger.md. Only so many audiences can have a channel of their own.

    Any other pays for one reception, channel or unicast too many, unless unicast is cheaper.
    """
    w, sizes = record.weights, np.diff(truth.audience_starts)
    messages = np.bincount(truth.classes, truth.messages, len(sizes))
    alone = w.w3 * (w.w1 + w.w2)
    own, unicast = messages * (w.w2 + w.w1 * sizes), messages * alone * sizes
    if not channels:
        return float(unicast.sum())
    shared = np.minimum(own + messages * min(w.w1, w.w2, alone - w.w1), unicast)
    saved = np.sort(np.maximum(shared - own, 0.0))[max(len(sizes) - channels, 0) :]
    return float(shared.sum() - saved.sum())


def costs_of(record: ChannelsRecord, truth: ChannelTruth) -> Costs:
    w, sizes = record.weights, np.diff(truth.audience_starts)
    messages: Floats = np.bincount(truth.classes, truth.messages, len(sizes)).astype(np.float64)
    alone = w.w3 * (w.w1 + w.w2)
    own, unicast = messages * (w.w2 + w.w1 * sizes), messages * alone * sizes
    excess = np.maximum(unicast - own, 0.0)
    return Costs(messages, sizes, np.minimum(own, unicast), excess, min(w.w1, alone - w.w1))


def interest_of(truth: ChannelTruth, rows: Longs) -> scipy.sparse.csr_array:
    """Some classes × subscribers: 1 where the subscriber wants the class."""
    shape = (len(truth.audience_starts) - 1, len(truth.subscribers))
    ones = np.ones(len(truth.audience))
    return scipy.sparse.csr_array((ones, truth.audience, truth.audience_starts), shape=shape)[rows]


def spectral_bound(costs: Costs, truth: ChannelTruth, channels: int) -> float:
    """Eckart and Young (1936): members have rank ``channels``, so that the rest is paid for.

    The largest eigenvalues and the trace are all that is needed. Where both rows and subscribers
    are many, rows that unicast hurts least are left out, which only lowers the bound.
    """
    rows = np.argsort(-costs.excess, kind="stable")
    rows = rows[costs.excess[rows] > 0]
    if len(truth.subscribers) > LARGEST:
        rows = rows[:LARGEST]
    base = float(costs.least.sum())
    if costs.beta <= 0 or not len(rows):
        return base
    scale = np.minimum(costs.messages[rows] * costs.beta, costs.excess[rows] / costs.sizes[rows])
    scaled = interest_of(truth, rows).multiply(np.sqrt(scale)[:, None]).tocsr()
    few = scaled if scaled.shape[0] <= scaled.shape[1] else scaled.T.tocsr()
    gram = (few @ few.T).toarray()
    largest = np.linalg.eigvalsh(gram)[max(len(gram) - channels, 0) :]
    return base + max(0.0, float(np.trace(gram)) - float(largest.sum()))


def dual_bound(
    costs: Costs, plan: StoredPlan, truth: ChannelTruth, channels: int, findings: Findings
) -> float:
    """Σ v − the ``channels`` largest S_r, for the values v of the plan, each at most its excess."""
    table = plan.read("dual_values", ("audience_class", "value"))
    rows, v = table["audience_class"].to_numpy(), table["value"].to_numpy()
    known = (rows >= 0) & (rows < len(costs.sizes)) & np.isfinite(v) & (v >= 0)
    wrong = len(rows) - len(np.unique(rows[known]))
    if not wrong:
        wrong = int((v > costs.excess[rows] * (1 + TOLERANCE)).sum())
    findings.violate("dual_values: not dual values of classes", wrong, [])
    base = float(costs.least.sum())
    if wrong or costs.beta <= 0:
        return base
    wants, half = interest_of(truth, rows), costs.messages[rows] * costs.beta / 2
    sizes, saved = costs.sizes[rows], np.zeros(len(rows))
    for first in range(0, len(rows), CHUNK):
        some = slice(first, first + CHUNK)
        common = (wants[some] @ wants.T).toarray()
        differ = sizes[some, None] + sizes[None, :] - 2 * common
        saved[some] = np.maximum(v - differ * half, 0.0).sum(axis=1)
    return base + float(v.sum()) - float(np.sort(saved)[max(len(rows) - channels, 0) :].sum())
