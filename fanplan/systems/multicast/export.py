"""A plan for IP multicast: addresses, who joins what, and the limits of hosts and switches."""

from __future__ import annotations

from collections import defaultdict
from ipaddress import IPv4Address
from pathlib import Path
from textwrap import dedent

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.files import write_csv
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.live.entry import read_entry, save_entry
from fanplan.live.message import epoch_of
from fanplan.live.multicast.plan import MulticastPlan, SentWays
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan
from fanplan.systems.addresses import channel_addresses, mac_of
from fanplan.systems.params import ExportParams
from fanplan.systems.system import APPLICATION
from fanplan.systems.ways import Ways

MEMBERSHIPS = 20
"""Groups that a socket may join on Linux unless told otherwise."""
BUFFER = 64 << 20


def multicast_plan(plan: StoredPlan, ways: Ways, params: ExportParams) -> MulticastPlan:
    """What senders and subscribers need."""
    members: dict[str, list[int]] = defaultdict(list)
    for channel, who in zip(*map(np.ndarray.tolist, ways.members), strict=True):
        members[ways.subscribers[who]].append(channel)
    addresses = channel_addresses(params.addresses, len(ways.domains))
    return MulticastPlan(
        epoch=epoch_of(plan.record.seal),
        port=params.port,
        addresses=tuple(map(str, addresses)),
        brokers=tuple(ways.brokers),
        entries=ways.clients.entry_of(),
        subscribers=tuple(ways.subscribers),
        members={who: tuple(channels) for who, channels in sorted(members.items())},
        ways=SentWays(
            of_parcels(ways, ways.sends.parcel, ways.sends.broker, ways.sends.channel),
            of_parcels(ways, ways.last.parcel, ways.last.broker, ways.last.subscriber),
        ),
        hosts={},
    )


def of_parcels(ways: Ways, parcel: Longs, sender: Longs, goal: Longs) -> Longs:
    return np.column_stack([ways.flow[parcel], ways.entry[parcel], sender, goal])


def export(plan: StoredPlan, dataset: Path, ways: Ways, params: ExportParams, folder: Path) -> None:
    """Write all that a user of the plan needs into a folder."""
    made = multicast_plan(plan, ways, params)
    made.save(folder)
    save_entry(read_entry(dataset), folder)
    write_joins(made, ways, folder)
    (folder / "99-fanplan.conf").write_text(sysctls(made), encoding="utf-8")
    (folder / "README.md").write_text(page(made, ways, lacks(plan)), encoding="utf-8")


def write_joins(plan: MulticastPlan, ways: Ways, folder: Path) -> None:
    """Tables for those who do not use the library: channels, and who joins which."""
    macs = (mac_of(IPv4Address(group)) for group in plan.addresses)
    rows = zip(range(len(plan.addresses)), plan.addresses, macs, ways.domains, strict=True)
    write_csv(folder / "channels.csv", ("channel", "group", "mac", "domain"), rows)
    joins = (
        (who, channel, plan.addresses[channel])
        for who, channels in plan.members.items()
        for channel in channels
    )
    write_csv(folder / "joins.csv", ("subscriber", "channel", "group"), joins)


def most_joins(plan: MulticastPlan) -> int:
    return max(map(len, plan.members.values()), default=0)


def sysctls(plan: MulticastPlan) -> str:
    return dedent(f"""\
        # For hosts of subscribers and senders: /etc/sysctl.d/99-fanplan.conf
        # One socket joins up to {most_joins(plan)} groups.
        net.ipv4.igmp_max_memberships = {max(most_joins(plan), MEMBERSHIPS)}
        # IGMPv2 loses joins at switches that suppress reports.
        net.ipv4.conf.all.force_igmp_version = 3
        # Datagrams wait here while a subscriber is busy.
        net.core.rmem_max = {BUFFER}
        # For hosts that send: Linux silently drops what is for more neighbours than this.
        net.ipv4.neigh.default.gc_thresh3 = {max(1024, 4 * len(plan.subscribers))}
        """)


def page(plan: MulticastPlan, ways: Ways, lacks: tuple[str, ...]) -> str:
    """How to use the export."""
    domains = sorted({domain or "everywhere" for domain in ways.domains})
    per_domain = max((ways.domains.count(name) for name in {*ways.domains}), default=0)
    entries = sum(map(len, plan.members.values()))
    missing = "".join(f"- {each}\n" for each in lacks) or "- nothing of this plan\n"
    first, last = (plan.addresses[0], plan.addresses[-1]) if plan.addresses else ("none", "none")
    return f"""# The plan on IP multicast

Epoch `{plan.epoch.hex()}`, {len(plan.addresses)} channels on {first} to {last}, UDP port \
{plan.port}.

## Files

| file | for |
| --- | --- |
| `channels.csv` | the group, its Ethernet address and the domain of each channel |
| `joins.csv` | which groups each subscriber joins |
| `hosts.csv` | fill in: the address of each subscriber's host, for what goes by unicast |
| `99-fanplan.conf` | limits of hosts: copy to `/etc/sysctl.d`, then `sysctl --system` |
| `multicast.json`, `ways.npz` | where each flow is sent, read by the library |
| `entry.json`, `entry.npz` | how a publication's flow is found, read by the library |

## Start

1. Copy the folder to the hosts of publishers and subscribers, with `hosts.csv` filled in.
2. Set the limits of `99-fanplan.conf`.
3. Applications use the library; it joins, sends and filters as the plan says:

{APPLICATION}

## What switches must hold

- IGMP snooping with IGMPv3, and a querier in each domain: without one, switches flood or forget.
- {per_domain} groups in a domain (domains: {", ".join(domains) or "none"}), and {entries} \
memberships in all. Switches hold from a few hundred to 32,000 groups, a Linux bridge 4,096
  (`mcast_hash_max`), network cards 14 to 128 before they pass on everything.
- A subscriber joins up to {most_joins(plan)} groups; Linux allows a socket {MEMBERSHIPS} unless \
`igmp_max_memberships` says more.
- No two groups share an Ethernet address, and none lies where switches flood.

## What is not expressed

{missing}"""


def lacks(plan: StoredPlan) -> tuple[str, ...]:
    """What of a plan IP multicast does not enact, by name."""
    found: dict[type[SectionRecord], str] = {
        OverlayRecord: "hops between brokers: each broker's sender must be handed what the overlay "
        "brings to it",
        GroupsRecord: "groups and shortcuts: they are hops between brokers too",
        MarkingRecord: "marks: multicast has no subscriptions that travel between brokers",
    }
    return tuple(said for layer, said in found.items() if plan.has(layer))
