"""Questions to a plan: who gets a message and how, what is in vain, what if.

Every answer is a frame. All is read from the plan and its dataset, without Spark. Rates are
messages per second, over the window that was planned for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Longs, expanded
from fanplan.core.errors import NAMED, CheckError, InputError, Problem, readable, similar
from fanplan.data.dataset import Dataset
from fanplan.data.described import titled, wanted_words
from fanplan.data.frames import FrameKind, as_frame
from fanplan.data.reader import read_stage
from fanplan.layers.channels.explain import NOWHERE, explain_row, find_named, next_best, place_name
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.fixed import fixed_map
from fanplan.layers.registry import load_plan
from fanplan.live.entry import DEFAULT, Entry, read_entry
from fanplan.live.points import Attributes
from fanplan.network.dataset import read_link_table
from fanplan.page.network import link_name
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.systems.publications import published_batches
from fanplan.systems.traffic import entry_points
from fanplan.systems.ways import KINDS, LastHops, Sends, Ways, read_clients, read_ways
from fanplan.verbs.given import AnyPlan, plan_at

By = Literal["subscriber", "channel"]


@dataclass(frozen=True, eq=False)
class SentOnWays:
    """What was published, on the ways of a plan: ``messages`` of each parcel by each publisher.

    Row i is ``messages[i]`` of parcel ``parcel[i]`` by ``publisher[i]``, a position among clients.
    """

    ways: Ways
    parcel: Longs
    publisher: Longs
    messages: Longs

    @cached_property
    def by_parcel(self) -> Longs:
        size = len(self.ways.flow)
        return np.bincount(self.parcel, self.messages, size).astype(np.int64)


def read_sent(plan: StoredPlan, dataset: Dataset) -> SentOnWays:
    """Publications are looked at some at a time: kept are different pairs of flow and publisher."""
    tables, clients = read_entry(dataset.path), read_clients(plan, dataset.path)
    finder, at = Entry(tables), clients.entry_of()
    number = {name: i for i, name in enumerate(clients.publishers)}
    found, counts = np.empty((0, 2), np.int64), np.empty(0, np.int64)
    for some in published_batches(dataset.path, tables):
        flow, _ = entry_points(finder, some, at)
        who = np.array([number[name] for name in some.publishers], np.int64)[some.publisher]
        new = np.stack((flow, who), axis=1)[flow >= 0]
        found, place = np.unique(np.concatenate((found, new)), axis=0, return_inverse=True)
        weight = np.append(counts, np.ones(len(new), np.int64))
        counts = np.bincount(place.ravel(), weight, len(found)).astype(np.int64)
    entry = clients.entry.astype(np.int64)[found[:, 1]]
    ways = read_ways(plan, dataset.path, found[:, 0], entry)
    parcel = ways.parcels(found[:, 0], entry)
    there = parcel >= 0
    return SentOnWays(ways, parcel[there], found[there, 1], counts[there])


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of a plan for a dataset; answers are frames of ``kind``.

    With ``against``, another plan for the same dataset or its path, an answer has its figures
    beside.
    """

    plan: StoredPlan
    dataset: Dataset
    kind: FrameKind = "pandas"

    def __post_init__(self) -> None:
        require_dataset_of(self.plan, self.dataset.path)

    # ---- what can be asked

    def receivers(
        self,
        topic: str,
        attributes: Attributes | None = None,
        publisher: str | None = None,
        against: AnyPlan | None = None,
    ) -> Any:
        """Who gets a message of a topic with these attributes, wanted or not, and how."""
        return self._told(
            lambda asked: asked._receivers(topic, attributes or {}, publisher),
            ("from", "subscriber"),
            against,
        )

    def path(self, publisher: str, subscriber: str, against: AnyPlan | None = None) -> Any:
        """The way of each flow that a publisher sends and a subscriber gets."""
        return self._told(lambda asked: asked._path(publisher, subscriber), ("flow",), against)

    def why(self, flow: str, against: AnyPlan | None = None) -> Any:
        """Why a flow, or the flows of a topic, go where they do, and the next best place."""
        return self._told(lambda asked: asked._why(flow), ("flow",), against)

    def unwanted(self, by: By = "subscriber", against: AnyPlan | None = None) -> Any:
        """What is received in vain, the most first."""
        if by not in ("subscriber", "channel"):
            raise InputError(Problem("by", f"{by!r} is not known", "Use subscriber or channel"))
        return self._told(lambda asked: asked._unwanted(by), (by,), against)

    def bottlenecks(self, against: AnyPlan | None = None) -> Any:
        """Links, brokers and channels by how much of their limit is used; then by rate."""
        return self._told(lambda asked: asked._loads(), ("what", "name"), against)

    def without(
        self,
        broker: str | None = None,
        link: tuple[str, str] | str | None = None,
        against: AnyPlan | None = None,
    ) -> Any:
        """What subscribers miss if a broker or a link fails and nothing is planned anew.

        A link is two brokers, or its name as `bottlenecks` has it.
        """
        return self._told(lambda asked: asked._without(broker, link), ("subscriber",), against)

    def if_traffic(self, topic: str, times: float, against: AnyPlan | None = None) -> Any:
        """Loads if a topic is sent this many times as often, beside those of now."""
        return self._told(lambda asked: asked._if_traffic(topic, times), ("what", "name"), against)

    def cheapest_change(self, n: int = 10, against: AnyPlan | None = None) -> Any:
        """Moves of flows to another channel, or to unicast, that cost least or save most.

        At most ``n``. Each is by itself, with all members where they are; pinned flows stay.
        """
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise InputError(Problem("n", f"{n!r} is not a number of changes", "Give 1 or more"))
        return self._told(lambda asked: asked._cheapest(n), ("flows",), against)

    # ---- for a test of one's own

    def assert_reaches(
        self, topic: str, subscriber: str, attributes: Attributes | None = None
    ) -> None:
        """Raise a CheckError unless a subscriber gets messages of a topic with these attributes."""
        rows = self._receivers(topic, attributes or {}, None)
        self._require(subscriber, self._sent.ways.subscribers, "subscriber")
        got = {who for who, copies in pairs_of(rows, "subscriber", "copies") if copies}
        if subscriber not in got:
            raise CheckError(f"{subscriber!r} does not get {topic!r} {dict(attributes or {})}")

    def assert_no_unwanted_above(self, share: float, by: By = "subscriber") -> None:
        """Raise a CheckError if more than a share of what is received somewhere is in vain."""
        require_number("share", share, "a share of 1, such as 0.05")
        rows = self._unwanted(by)
        for name, found in pairs_of(rows, by, "share"):
            if found > share:
                raise CheckError(f"{by} {name}: {found:.1%} is in vain, more than {share:.1%}")

    # ---- answers

    def _told(
        self,
        answer: Callable[[Questions], pa.Table],
        keys: tuple[str, ...],
        against: AnyPlan | None,
    ) -> Any:
        table = answer(self)
        if against is not None:
            other = against if isinstance(against, StoredPlan) else load_plan(plan_at(against))
            table = beside(table, answer(replace(self, plan=other)), keys)
        return as_frame(table, self.kind)

    @cached_property
    def _sent(self) -> SentOnWays:
        return read_sent(self.plan, self.dataset)

    @cached_property
    def _entry(self) -> Entry:
        return Entry(read_entry(self.dataset.path))

    @property
    def _seconds(self) -> float:
        return self.dataset.manifest.seconds

    def _require(self, name: str, known: list[str], what: str) -> int:
        """The place of a name. Plans without brokers have one that has no name."""
        if name in known and name:
            return known.index(name)
        named = [one for one in known if one]
        some = ", ".join(map(readable, named[:3]))
        remedy = similar(str(name), named) or f"The plan has {len(named):,}, such as {some}"
        if not named:
            remedy = f"The plan has no {what}s"
        raise InputError(Problem(what, f"there is no {readable(str(name))!r}", remedy))

    def _receivers(self, topic: str, attributes: Attributes, publisher: str | None) -> pa.Table:
        entry, ways = self._entry, self._sent.ways
        number = entry.topics.find(topic)
        points = entry.rows([entry.topics.point(number, attributes)])
        flow = int(entry.flows(np.array([number]), points)[0])
        if flow == DEFAULT:
            who = [ways.subscribers[i] for i in entry.audience(number, points[0])]
            return receivers_table([("", name, True, 1, "default way") for name in who])
        if publisher is None:
            # What was never sent may come from wherever publishers are.
            entries = np.unique(ways.entry[ways.flow == flow])
            entries = entries if len(entries) else np.unique(ways.clients.entry).astype(np.int64)
        else:
            at = self._require(publisher, ways.clients.publishers, "publisher")
            entries = ways.clients.entry[at : at + 1].astype(np.int64)
        flows = np.full(len(entries), flow, np.int64)
        own = read_ways(self.plan, self.dataset.path, flows, entries) if flow >= 0 else ways
        rows = [row for parcel in range(len(entries) * (flow >= 0)) for row in got_of(own, parcel)]
        return receivers_table(rows)

    def _path(self, publisher: str, subscriber: str) -> pa.Table:
        sent, ways = self._sent, self._sent.ways
        sender = self._require(publisher, ways.clients.publishers, "publisher")
        who = self._require(subscriber, ways.subscribers, "subscriber")
        own = sent.publisher == sender
        rows = []
        for parcel, messages in zip(sent.parcel[own], sent.messages[own], strict=True):
            for at, how in arrival_steps(ways, int(parcel), who):
                flow = int(ways.flow[parcel])
                steps = walked_way(ways, int(parcel), at)
                row = (ways.flows[flow], self._words[flow], messages / self._seconds, steps, how)
                rows.append(row)
        names = ("flow", "description", "rate", "brokers", "then")
        return rows_as_table(names, rows, {"rate": pa.float64()})

    @cached_property
    def _words(self) -> list[str]:
        """What each flow is, in words; empty for flows that nobody wants."""
        flows = read_stage(self.dataset.path, "flows", ("topic", "audience_class"))
        told = iter(wanted_words(self.dataset.path).to_pylist())
        return [
            titled(topic, next(told)) if wanted >= 0 else ""
            for topic, wanted in zip(*(c.to_pylist() for c in flows.columns), strict=True)
        ]

    def _why(self, name: str) -> pa.Table:
        record = self.plan.section(ChannelsRecord)
        found = find_named(self.dataset, name)
        problem = self.dataset.interest()
        map_ = fixed_map(self.plan, self.dataset.path, problem)
        rows = []
        for number in found.numbers.tolist():
            flow = found.flows.wanted.slice(number, 1).to_pylist()[0]
            told = explain_row(
                problem,
                map_,
                record.weights,
                int(found.flows.classes[number]),
                record.params.unicast_limit != 0,
            )
            share = flow["messages"] / self._seconds / told["rate"] if told["rate"] else 0.0
            placed = ", ".join(str(one["channel"]) for one in told["channels"])
            rows.append(
                (
                    *(flow["flow"], told["audience"], flow["messages"] / self._seconds, placed),
                    *(told["unicast"], told["cost"] * share, told["runner_up"]),
                    None if told["runner_up_cost"] is None else told["runner_up_cost"] * share,
                )
            )
        names = ("flow", "audience", "rate", "channels", "by_unicast", "cost", "runner_up",
                 "runner_up_cost")  # fmt: skip
        return rows_as_table(names, rows, {"runner_up_cost": pa.float64()})

    def _cheapest(self, n: int) -> pa.Table:
        record, problem = self.plan.section(ChannelsRecord), self.dataset.interest()
        map_, params = fixed_map(self.plan, self.dataset.path, problem), record.params
        now, then, place = next_best(
            problem, map_, record.weights, params.unicast_limit != 0, params.max_channel_rate
        )
        free = (
            (place != NOWHERE)
            & (problem.rates > 0)
            & ~self._kept(problem.size, {*params.pinned, *params.off_multicast})
        )
        change = np.where(free, then - now, np.inf)
        order = np.lexsort((np.arange(problem.size), change))[: min(n, int(free.sum()))]
        names = self._flows_of(order)
        rows = []
        for row in order.tolist():
            mine = map_.assigned.right[map_.assigned.left == row]
            other = place_name(place[row : row + 1][place[row : row + 1] >= 0])
            moved = (place_name(mine), other, now[row], then[row], change[row])
            rows.append((names[row], problem.rates[row], *moved))
        return rows_as_table(tuple(MOVES), rows, MOVES)

    def _kept(self, size: int, asked: set[str]) -> Bools:
        """Which audience classes have a flow that was asked to be where it is."""
        stage = read_stage(self.dataset.path, "flows", ("flow", "topic", "audience_class"))
        kept = np.zeros(size, bool)
        if asked:
            named = zip(*(column.to_pylist() for column in stage.columns), strict=True)
            kept[[c for flow, topic, c in named if c >= 0 and {flow, topic} & asked]] = True
        return kept

    def _flows_of(self, classes: Longs) -> dict[int, str]:
        """The flows of some audience classes, in words."""
        stage = read_stage(self.dataset.path, "flows", ("flow", "audience_class"))
        chosen = stage.filter(
            pc.is_in(
                stage["audience_class"], pa.array(classes.tolist(), stage["audience_class"].type)
            )
        )
        found: dict[int, list[str]] = defaultdict(list)
        for flow, number in pairs_of(chosen, "flow", "audience_class"):
            found[number].append(flow)
        return {
            number: ", ".join(flows[:NAMED])
            + (f" and {len(flows) - NAMED} more" * (len(flows) > NAMED))
            for number, flows in found.items()
        }

    def _unwanted(self, by: By) -> pa.Table:
        ways, messages = self._sent.ways, self._sent.by_parcel
        copies = ways.copies
        times = messages[copies.parcel]
        if by == "subscriber":
            keys, names = copies.subscriber, ways.subscribers
            vain = times * np.where(copies.wanted, np.maximum(copies.copies - 1, 0), copies.copies)
            total = times * copies.copies
        else:
            keys, total, vain = in_channels(ways, messages)
            names = [str(channel) for channel in range(len(ways.domains))]
        received = np.bincount(keys, total, len(names)) / self._seconds
        lost = np.bincount(keys, vain, len(names)) / self._seconds
        share = np.divide(lost, received, out=np.zeros(len(lost)), where=received > 0)
        order = np.lexsort((np.arange(len(lost)), -lost))
        rows = [(names[i], received[i], lost[i], share[i]) for i in order]
        types = dict.fromkeys((by, "received", "unwanted", "share"), pa.float64())
        return rows_as_table(tuple(types), rows, types | {by: pa.string()})

    def _loads(self, messages: Longs | None = None) -> pa.Table:
        rows = []
        limits = self._limits
        for (what, name), rate in self._rates(messages).items():
            limit = limits.get((what, name))
            rows.append((what, name, rate, limit, 100 * rate / limit if limit else None))
        rows.sort(key=lambda row: (-(row[4] or 0.0), -row[2], row[0], row[1]))
        return rows_as_table(("what", "name", "rate", "limit", "percent"), rows, LOADS)

    @cached_property
    def _limits(self) -> dict[tuple[str, str], float]:
        """What a link or broker can carry and a channel may, where it is known."""
        found: dict[tuple[str, str], float] = {}
        table = read_link_table(self.dataset.path)
        for row in [] if table is None else table.to_pylist():
            if row["bandwidth"] is not None:
                found["link", link_name(row["a"], row["b"])] = row["bandwidth"]
        if "brokers" in self.dataset.manifest.stages:
            known = read_stage(self.dataset.path, "brokers", ("broker", "capacity")).to_pylist()
            limited = [row for row in known if row["capacity"] is not None]
            found |= {("broker", row["broker"]): row["capacity"] for row in limited}
        record = self.plan.find(ChannelsRecord)
        limit = None if record is None else record.params.max_channel_rate
        if limit is not None:
            for channel in range(len(self._sent.ways.domains)):
                found["channel", str(channel)] = limit
        return found

    def _rates(self, messages: Longs | None) -> Mapping[tuple[str, str], float]:
        """Messages a second on each link, into each broker and on each channel."""
        ways = self._sent.ways
        many = self._sent.by_parcel if messages is None else messages
        found: dict[tuple[str, str], float] = defaultdict(float)
        hops, names = ways.hops, ways.brokers
        on_way = np.bincount(ways.way, many, ways.size)
        for way, tail, head in zip(hops.way, hops.tail, hops.head, strict=True):
            rate = on_way[way] / self._seconds
            found["link", link_name(names[tail], names[head])] += rate
            found["broker", names[head]] += rate
        for broker, count in enumerate(np.bincount(ways.entry, many, len(names))):
            if count and names[broker]:
                found["broker", names[broker]] += count / self._seconds
        for channel, count in enumerate(
            np.bincount(ways.sends.channel, many[ways.sends.parcel], len(ways.domains))
        ):
            found["channel", str(channel)] += count / self._seconds
        return found

    def _without(self, broker: str | None, link: tuple[str, str] | str | None) -> pa.Table:
        ways = self._sent.ways
        if (broker is None) == (link is None):
            raise InputError(Problem("without", "needs one thing", "Name a broker or a link"))
        gone = [broker] if broker is not None else ends_named(link)
        ends = [self._require(name, ways.brokers, "broker") for name in gone]
        lost_way = cut_off(ways, ends if broker is None else [], ends[0] if broker else -1)
        missed = missed_by(ways, lost_way, self._sent.by_parcel)
        wanted = np.bincount(
            ways.copies.subscriber,
            self._sent.by_parcel[ways.copies.parcel] * ways.copies.wanted,
            len(ways.subscribers),
        )
        order = np.lexsort((np.arange(len(missed)), -missed))
        rows = [
            (ways.subscribers[i], wanted[i] / self._seconds, missed[i] / self._seconds,
             missed[i] / wanted[i])
            for i in order
            if missed[i]
        ]  # fmt: skip
        types = dict.fromkeys(("subscriber", "wanted", "missed", "share"), pa.float64())
        return rows_as_table(tuple(types), rows, types | {"subscriber": pa.string()})

    def _if_traffic(self, topic: str, times: float) -> pa.Table:
        require_number("times", times, "a factor, 0 or more")
        ways = self._sent.ways
        self._require(topic, ways.topics, "topic")
        own = np.array([name == topic for name in ways.topics])[ways.flow]
        now = self._loads()
        then = self._loads(np.where(own, times * self._sent.by_parcel, self._sent.by_parcel))
        return beside(then, now, ("what", "name"), "now")


