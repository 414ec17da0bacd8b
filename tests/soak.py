"""Plan after plan on a real NATS network while messages flow; the table of docs/switching.md.

    PYTHONPATH=tests python tests/soak.py [--changes 20] [--docs docs/switching.md]

Every plan has other homes, links, groups and channels. After each change the network comes to rest
and what servers count on every link is held against the plan. Then the same again, with a server
killed in the middle of every second change, without and with durable publishers.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from delivery_datasets import World
from ready import stages_are_there
from switching import (
    Applications,
    applications,
    brokers,
    exported,
    first_ones,
    free_port,
    links_there,
    moved,
    served,
    traffic,
    world_of,
)

from fanplan.layers.groups.changes import Group, groups_of
from fanplan.layers.registry import load_plan
from fanplan.live.nats.plan import load_plan as load_nats
from fanplan.live.switch import SwitchReport, switch
from fanplan.plan.stored import StoredPlan
from fanplan.systems.nats.counters import at_rest, since
from fanplan.systems.nats.run import predicted_figures
from fanplan.systems.nats.servers import Servers
from fanplan.systems.traffic import read_traffic
from fanplan.systems.ways import Figures

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
DOWN_SECONDS = 0.6


@dataclass
class Version:
    """A plan of the soak."""

    world: World
    export: Path

    def predicted(self) -> Figures:
        """What its publications cause on links."""
        return links(predicted_figures(read_traffic(self.plan, self.dataset), self.plan))

    @property
    def plan(self) -> StoredPlan:
        return load_plan(self.export.parent / "plan")

    @property
    def dataset(self) -> Path:
        return self.export.parent / "dataset"

    @property
    def groups(self) -> set[Group]:
        return {*groups_of(self.plan).values()}


@dataclass
class Result:
    """What a soak found. ``links`` has how many directed links were as predicted, of how many.

    ``whole`` counts changes that moved links, homes, groups and channels, all four of them.
    """

    name: str
    servers: int
    reports: list[SwitchReport] = field(default_factory=list)
    links: list[tuple[int, int]] = field(default_factory=list)
    groups: int = 0
    channels: int = 0
    whole: int = 0
    kills: int = 0
    messages: int = 0
    deliveries: int = 0
    missed: int = 0
    twice: int = 0
    out_of_order: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self) -> str:
        agree, of = (
            (sum(column) for column in zip(*self.links, strict=True)) if self.links else (0, 0)
        )
        moved = sum(r.links_added + r.links_removed for r in self.reports)
        again = sum(r.sent_again for r in self.reports)
        worst = max(self.seconds)
        typical = sorted(self.seconds)[len(self.seconds) // 2]
        homes = sum(r.homes_moved for r in self.reports)
        cells = (
            self.servers, len(self.reports), self.whole, self.kills, moved, homes, self.groups,
            self.channels, self.messages, self.deliveries, self.missed, self.twice,
            self.out_of_order, again,
        )  # fmt: skip
        told = (f"{agree:,} of {of:,}", f"{typical:.1f}, {worst:.1f}")
        return "| " + " | ".join((self.name, *(f"{cell:,}" for cell in cells), *told)) + " |"

    def count_moves(self, old: Version, new: Version, report: SwitchReport) -> None:
        groups = len(old.groups ^ new.groups)
        channels = len(memberships(old.export) ^ memberships(new.export))
        self.groups, self.channels = self.groups + groups, self.channels + channels
        links = report.links_added + report.links_removed
        self.whole += all((links, report.homes_moved, groups, channels))
        self.reports.append(report)


COLUMNS = (
    "run", "servers", "plan changes", "of these moved all four", "servers killed", "links moved",
    "homes moved", "groups moved", "memberships of channels moved", "published", "delivered",
    "missed", "twice", "out of order", "sent again", "links as predicted",
    "seconds, median and most",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n{'| --- ' * len(COLUMNS)}|\n"


def links(figures: Figures) -> Figures:
    return {key: count for key, count in figures.items() if key[0] == "link" and count}


def memberships(export: Path) -> set[tuple[str, str, str]]:
    """Who listens to which channel where."""
    plan = load_nats(export)
    return {
        (who, each.subject.split(".")[2], plan.servers[each.broker].broker)
        for who, heard in plan.listens.items()
        for each in heard
        if each.subject.split(".")[2].startswith("c")
    }


async def send_all(found: Applications, version: Version, seconds: float) -> None:
    """The publications that the plan was made from, each by its own publisher."""
    for _, name, topic, _, value in version.world.sent:
        own = found.sent[name]
        own.append((topic, value))
        number = found.before[name] + len(own) - 1
        await found.publishers[name].send(topic, {"value": value}, f"{name} {number}".encode())
    await found.arrived(seconds)


async def measured(
    found: Applications, version: Version, running: Servers, seconds: float
) -> tuple[int, int]:
    """How many directed links carry what is predicted, of all that carry or should carry any."""
    await links_there(running, version.export)
    before = await asyncio.to_thread(at_rest, running, 10.0, time.sleep)
    await send_all(found, version, seconds)
    after = await asyncio.to_thread(at_rest, running, 10.0, time.sleep)
    got, said = links(since(after, before)), version.predicted()
    keys = {*got, *said}
    return sum(got.get(key, 0) == said.get(key, 0) for key in keys), len(keys)


async def soaked(
    name: str, versions: list[Version], publishers: list[str], running: Servers, kill: int = 0,
    durable: bool = False,
) -> Result:  # fmt: skip
    """Change from plan to plan; with ``kill`` a server ends in the middle of every so many."""
    result, draw = Result(name, len(running.servers)), Random(len(versions))
    first = versions[0]
    await links_there(running, first.export)
    async with applications(first.export, first.world, publishers, durable) as found:
        await first_ones(found)
        for at, (old, new) in enumerate(pairwise(versions)):
            struck = bool(kill) and at % kill == kill // 2
            async with traffic(found, at):
                await asyncio.sleep(0.2)
                began = time.monotonic()
                changing = asyncio.create_task(asyncio.to_thread(switch, old.export, new.export))
                if struck:
                    await strike(running, draw)
                    result.kills += 1
                report = await changing
                result.seconds.append(time.monotonic() - began)
                await asyncio.sleep(0.2)
            result.count_moves(old, new, report)
            # What is lost without durable publishers never comes.
            patience = 1.0 if kill and not durable else 20.0
            await found.arrived(patience if not found.missed() else 1.0)
            result.links.append(await measured(found, new, running, patience))
            print(at, report, result.links[-1], found.missed(), flush=True)
            print(*found.out_of_order()[:20], sep="\n", flush=True)
        result.messages = sum(map(len, found.sent.values()))
        result.deliveries, result.missed = found.delivered, found.missed()
        result.twice, result.out_of_order = found.twice(), len(found.out_of_order())
    return result


async def strike(running: Servers, draw: Random) -> None:
    """End a server as a power cut would, and start it again."""
    await asyncio.sleep(draw.uniform(0.1, 1.0))
    broker = draw.randrange(len(running.servers))
    await asyncio.to_thread(running.kill, broker)
    await asyncio.sleep(DOWN_SECONDS)
    running.start(broker)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--docs", type=Path)
    given = parser.parse_args()
    with (
        stages_are_there(),
        brokers(given.brokers, 4) as names,
        tempfile.TemporaryDirectory() as tmp,
    ):
        versions = made(Path(tmp), given.changes, given.brokers, given.people, names)
        table = HEAD
        # The last change is not disturbed: what was lost is sent again then at the latest.
        few = versions[: max(2 * (given.changes // 4), 2) + 2]
        for name, some, kill, durable in (
            ("undisturbed", versions, 0, False),
            ("a server killed in every second change", few, 2, False),
            ("the same, durable", few, 2, True),
        ):
            restored(versions[0], versions)
            with served(versions[0].export) as running:
                result = asyncio.run(soaked(name, some, names, running, kill, durable))
            table += result.row() + "\n"
            print(result.row(), flush=True)
            if given.docs is not None:
                write_table(given.docs, table)


def made(folder: Path, changes: int, brokers: int, people: int, names: list[str]) -> list[Version]:
    """Plans that follow each other."""
    draw, port, versions = Random(7), free_port(brokers), list[Version]()
    world = world_of(draw, brokers, people, names)
    for number in range(changes + 1):
        own = folder / f"v{number}"
        versions.append(
            Version(world, exported(own, world, port, number + 1, channels=2 + number % 3))
        )
        world = moved(draw, world, brokers)
    return versions


def write_table(page: Path, table: str) -> None:
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{table}{END}{rest.split(END)[1]}", encoding="utf-8")


def restored(first: Version, versions: list[Version]) -> None:
    """Everything as exports had it: no records, and the files of servers of the first plan."""
    from fanplan.live.nats.config import write_configs
    from fanplan.live.nats.record import RECORD

    for version in versions:
        (version.export / RECORD).unlink(missing_ok=True)
    write_configs(load_nats(first.export), first.export / "servers")


if __name__ == "__main__":
    main()
