"""The check's own count of groups: sets of (item, broker) pairs, level by level.

It shares nothing with the planner's weighing of subtrees, nor with the ledger, which follows each
route by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, places_among
from fanplan.layers.groups.params import EntryBudget, Threshold, Top, rule_of
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.read import Entries, StoredGroups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.network.brokers import Routes
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.walks import added_up


@dataclass(frozen=True, eq=False)
class GroupTraffic:
    """Routes with their trees, and the stored group that carries each; −1 for default routing.

    ``visits`` are the brokers that routes come by.
    """

    routes: Routes
    tree: Ints
    group: Longs
    visits: Visits


@dataclass(frozen=True, eq=False)
class CountedGroups:
    """Sums by group of what its routes take by default, and the ledger of all."""

    messages: Floats
    wanted: Floats
    links: Floats
    matches: Floats
    ledger: dict[str, float]


class Visits(NamedTuple):
    """Brokers by the item, a route or a group, whose messages visit them; the root left out."""

    item: Longs
    broker: Longs


class Sums(NamedTuple):
    """Amounts at brokers, a broker more than once."""

    broker: Longs
    amount: Floats

    def total(self) -> float:
        return float(self.amount.sum())

    def at(self, some: Bools) -> float:
        return float(self.amount[some[self.broker]].sum())


@dataclass(frozen=True, eq=False)
class Induced:
    """The part of its tree that leads to a group's members: brokers, and where ways part.

    ``links`` and ``inner`` brokers that match are counts by group.
    """

    brokers: Longs
    parting: Longs
    links: Longs
    inner: Longs


def count_groups(stored: StoredGroups, traffic: GroupTraffic) -> CountedGroups:
    """The ledger of a plan's groups, a hop and a match taking 1 each."""
    trees, routes, size = stored.trees, traffic.routes, stored.size
    route, visits = destinations(routes), traffic.visits
    matching = trees.inner[traffic.tree[visits.item], visits.broker]
    each = routes.messages[visits.item]
    messages = by_group(traffic, size, np.arange(len(routes)), routes.messages)
    wanted = by_group(traffic, size, route, routes.messages[route])
    alone = traffic.group[visits.item] < 0
    received = Sums(visits.broker[alone], each[alone])
    matched = Sums(visits.broker[alone & matching], each[alone & matching])
    ledger = {
        **broker_shares(stored, received, matched, messages, float(routes.messages.sum())),
        "delay": mean_group_delay(stored, traffic, route),
        "saving": float((messages[stored.entries.group] * stored.entries.bypassed).sum()),
        "entries": len(stored.entries.group),
        "unwanted": float((messages * np.diff(stored.starts) - wanted).sum()),
    }
    links = by_group(traffic, size, visits.item, each)
    matches = by_group(traffic, size, visits.item[matching], each[matching])
    return CountedGroups(messages, wanted, links, matches, ledger)


def destinations(routes: Routes) -> Longs:
    """The route of each destination."""
    return np.repeat(np.arange(len(routes)), np.diff(routes.starts))


def broker_shares(
    stored: StoredGroups, received: Sums, matched: Sums, messages: Floats, publications: float
) -> dict[str, float]:
    """Messages and matches in all, and the share of them at brokers in the middle of trees."""
    forwarded = Sums(stored.entries.head, messages[stored.entries.group])
    # Brokers that are neither root nor end of some tree.
    inner = stored.trees.inner
    inner[np.arange(len(stored.trees.root)), stored.trees.root] = False
    middle = np.asarray(inner.any(axis=0))
    most = publications * int(middle.sum()) or 1.0
    return {
        "publications": publications,
        "messages": (received.at(middle) + forwarded.at(middle)) / most,
        "matches": matched.at(middle) / most,
        "link_messages": received.total() + forwarded.total(),
        "matches_total": publications + matched.total(),
    }


def by_group(traffic: GroupTraffic, size: int, route: Longs, amounts: Floats) -> Floats:
    """Amounts on routes by the group that carries them."""
    inside = traffic.group[route] >= 0
    sums = np.bincount(traffic.group[route[inside]], amounts[inside], minlength=size)
    return sums.astype(np.float64)


def mean_group_delay(stored: StoredGroups, traffic: GroupTraffic, route: Longs) -> float:
    """The mean delay of messages at brokers that want them; ``route`` is of each destination."""
    trees, routes, size = stored.trees, traffic.routes, len(stored.brokers)
    end, messages = routes.brokers.astype(np.int64), routes.messages[route]
    steps = added_up(trees.parent, 1 + trees.inner.astype(np.int64))
    entries, group = stored.entries, traffic.group[route]
    at = places_among(entries.group * size + entries.head, group * size + end)
    far = np.append(hops(stored), 0)[at]
    time = 1.0 + np.where(group >= 0, far, steps[traffic.tree[route], end])
    arrived = float(messages.sum())
    return float((time * messages).sum()) / arrived if arrived else 0.0


# ---- the subtrees of groups


def induced(stored: StoredGroups) -> Induced:
    """Subtrees of groups; brokers are keys: group × brokers + broker."""
    trees, size = stored.trees, len(stored.brokers)
    pairs = walked(trees, stored.tree, stored.member_group, stored.member)
    above = pairs.item * size + trees.parent[stored.tree[pairs.item], pairs.broker]
    key, below = np.unique(above, return_counts=True)
    matching = trees.inner[stored.tree[pairs.item], pairs.broker]
    return Induced(
        pairs.item * size + pairs.broker,
        key[below > 1],
        np.bincount(pairs.item, minlength=stored.size),
        np.bincount(pairs.item[matching], minlength=stored.size),
    )