LOADS = {
    "what": pa.string(),
    "name": pa.string(),
    "rate": pa.float64(),
    "limit": pa.float64(),
    "percent": pa.float64(),
}
MOVES = {
    "flows": pa.string(),
    "rate": pa.float64(),
    "now": pa.string(),
    "then": pa.string(),
    "cost_now": pa.float64(),
    "cost_then": pa.float64(),
    "change": pa.float64(),
}
RECEIVERS = {
    "from": pa.string(),
    "subscriber": pa.string(),
    "wanted": pa.bool_(),
    "copies": pa.int64(),
    "how": pa.string(),
}


def require_number(name: str, value: Any, what: str) -> None:
    """What is no number, or below 0, is refused before anything is counted."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < float("inf"):
        raise InputError(Problem(name, f"{value!r} will not do", f"Give {what}"))


def ends_named(link: Any) -> list[str]:
    """The two brokers of a link: a pair, or its name."""
    ends = re.split(r" – |,", link) if isinstance(link, str) else list(link)
    if len(ends) != 2:
        raise InputError(
            Problem("link", f"{link!r} is not a link", "Name two brokers, such as b1,b2")
        )
    return [end.strip() for end in ends]


def receivers_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return rows_as_table(tuple(RECEIVERS), rows, RECEIVERS)


def rows_as_table(
    names: tuple[str, ...], rows: list[tuple[Any, ...]], types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Rows as a table; without rows, a column whose type is not told is of texts."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return pa.table(
        {
            name: pa.array(list(values), types.get(name) or (None if rows else pa.string()))
            for name, values in zip(names, columns, strict=True)
        }
    )


def pairs_of(table: pa.Table, one: str, other: str) -> Iterator[tuple[Any, Any]]:
    return zip(table[one].to_pylist(), table[other].to_pylist(), strict=True)


def beside(mine: pa.Table, other: pa.Table, keys: tuple[str, ...], word: str = "other") -> pa.Table:
    """Rows of two answers side by side; where both have a number, also how it changed."""
    joined = mine.join(other, list(keys), join_type="full outer", right_suffix=f"_{word}")
    columns = {key: joined[key] for key in keys}
    for name in mine.column_names:
        if name in keys:
            continue
        now, then = joined[name], joined[f"{name}_{word}"]
        columns |= {name: now, f"{name}_{word}": then}
        if pa.types.is_floating(now.type):
            change = pc.subtract(pc.fill_null(now, 0.0), pc.fill_null(then, 0.0))
            known = pc.or_(pc.is_valid(now), pc.is_valid(then))
            # An answer may have changes of its own, which stay what they are.
            between = "change" if f"{name}_change" not in mine.column_names else f"{word}_change"
            columns[f"{name}_{between}"] = pc.if_else(known, change, None)
    return pa.table(columns).sort_by([(key, "ascending") for key in keys])


# ---- ways


def got_of(ways: Ways, parcel: int) -> Iterator[tuple[str, str, bool, int, str]]:
    """Everybody who gets a parcel or wants it: from where, who, wanted, copies, and how."""
    copies, begin = ways.copies, ways.brokers[ways.entry[parcel]]
    for at in np.flatnonzero(copies.parcel == parcel):
        who = int(copies.subscriber[at])
        how = "; ".join(dict.fromkeys(text for _, text in arrival_steps(ways, parcel, who)))
        yield (
            begin,
            ways.subscribers[who],
            bool(copies.wanted[at]),
            int(copies.copies[at]),
            how or "not at all",
        )


def arrival_steps(ways: Ways, parcel: int, subscriber: int) -> Iterator[tuple[int, str]]:
    """How a parcel comes to a subscriber: the broker that sends it last, and by what."""
    last, sends = ways.last, ways.sends
    for at in np.flatnonzero((last.parcel == parcel) & (last.subscriber == subscriber)):
        broker = int(last.broker[at])
        word = "direct" if last.direct[at] else "last hop" if ways.brokers[broker] else "unicast"
        yield broker, word
    joined = ways.members[0][ways.members[1] == subscriber]
    for at in np.flatnonzero((sends.parcel == parcel) & np.isin(sends.channel, joined)):
        yield int(sends.broker[at]), f"channel {sends.channel[at]}"


def walked_way(ways: Ways, parcel: int, end: int) -> str:
    """The brokers from a parcel's entry to one that sends it on, with how each step is made."""
    own = np.flatnonzero(ways.hops.way == ways.way[parcel])
    came = {int(ways.hops.head[i]): i for i in own}
    steps, at = [ways.brokers[end]], end
    while at != ways.entry[parcel] and at in came:
        hop = came[at]
        at = int(ways.hops.tail[hop])
        steps += [f"–{KINDS[int(ways.hops.kind[hop])]}→", ways.brokers[at]]
    return " ".join(reversed(steps))


