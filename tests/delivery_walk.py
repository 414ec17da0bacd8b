"""Every publication of a small world through the tables of a plan, with lists and sets alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from delivery_datasets import SITES, World, flow_of


def walked(world: World, plan: Path) -> Counter[str]:
    """Every publication through the tables of a plan, one by one."""
    return Walk(world, plan).run()


class Walk:
    """The tables of a plan, and a world whose publications take them."""

    def __init__(self, world: World, plan: Path) -> None:
        self.world = world
        rows = {path.stem: pq.read_table(path).to_pylist() for path in plan.glob("*.parquet")}
        self.row = {r["flow"]: r["audience_class"] for r in rows["flows"]}
        self.direct = {r["audience_class"] for r in rows["direct_classes"]}
        self.channels = gathered(rows["channel_flows"], "flow", "channel")
        self.members = gathered(rows["channel_subscribers"], "channel", "subscriber")
        self.alone = gathered(rows["unicast"], "flow", "subscriber")
        self.domain = {r["channel"]: r["domain"] for r in rows["channel_domains"]}
        clients = [(r["client"], r["role"], r["broker"]) for r in rows.get("clients", [])]
        self.home = {c: b for c, role, b in clients if role == "subscriber"}
        self.entry = {c: b for c, role, b in clients if role == "publisher"}
        self.links = [(r["a"], r["b"]) for r in rows.get("links", [])]
        roots = {r["group"]: r["root"] for r in rows.get("virtual_groups", [])}
        members = gathered(rows.get("group_members", []), "group", "broker")
        entries = Counter(
            r["group"] for name in ("group_links", "shortcuts") for r in rows.get(name, [])
        )
        self.groups = {(roots[g], frozenset(members[g])): entries[g] for g in roots}

    def run(self) -> Counter[str]:
        count: Counter[str] = Counter()
        for _, publisher, topic, size, value in self.world.sent:
            wanting = self.world.wanting(topic, value)
            flow = flow_of(topic, value)
            source = self.entry.get(publisher) if self.links else ""
            if source is None:
                count["missed"] += len(wanting)
            elif flow in self.row:
                self.planned(count, flow, source, wanting, size)
            else:
                self.unplanned(count, source, wanting, size)
        return count

    def planned(
        self, count: Counter[str], flow: str, source: str, wanting: set[str], size: int
    ) -> None:
        direct = self.row[flow] in self.direct
        channels, alone = self.channels[flow], self.alone[flow]
        copies = [who for channel in channels for who in self.members[channel]] + [*alone]
        count["sent_multicast"] += len(channels)
        count["sent_unicast"] += len(alone)
        count["direct"] += direct * sum(self.far(source, who) for who in alone)
        count["received_wanted"] += len(wanting & set(copies))
        count["received_unwanted"] += len(copies) - len(wanting & set(copies))
        count["missed"] += len(wanting - set(copies))
        count["received_bytes"] += size * len(copies)
        homes = {self.home[who] for who in alone} if self.links and not direct else set()
        needed = {broker for broker in homes if SITES[broker] is None}
        domains = {self.domain[channel] for channel in channels} if self.links else set()
        for domain in (domains | {SITES[b] for b in homes}) - {None, SITES.get(source)}:
            inside = [b for b in sorted(SITES) if SITES[b] == domain]
            needed.add(min(inside, key=lambda b: (len(self.way(source, b)), b)))
        self.carried(count, source, needed)

    def far(self, source: str, who: str) -> bool:
        """Whether a subscriber is neither at a broker nor at its site."""
        home = self.home.get(who, source)
        return home != source and (SITES[home] is None or SITES[home] != SITES[source])

    def unplanned(self, count: Counter[str], source: str, wanting: set[str], size: int) -> None:
        known = {who for who in wanting if who in self.home} if self.links else set()
        count["missed"] += len(wanting - known)
        count["sent_unicast"] += len(known)
        count["received_wanted"] += len(known)
        count["received_bytes"] += size * len(known)
        if self.links and wanting:
            self.carried(count, source, {self.home[who] for who in known})

    def carried(self, count: Counter[str], source: str, needed: set[str]) -> None:
        count["matched"] += 1
        if (source, frozenset(needed)) in self.groups:
            count["forwarded"] += self.groups[source, frozenset(needed)]
            return
        visited = {broker for end in needed for broker in self.way(source, end)}
        count["forwarded"] += len(visited)
        # An end of the tree has one link: nothing is behind it to match for.
        degree = Counter(end for link in self.links for end in link)
        count["matched"] += sum(degree[broker] > 1 for broker in visited)

    def way(self, source: str, end: str) -> list[str]:
        """Brokers after the source on the way to the end."""
        ways: dict[Any, list[Any]] = {source: []}
        waiting = [source]
        while end not in ways:
            here = waiting.pop(0)
            for a, b in [*self.links, *((b, a) for a, b in self.links)]:
                if a == here and b not in ways:
                    ways[b] = [*ways[here], b]
                    waiting.append(b)
        return ways[end]


def gathered(rows: list[dict[str, Any]], key: str, value: str) -> defaultdict[Any, set[Any]]:
    found: defaultdict[Any, set[Any]] = defaultdict(set)
    for row in rows:
        found[row[key]].add(row[value])
    return found
