"""A plan for Cyclone DDS: network partitions for channels, and who reads and writes which.

A reader or writer is in a channel by the DDS partition of its subscriber or publisher. The
configuration maps that partition, for all topics, to the channel's group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from fanplan.core.files import write_csv
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.live.names import token
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan
from fanplan.systems.addresses import channel_addresses
from fanplan.systems.params import ExportParams
from fanplan.systems.ways import Ways

CONFIG = "cyclonedds.xml"


def partition(channel: int) -> str:
    return f"fp_ch{channel}"


def unicast_partition(subscriber: str) -> str:
    """What is sent to one subscriber alone; a network partition of its own would be wasted."""
    return f"fp_to_{token(subscriber)}"


def export(plan: StoredPlan, dataset: Path, ways: Ways, params: ExportParams, folder: Path) -> None:
    """Write the configuration and the tables of readers and writers."""
    addresses = [*map(str, channel_addresses(params.addresses, len(ways.domains)))]
    configuration(addresses).write(folder / CONFIG, encoding="utf-8", xml_declaration=True)
    write_csv(folder / "writers.csv", ("flow", "topic", "partition"), writers(ways))
    write_csv(folder / "readers.csv", ("subscriber", "topic", "partition"), readers(ways))
    text = page(plan, addresses, dataset.name)
    (folder / "README.md").write_text(text, encoding="utf-8")


def configuration(addresses: list[str]) -> ET.ElementTree[ET.Element]:
    """Cyclone DDS stops at an element that it does not know, so there are no others."""
    root = ET.Element("CycloneDDS", xmlns="https://cdds.io/config")
    domain = ET.SubElement(root, "Domain", Id="any")
    if addresses:
        parts = ET.SubElement(domain, "Partitioning")
        networks = ET.SubElement(parts, "NetworkPartitions")
        mappings = ET.SubElement(parts, "PartitionMappings")
        for channel, address in enumerate(addresses):
            name = partition(channel)
            ET.SubElement(networks, "NetworkPartition", Name=name, Address=address)
            goal = {"DCPSPartitionTopic": f"{name}.*", "NetworkPartition": name}
            ET.SubElement(mappings, "PartitionMapping", goal)
    ET.indent(root)
    return ET.ElementTree(root)


def writers(ways: Ways) -> Iterator[tuple[str, str, str]]:
    """Each flow with the partitions that it is written to."""
    sent = {
        (int(ways.flow[p]), partition(c)) for p, c in pairs(ways.sends.parcel, ways.sends.channel)
    }
    alone = {
        (int(ways.flow[p]), unicast_partition(ways.subscribers[s]))
        for p, s in pairs(ways.last.parcel, ways.last.subscriber)
    }
    for flow, name in sorted(sent | alone):
        yield ways.flows[flow], ways.topics[flow], name


def readers(ways: Ways) -> Iterator[tuple[str, str, str]]:
    """Each subscriber with the topics that it reads and the partitions it reads them in."""
    topics: dict[int, set[str]] = {}
    for parcel, channel in pairs(ways.sends.parcel, ways.sends.channel):
        topics.setdefault(channel, set()).add(ways.topics[int(ways.flow[parcel])])
    found = {
        (ways.subscribers[who], topic, partition(channel))
        for channel, who in pairs(*ways.members)
        for topic in topics.get(channel, ())
    }
    found |= {
        (name, ways.topics[int(ways.flow[parcel])], unicast_partition(name))
        for parcel, who in pairs(ways.last.parcel, ways.last.subscriber)
        for name in (ways.subscribers[who],)
    }
    yield from sorted(found)


def pairs(a: np.ndarray, b: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(a.tolist(), b.tolist(), strict=True)


def lacks(plan: StoredPlan) -> tuple[str, ...]:
    """What of a plan Cyclone DDS does not enact, by name."""
    found: dict[type[SectionRecord], str] = {
        OverlayRecord: "the overlay: DDS has no brokers; writers reach the groups themselves, so "
        "all must be in one multicast domain, or routed between them",
        GroupsRecord: "groups and shortcuts: DDS has no brokers that forward",
        MarkingRecord: "marks: DDS discovery tells everybody of every reader and writer",
        DeliveryRecord: "domains of channels: a group reaches as far as the network routes it",
    }
    always = (
        "flows: a partition holds for all samples of a publisher, so an application needs a writer "
        "for each partition of a topic, and picks it by the flow of a sample (writers.csv)",
        "selectors: readers filter what they get, by a content filter or in the application",
    )
    return (*(said for layer, said in found.items() if plan.has(layer)), *always)


def page(plan: StoredPlan, addresses: list[str], dataset: str) -> str:
    missing = "".join(f"- {each}\n" for each in lacks(plan))
    return f"""# The plan on Cyclone DDS

{len(addresses)} channels for the dataset {dataset}: channel *j* is the DDS partition `fp_ch`*j*,
which `{CONFIG}` maps to a multicast group. What goes to one subscriber alone is in the partition
`fp_to_`*subscriber*, which has no group: with one reader, Cyclone DDS sends it by unicast.

## Files

| file | for |
| --- | --- |
| `{CONFIG}` | every process: network partitions and their groups |
| `writers.csv` | the partitions that each flow is written to |
| `readers.csv` | the topics and partitions that each subscriber reads |

## Start

1. Set `CYCLONEDDS_URI=file://…/{CONFIG}` for every process. To choose a network interface, add
   your own part after a comma: `file://…/{CONFIG},<General><Interfaces>…</Interfaces></General>`.
2. Make the readers of `readers.csv`, each with a subscriber whose partition QoS is the one listed.
3. Write each sample with the writers that `writers.csv` lists for its flow. The flow of a sample is
   found from its topic and attributes as `fanplan.live.entry` does.

Raise `net.ipv4.igmp_max_memberships` to the number of partitions that a process reads, if that is
above 20.

## What is not expressed

{missing}"""