def in_channels(ways: Ways, messages: Longs) -> tuple[Longs, Longs, Longs]:
    """Of each copy that a channel brings to a member: the channel, messages, and those in vain."""
    sends = ways.sends
    starts = np.searchsorted(ways.members[0], np.arange(len(ways.domains) + 1))
    row, place = expanded(starts, sends.channel)
    who = ways.members[1][place]
    people = len(ways.subscribers)
    copies = ways.copies
    asked = (copies.parcel * people + copies.subscriber)[copies.wanted]
    wanted = np.isin(sends.parcel[row] * people + who, asked)
    times = messages[sends.parcel[row]]
    return sends.channel[row], times, times * ~wanted


def cut_off(ways: Ways, link: list[int], broker: int) -> Callable[[Longs, Longs], Bools]:
    """Tells which (way, entry) reach a broker no longer, if a link or a broker is gone."""
    hops = ways.hops
    if link:
        both = np.sort(np.stack((hops.tail, hops.head)), axis=0)
        gone = (both[0] == min(link)) & (both[1] == max(link))
    else:
        gone = (hops.tail == broker) | (hops.head == broker)
    reached = {}
    by_way: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for way, tail, head in zip(hops.way[~gone], hops.tail[~gone], hops.head[~gone], strict=True):
        by_way[int(way)].append((int(tail), int(head)))
    first = {int(way): int(begin) for way, begin in zip(ways.way, ways.entry, strict=True)}
    for way, begin in first.items():
        found = {begin} - {broker}
        left = by_way[way]
        while more := {head for tail, head in left if tail in found} - found:
            found |= more
        reached[way] = found

    def lost(way: Longs, at: Longs) -> Bools:
        pairs = zip(way.tolist(), at.tolist(), strict=True)
        return np.array([end not in reached[one] for one, end in pairs], bool)

    return lost


def missed_by(ways: Ways, lost: Callable[[Longs, Longs], Bools], messages: Longs) -> Floats:
    """Wanted messages of each subscriber that nothing brings any more."""
    people = len(ways.subscribers)
    last, sends = ways.last, ways.sends
    keeps_last = ~lost(ways.way[last.parcel], last.broker)
    keeps_send = ~lost(ways.way[sends.parcel], sends.broker)
    kept = replace(
        ways,
        last=LastHops._make(column[keeps_last] for column in last),
        sends=Sends._make(column[keeps_send] for column in sends),
    )
    copies = kept.copies
    gone = copies.wanted & (copies.copies == 0)
    found: Floats = np.bincount(
        copies.subscriber[gone], messages[copies.parcel[gone]], people
    ).astype(np.float64)
    return found


QUESTIONS = {
    name: (getattr(Questions, name).__doc__ or "").strip().splitlines()[0]
    for name in (
        *("receivers", "path", "why", "unwanted", "bottlenecks", "without", "if_traffic"),
        "cheapest_change",
    )
}
"""What can be asked, and what the answer is."""
