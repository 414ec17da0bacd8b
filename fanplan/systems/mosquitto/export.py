"""A plan for Mosquitto: a configuration for each broker, and what clients publish and subscribe to.

Bridges do not follow interest, so each lists, in each direction, the ways that cross it. A message
is published as ``fp/<epoch>/<way>/<flow>/<topic>``; a bridge has one line for each way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fanplan.core.files import write_csv
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.live.message import epoch_of
from fanplan.live.names import token
from fanplan.plan.stored import StoredPlan
from fanplan.systems.params import ExportParams
from fanplan.systems.ways import Ways

DEFAULT = "x"
"""In the place of a way: flows that the plan does not know go along the whole tree."""

Bridge = dict[tuple[int, int], set[str]]
"""What crosses from one broker to another."""


def export(plan: StoredPlan, dataset: Path, ways: Ways, params: ExportParams, folder: Path) -> None:
    """Write configurations, one per broker, and the tables of clients."""
    root = f"fp/{epoch_of(plan.record.seal).hex()}"
    crossing = bridged_ways(ways)
    for broker in range(len(ways.brokers)):
        text = configuration(ways, crossing, broker, root, params.port)
        (folder / broker_file(ways, broker)).write_text(text, encoding="utf-8")
    write_csv(folder / "publish.csv", ("flow", "broker", "topic"), published(ways, root))
    write_csv(folder / "subscribe.csv", ("subscriber", "broker", "filter"), filters_of(ways, root))
    text = page(plan, ways, params.port, dataset.name, root)
    (folder / "README.md").write_text(text, encoding="utf-8")


def name_at(ways: Ways, broker: int) -> str:
    """The only broker of a plan without brokers has no name."""
    return token(ways.brokers[broker]) if ways.brokers[broker] else "broker"


def broker_file(ways: Ways, broker: int) -> str:
    return f"{name_at(ways, broker)}.conf"


def bridged_ways(ways: Ways) -> Bridge:
    """The ways that cross from one broker to the next; what has no flow crosses every link."""
    found: Bridge = defaultdict(set)
    for way, tail, head in zip(*(part.tolist() for part in ways.hops[:3]), strict=True):
        found[tail, head].add(str(way))
    for a, b in ways.edges[0].tolist() if ways.edges else ():
        found[a, b].add(DEFAULT)
        found[b, a].add(DEFAULT)
    return found


def configuration(ways: Ways, crossing: Bridge, broker: int, root: str, port: int) -> str:
    """A broker's own file. Of two linked brokers the first makes the bridge."""
    lines = [
        f"# Broker {ways.brokers[broker]!r}",
        f"listener {port + broker} 127.0.0.1",
        "allow_anonymous true",
        "persistence false",
        "max_queued_messages 0",
    ]
    others = {b for pair in crossing for b in pair if broker in pair and b > broker}
    for other in sorted(others):
        ends = f"{name_at(ways, broker)}-{name_at(ways, other)}"
        lines += [
            "",
            f"connection fp-{ends}",
            f"address 127.0.0.1:{port + other}",
            f"remote_clientid fp-{ends}",
            f"local_clientid fp-{ends}-local",
            "cleansession true",
            "notifications false",
            "restart_timeout 1",
            *topic_lines(crossing.get((broker, other), ()), "out", root),
            *topic_lines(crossing.get((other, broker), ()), "in", root),
        ]
    return "\n".join(lines) + "\n"


def topic_lines(crossing: Iterable[str], direction: str, root: str) -> list[str]:
    return [f"topic {root}/{way}/# {direction} 0" for way in sorted(crossing)]


def published(ways: Ways, root: str) -> list[tuple[str, str, str]]:
    """Where a flow is published that enters at a broker, but for the tokens of its topic."""
    return [
        (ways.flows[flow], ways.brokers[entry], f"{root}/{way}/{flow}")
        for flow, entry, way in zip(
            ways.flow.tolist(), ways.entry.tolist(), ways.way.tolist(), strict=True
        )
    ]


def filters_of(ways: Ways, root: str) -> list[tuple[str, str, str]]:
    """What each subscriber subscribes to, at the broker that sends it.

    A member of a channel is sent by it what it wants; what it does not want it need not get.
    """
    found = set(zip(*(part.tolist() for part in ways.last[:3]), strict=True))
    audience = {
        (parcel, who)
        for parcel, who, wanted in zip(
            *(getattr(ways.copies, name).tolist() for name in ("parcel", "subscriber", "wanted")),
            strict=True,
        )
        if wanted
    }
    members: dict[int, list[int]] = defaultdict(list)
    for channel, who in zip(*map(np.ndarray.tolist, ways.members), strict=True):
        members[channel].append(who)
    served = {(parcel, who) for parcel, _, who in found}
    for parcel, broker, channel in zip(*(part.tolist() for part in ways.sends), strict=True):
        for who in members[channel]:
            # One of several channels is enough, or the message would come twice.
            if (parcel, who) in audience and (parcel, who) not in served:
                found.add((parcel, broker, who))
                served.add((parcel, who))
    return sorted(
        {
            (ways.subscribers[who], ways.brokers[broker],
             f"{root}/{ways.way[parcel]}/{ways.flow[parcel]}/#")
            for parcel, broker, who in found
        }
    )  # fmt: skip


def lacks(plan: StoredPlan) -> tuple[str, ...]:
    """What of a plan Mosquitto does not enact, by name."""
    always = "interest: bridges do not follow it, so what crosses each is listed per direction"
    default = "flows that the plan does not know: they cross every link of the tree"
    channels = "channels: MQTT has no multicast; a member connects to each broker that sends to it"
    marks = "marks: bridges carry no subscriptions"
    return (
        always,
        default,
        *([channels] if plan.has(ChannelsRecord) else []),
        *([marks] if plan.has(MarkingRecord) else []),
    )


def page(plan: StoredPlan, ways: Ways, port: int, dataset: str, root: str) -> str:
    rows = "".join(
        f"| `{broker_file(ways, broker)}` | {name or 'the broker'} | {port + broker} |\n"
        for broker, name in enumerate(ways.brokers)
    )
    missing = "".join(f"- {each}\n" for each in lacks(plan))
    return f"""# The plan on Mosquitto

For the dataset {dataset}. A message is published as `{root}/`*way*`/`*flow*`/`*topic*, with `/`
between the tokens of its topic.

## Files

| file | broker | port |
| --- | --- | --- |
{rows}
`publish.csv` has where each flow is published that enters at a broker; append the topic.
`subscribe.csv` has what each subscriber subscribes to, and at which broker. A flow that is not
listed for a broker is published there as `{root}/{DEFAULT}/`*topic*, and who wants it subscribes to
`{root}/{DEFAULT}/`*pattern* at its own broker.

## Start

`mosquitto -c FILE.conf` for each broker, in any order: bridges connect when both ends are there. As
they are, all run on one machine; elsewhere, put the hosts in the lines `listener` and `address`,
and your own access rules in place of `allow_anonymous`.

## What is not expressed

{missing}"""
