"""Ways as subjects: which account carries each, who publishes and who listens where.

Leafnodes follow interest along a tree, so they carry all that stays on its links: a broker's
interest is one subject for each way that it must have. What leaves the tree, namely groups with
shortcuts, is sent on by agents between servers, and so is what a broker sends to channels. A
channel is a subject at each broker that sends to it, and its members are connected there: as with
multicast, no other broker has part in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Bools
from fanplan.data.reader import read_manifest, read_stage
from fanplan.live.names import subject
from fanplan.live.nats.plan import (
    DEFAULT,
    DIRECT,
    LOCAL,
    NO_FLOW,
    AgentPlan,
    Listening,
    NatsPlan,
    Server,
    Target,
)
from fanplan.network.trees import hang
from fanplan.plan.stored import StoredPlan
from fanplan.systems.ways import SHORTCUT, Hops, LastHops, Ways

LEAFNODE, AGENT = "leafnode", "agent"


def epoch_name(plan: StoredPlan) -> str:
    """By which subjects of a plan are told from those of others."""
    return plan.record.seal[:8]


@dataclass(frozen=True)
class Enacting:
    """The subjects of ways, while they are listed."""

    ways: Ways
    epoch: str

    @property
    def prefix(self) -> str:
        return f"fp.{self.epoch}"

    @property
    def by_agents(self) -> Bools:
        """Ways that leave their tree: a leafnode would have to close a cycle."""
        found = np.zeros(self.ways.size, bool)
        found[self.ways.hops.way[self.ways.hops.kind == SHORTCUT]] = True
        return found

    def accounts(self) -> list[str]:
        """The account of each way."""
        tree = np.zeros(self.ways.size, np.int64)
        tree[self.ways.way] = self.ways.tree
        both = zip(tree.tolist(), self.by_agents.tolist(), strict=True)
        return [LOCAL if agents else tree_account(number) for number, agents in both]

    def means(self) -> list[str]:
        """How each hop is made."""
        return [AGENT if own else LEAFNODE for own in self.by_agents[self.ways.hops.way].tolist()]

    def publish(self) -> dict[int, dict[int, tuple[Target, ...]]]:
        """Where each flow is published at each entry."""
        ways, account = self.ways, self.accounts()
        found: dict[int, dict[int, list[Target]]] = defaultdict(lambda: defaultdict(list))
        for parcel in np.flatnonzero(self.travelling()).tolist():
            target = (account[ways.way[parcel]], str(ways.way[parcel]))
            found[int(ways.entry[parcel])][int(ways.flow[parcel])].append(target)
        sends, here = ways.sends, ways.entry[ways.sends.parcel] == ways.sends.broker
        for parcel, channel in zip(
            sends.parcel[here].tolist(), sends.channel[here].tolist(), strict=True
        ):
            target = (LOCAL, f"c{channel}")
            found[int(ways.entry[parcel])][int(ways.flow[parcel])].append(target)
        for parcel in np.unique(ways.last.parcel[ways.last.direct]).tolist():
            found[int(ways.entry[parcel])][int(ways.flow[parcel])].append((LOCAL, DIRECT))
        return {
            entry: {flow: tuple(targets) for flow, targets in sorted(flows.items())}
            for entry, flows in sorted(found.items())
        }

    def travelling(self) -> Bools:
        """Parcels that leave their entry on a way, or have a last hop there."""
        ways = self.ways
        leads = np.zeros(ways.size, bool)
        leads[ways.hops.way] = True
        found: Bools = leads[ways.way]
        found[ways.last.parcel[~ways.last.direct]] = True
        return found

    def listens(self) -> dict[str, tuple[Listening, ...]]:
        """What each subscriber listens to: channels, last hops, what is direct, and the rest."""
        found: dict[int, set[Listening]] = defaultdict(set)
        self._listen_to_last_hops(found)
        ways, prefix = self.ways, self.prefix
        senders: dict[int, set[int]] = defaultdict(set)
        for broker, channel in zip(*map(np.ndarray.tolist, ways.sends[1:]), strict=True):
            senders[channel].add(broker)
        for channel, who in zip(*map(np.ndarray.tolist, ways.members), strict=True):
            for broker in senders[channel]:
                found[who].add(Listening(broker, LOCAL, f"{prefix}.c{channel}.>"))
        direct = ways.last.direct
        for parcel, broker, who in first_three(ways.last, direct):
            heard = Listening(broker, LOCAL, f"{prefix}.{DIRECT}.{ways.flow[parcel]}.>")
            found[who].add(heard)
        return {name: tuple(sorted(found[who])) for who, name in enumerate(ways.subscribers)}

    def _listen_to_last_hops(self, found: dict[int, set[Listening]]) -> None:
        """One subject for all ways of a flow if a broker has all of them for a subscriber."""
        ways, account = self.ways, self.accounts()
        every: dict[tuple[int, str], set[int]] = defaultdict(set)
        for parcel in np.flatnonzero(self.travelling()).tolist():
            way = int(ways.way[parcel])
            every[int(ways.flow[parcel]), account[way]].add(way)
        own: dict[tuple[int, int, int, str], set[int]] = defaultdict(set)
        near = ~ways.last.direct
        for parcel, broker, who in first_three(ways.last, near):
            way = int(ways.way[parcel])
            own[who, broker, int(ways.flow[parcel]), account[way]].add(way)
        for (who, broker, flow, name), some in own.items():
            # Where channels and what is direct have subjects too, a wildcard would hear these.
            all_of_it = name != LOCAL and some == every[flow, name]
            for part in ["*"] if all_of_it else sorted(map(str, some)):
                found[who].add(Listening(broker, name, f"{self.prefix}.{part}.{flow}.>"))

    def agents(self) -> dict[int, AgentPlan]:
        """Brokers that need an agent, and what it does."""
        ways, account = self.ways, self.accounts()
        forward: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        agents = self.by_agents[ways.hops.way]
        for way, tail, head in first_three(ways.hops, agents):
            forward[tail][str(way)].append(head)
        channels: dict[int, dict[str, dict[str, list[str]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        for parcel, broker, channel in zip(*map(np.ndarray.tolist, ways.sends), strict=True):
            if broker != ways.entry[parcel]:
                flows = channels[broker][str(ways.way[parcel])]
                flows[str(ways.flow[parcel])].append(f"c{channel}")
        return {
            broker: AgentPlan(
                tuple(
                    Listening(broker, account[int(way)], f"{self.prefix}.{way}.>")
                    for way in sorted({*forward[broker], *channels[broker]}, key=int)
                ),
                {way: tuple(heads) for way, heads in forward[broker].items()},
                {
                    way: {flow: tuple(names) for flow, names in flows.items()}
                    for way, flows in channels[broker].items()
                },
            )
            for broker in sorted({*forward, *channels})
        }


def first_three(parts: LastHops | Hops, chosen: Bools) -> Iterator[tuple[int, int, int]]:
    """The first three numbers of some rows."""
    first, second, third = (part[chosen].tolist() for part in parts[:3])
    return zip(first, second, third, strict=True)


def tree_account(number: int) -> str:
    return f"tree{number}"


def enacted(plan: StoredPlan, dataset: Path, ways: Ways, servers: tuple[Server, ...]) -> NatsPlan:
    """A plan as clients and agents on NATS take it."""
    epoch = epoch_name(plan)
    own = Enacting(ways, epoch)
    listens = own.listens()
    for who, more in default_listening(dataset, ways, own.prefix).items():
        listens[who] += more
    trees = {int(e): tree_account(t) for e, t in zip(ways.entry, ways.tree, strict=True)}
    return NatsPlan(
        epoch=epoch,
        password=epoch,
        accounts=(*(tree_account(number) for number in range(len(ways.edges))), LOCAL),
        servers=servers,
        entries=ways.clients.entry_of(),
        publish=own.publish(),
        default=trees,
        listens=listens,
        agents=own.agents(),
        remotes=remotes_of(ways),
    )


def remotes_of(ways: Ways) -> dict[int, tuple[tuple[str, int], ...]]:
    """Each link of each tree, from the end that is farther from the first broker."""
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for number, edges in enumerate(ways.edges):
        if len(edges):
            tree = hang(edges, int(edges.min()), len(ways.brokers))
            for broker in tree.order[1:].tolist():
                found[broker].append((tree_account(number), int(tree.parent[broker])))
    return {broker: tuple(heads) for broker, heads in sorted(found.items())}


def default_listening(dataset: Path, ways: Ways, prefix: str) -> dict[str, tuple[Listening, ...]]:
    """For flows that the plan does not know everybody listens to the topics it asked for."""
    topics = read_stage(dataset, "topics", ("topic", "topic_id")).sort_by("topic_id")["topic"]
    names, syntax = topics.to_pylist(), read_manifest(dataset).topic_syntax
    regions = read_stage(dataset, "regions", ("topic_id", "subscriber_id"))
    asked = regions.group_by(["topic_id", "subscriber_id"]).aggregate([])
    found: dict[str, list[Listening]] = defaultdict(list)
    for row in asked.sort_by([(n, "ascending") for n in ("subscriber_id", "topic_id")]).to_pylist():
        who, topic = row["subscriber_id"], subject(names[row["topic_id"]], syntax)
        for number in range(len(ways.edges)):
            home, account = int(ways.clients.home[who]), tree_account(number)
            heard = Listening(home, account, f"{prefix}.{DEFAULT}.{NO_FLOW}.{topic}")
            found[ways.subscribers[who]].append(heard)
    return {who: tuple(each) for who, each in found.items()}