def bypassed_by(trees: BrokerTrees, tree: Ints, entries: Entries) -> tuple[Visits, Bools]:
    """The brokers that entries bypass, by entry, and which entries lead up to their tails."""
    here = trees.parent[tree[entries.group], entries.head].astype(np.int64)
    item, broker = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for step in range(int(entries.bypassed.max(initial=0))):
        more = np.flatnonzero((entries.bypassed > step) & (here >= 0))
        if not len(more):
            break
        item.append(more)
        broker.append(here[more])
        here[more] = trees.parent[tree[entries.group[more]], here[more]]
    straight: Bools = (here == entries.tail) & (entries.bypassed >= 0)
    return Visits(np.concatenate(item), np.concatenate(broker)), straight


def hops(stored: StoredGroups) -> Longs:
    """How many entries lead from the root to the head of each entry.

    Entries must lead down their trees. One that hangs in the air counts from where it begins.
    """
    entries, size = stored.entries, len(stored.brokers)
    before = places_among(entries.group * size + entries.head, entries.group * size + entries.tail)
    count = len(before)
    up = np.append(np.where(before < 0, count, before), count)
    total = np.append(np.ones(count, np.int64), 0)
    while (up < count).any():
        total, up = total + total[up], up[up]
    return total[:count]


# ---- sets of pairs


def walked(trees: BrokerTrees, tree: Ints, item: Longs, ends: Longs) -> Visits:
    """All brokers on the ways from the roots to ends of items. O(ends × depth × log)."""
    size, found = trees.brokers, [np.empty(0, np.int64)]
    while len(item):
        below = ends != trees.root[tree[item]]
        found.append(sorted_once(item[below] * size + ends[below]))
        item, broker = np.divmod(found[-1], size)
        ends = trees.parent[tree[item], broker].astype(np.int64)
    return Visits(*np.divmod(sorted_once(np.concatenate(found)), size))


def sorted_once(keys: Longs) -> Longs:
    """Keys in order, each once. For so many of them sorting beats the hashing of `np.unique`."""
    keys = np.sort(keys)
    result: Longs = keys[np.append(True, np.diff(keys) != 0)[: len(keys)]]
    return result


# ---- what the plan says of all that


def counted_figures(
    record: GroupsRecord, stored: StoredGroups, subtrees: Induced, counted: CountedGroups
) -> dict[str, Floats]:
    """What the table of groups must say."""
    size, entries = np.diff(stored.starts), stored.entries
    used = np.bincount(entries.group, minlength=stored.size)
    away = stored.member != stored.trees.root[stored.tree[stored.member_group]]
    told_ = np.bincount(stored.member_group[away], minlength=stored.size)
    replies = np.bincount(entries.group[entries.bypassed > 0], minlength=stored.size)
    control = told_ + subtrees.links * (1 + record.params.shortcuts) + replies
    return {
        "members": size,
        "messages": counted.messages,
        "unwanted": counted.messages * size - counted.wanted,
        "entries": used,
        "control": control,
        "benefit": worth_by(record, stored, subtrees, counted, used, control),
    }


def worth_by(
    record: GroupsRecord,
    stored: StoredGroups,
    subtrees: Induced,
    counted: CountedGroups,
    entries: Longs,
    control: Longs,
) -> Floats:
    """What groups are worth by the rank that was asked for."""
    prices, size = record.params.prices, np.diff(stored.starts)
    if record.params.rank != "saving":
        many = size if record.params.rank == "nc" else subtrees.inner
        plain: Floats = counted.messages * many
        return plain
    worth: Floats = prices.forwarded * (counted.links - counted.messages * entries)
    worth = worth + prices.matched * counted.matches
    worth -= prices.entry * entries + prices.control * control
    return worth


def check_rows(
    stored: StoredGroups, own: dict[str, Floats], counted: CountedGroups, findings: Findings
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


def check_groups_record(
    record: GroupsRecord,
    stored: StoredGroups,
    found: int,
    own: dict[str, Floats],
    counted: CountedGroups,
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
    compare_ledger(
        record.ledger, counted.ledger | {"overhead": own["control"].sum()}, "ledger", findings
    )
    if record.bound < record.value - TOLERANCE * abs(record.value):
        what = f"{record.bound} is below the value {record.value}"
        findings.violate("plan.json: groups.bound", 1, [what])


def check_default(
    record: GroupsRecord, stored: StoredGroups, traffic: GroupTraffic, findings: Findings
) -> None:
    """The ledger without groups."""
    alone = replace(traffic, group=np.full(len(traffic.group), -1))
    none, nothing = no_entries(), np.empty(0, np.int64)
    bare = replace(stored, tree=stored.tree[:0], member_group=nothing, member=nothing, entries=none)
    counted = count_groups(bare, alone)
    compare_ledger(record.default, counted.ledger | {"overhead": 0}, "default", findings)


def no_entries() -> Entries:
    nothing = np.empty(0, np.int64)
    return Entries(nothing, nothing, nothing, nothing)


def compare_ledger(
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
