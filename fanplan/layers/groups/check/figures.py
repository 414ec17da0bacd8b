"""The check of figures: of each group, of plan.json, and of the rule that groups were chosen by."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.layers.groups.check.count import Counted, Induced, Traffic, count
from fanplan.layers.groups.params import EntryBudget, Threshold, Top, rule_of
from fanplan.layers.groups.read import Entries, StoredGroups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close


def check_figures(
    stored: StoredGroups, own: dict[str, Floats], counted: Counted, findings: Findings
) -> None:
    """The figures of each group."""
    for name, value in own.items():
        stated = stored.stated[name]
        scale = 1e-12 * counted.ledger["link_messages"]
        wrong = np.flatnonzero(~np.isclose(stated, value, rtol=TOLERANCE, atol=scale))
        said = [
            f"group {g}: stated {stated[g]:.12g}, counted {value[g]:.12g}" for g in wrong[:EXAMPLES]
        ]
        findings.violate(f"virtual_groups: {name}", len(wrong), said)


def figures(
    record: GroupsRecord, stored: StoredGroups, subtrees: Induced, counted: Counted
) -> dict[str, Floats]:
    """What the table of groups must say."""
    size, entries = np.diff(stored.starts), stored.entries
    used = np.bincount(entries.group, minlength=stored.size)
    away = stored.member != stored.trees.root[stored.tree[stored.member_group]]
    told_ = np.bincount(stored.member_group[away], minlength=stored.size)
    replies = np.bincount(entries.group[entries.bypassed > 0], minlength=stored.size)
    control = told_ + subtrees.links * (1 + record.params.shortcuts) + replies
    prices = record.params.prices
    saved = prices.matched * counted.matches
    saved = saved + prices.forwarded * (counted.links - counted.messages * used)
    benefit = {
        "nc": size * counted.messages,
        "fc": subtrees.inner * counted.messages,
        "saving": saved - prices.entry * used - prices.control * control,
    }
    return {
        "members": size,
        "messages": counted.messages,
        "unwanted": counted.messages * size - counted.wanted,
        "entries": used,
        "control": control,
        "benefit": benefit[record.params.rank],
    }


def check_record(
    record: GroupsRecord,
    stored: StoredGroups,
    found: int,
    own: dict[str, Floats],
    counted: Counted,
    findings: Findings,
) -> None:
    """Counts, value and ledger of plan.json; ``found`` groups are in the dataset."""
    total = counted.ledger["publications"]
    expected = {
        "brokers": len(stored.brokers),
        "roots": len(stored.trees.root),
        "groups": found,
        "selected": stored.size,
        "covered": counted.messages.sum() / total if total else 0.0,
        "value": own["benefit"].sum(),
    }
    for name, value in expected.items():
        require_close(f"plan.json: groups.{name}", getattr(record, name), value, total, findings)
    compare(record.ledger, counted.ledger | {"overhead": own["control"].sum()}, "ledger", findings)
    if record.bound < record.value - TOLERANCE * abs(record.value):
        what = f"{record.bound} is below the value {record.value}"
        findings.violate("plan.json: groups.bound", 1, [what])


def check_default(
    record: GroupsRecord, stored: StoredGroups, traffic: Traffic, findings: Findings
) -> None:
    """The ledger without groups."""
    alone = Traffic(traffic.routes, traffic.tree, np.full(len(traffic.group), -1))
    counted = count(without_groups(stored), alone)
    compare(record.default, counted.ledger | {"overhead": 0}, "default", findings)


def without_groups(stored: StoredGroups) -> StoredGroups:
    nothing = np.empty(0, np.int64)
    none = Entries(nothing, nothing, nothing, nothing)
    return replace(stored, tree=stored.tree[:0], member_group=nothing, member=nothing, entries=none)


def compare(
    stated: dict[str, float], own: dict[str, float], section: str, findings: Findings
) -> None:
    for name, value in own.items():
        what = f"plan.json: groups.{section}.{name}"
        require_close(what, stated.get(name, math.nan), value, own["link_messages"], findings)
    strange = sorted(stated.keys() - own.keys())
    findings.violate(f"plan.json: groups.{section}: unknown", len(strange), strange)


def check_rule(record: GroupsRecord, stored: StoredGroups, findings: Findings) -> None:
    """The rule that groups were chosen by is kept."""
    match rule_of(record.params.select):
        case EntryBudget(entries):
            used = len(stored.entries.group)
            over = [f"{used} entries are more than {entries}"] if used > entries else []
            findings.violate("budget", len(over), over)
        case Top(share):
            many = math.ceil(round(share * record.groups, 9))
            if many != stored.size:
                findings.violate("top", 1, [f"{stored.size} groups are not the best {many}"])
        case Threshold(least):
            below = np.flatnonzero(net_benefit(record, stored) <= least)
            named = [f"group {g}" for g in below]
            findings.violate(f"threshold: not above {least:.12g}", len(below), named)


def net_benefit(record: GroupsRecord, stored: StoredGroups) -> Floats:
    """What groups save beyond what setting them up costs."""
    net: Floats = stored.stated["benefit"]
    if record.params.rank == "saving":
        return net
    prices = record.params.prices
    net = net - prices.entry * stored.stated["entries"]
    return net - prices.control * stored.stated["control"]
