"""A plan as files for NATS: a configuration for each server, and what clients and agents read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.live.entry import read_entry, save_entry
from fanplan.live.nats.config import file_of, pid_file_of, write_configs
from fanplan.live.nats.plan import FILE, NatsPlan, Server, load_plan
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan
from fanplan.systems.nats.enact import enacted
from fanplan.systems.nats.servers import HOST
from fanplan.systems.params import ExportParams
from fanplan.systems.system import APPLICATION
from fanplan.systems.ways import Ways

SERVERS = "servers"


def export(plan: StoredPlan, dataset: Path, ways: Ways, params: ExportParams, folder: Path) -> None:
    """Write all that a user of the plan needs into a folder."""
    made = enacted(plan, dataset, ways, export_servers(ways.brokers, params))
    made = replace(made, entries=publishers_of(made, params))
    made.save(folder)
    save_entry(read_entry(dataset), folder)
    (folder / SERVERS).mkdir()
    write_configs(made, folder / SERVERS)
    (folder / "README.md").write_text(page(made, ways, lacks(plan)), encoding="utf-8")


def export_servers(brokers: list[str], params: ExportParams) -> tuple[Server, ...]:
    """A server for each broker: as another export has it, or on the next ports."""
    known = () if params.like is None else load_plan(Path(params.like)).servers
    by_name = {server.broker: server for server in known}
    first = max([params.port, *(max(s.client, s.leafnodes, s.monitor) + 1 for s in known)])
    new = [broker for broker in brokers if broker not in by_name]
    for at, broker in enumerate(new):
        by_name[broker] = Server(broker, HOST, *range(first + 3 * at, first + 3 * at + 3))
    return tuple(by_name[broker] for broker in brokers)


def publishers_of(made: NatsPlan, params: ExportParams) -> dict[str, int]:
    """Where publishers are; those of the other export that were silent stay at their brokers."""
    if params.like is None:
        return made.entries
    before = load_plan(Path(params.like))
    homes = {name: before.servers[entry].broker for name, entry in before.entries.items()}
    stay = {name: made.number[home] for name, home in homes.items() if home in made.number}
    return stay | made.entries


def lacks(plan: StoredPlan) -> tuple[str, ...]:
    """What of a plan NATS does not enact, by name."""
    marks = "marks: NATS decides itself where interest travels, and tells it everywhere on a tree"
    channels = (
        "multicast: a channel is a subject at each broker that sends to it, and its members are "
        "connected there; the server sends one copy to each"
    )
    found: dict[type[SectionRecord], str] = {MarkingRecord: marks, ChannelsRecord: channels}
    return tuple(said for layer, said in found.items() if plan.has(layer))


def page(plan: NatsPlan, ways: Ways, lacking: tuple[str, ...]) -> str:
    """How to use the export."""
    rows = "".join(
        f"| `{SERVERS}/{file_of(server)}` | {server.broker or 'the only one'} | "
        f"{server.host}:{server.client} | {server.leafnodes} | {server.monitor} |\n"
        for server in plan.servers
    )
    missing = "".join(f"- {each}\n" for each in lacking) or "- nothing of this plan\n"
    agents = ", ".join(f"`{plan.servers[broker].broker}`" for broker in plan.agents)
    told = (
        f"Brokers {agents} also need an agent, which sends to channels and forwards on shortcuts: "
        "leafnodes refuse cycles, so these hops cannot be theirs.\n\n"
        "```\npython -m fanplan.live.nats THIS-FOLDER BROKER\n```\n"
        if agents
        else "No broker needs an agent: leafnodes do all of it.\n"
    )
    return f"""# The plan on NATS

Epoch `{plan.epoch}`, {len(plan.servers)} servers, {len(ways.edges)} trees of leafnodes.

## Files

| file | broker | clients | leafnodes | monitor |
| --- | --- | --- | --- | --- |
{rows}
`{FILE}` says where each flow is published and what everybody listens to; `entry.json` and
`entry.npz` how the flow of a publication is found. The library reads these three.

## Start

```
nats-server -c {SERVERS}/{file_of(plan.servers[0])} -P {SERVERS}/{pid_file_of(plan.servers[0])}
```

and so on for every file, in any order. `-P` leaves the number of the process, which a switch to
another plan needs (docs/systems.md). Hosts and ports are in these files and in `{FILE}`: change
them in both. The password of all accounts is the epoch; change it the same way.

{told}
## Applications

{APPLICATION}

Subjects are `fp.{plan.epoch}.<way>.<flow>.<topic>`. Whoever watches topics across flows listens to
`fp.{plan.epoch}.*.*.<topic>` with wildcards of its own.

## What is not expressed

{missing}"""
