"""A server ends in the middle, as in a power cut, and starts again: what is lost, and what not.

Two thirds of the publications are sent while it happens. When everybody is ready again, the rest
must arrive as predicted. Durable publications are kept in a stream at their entry, acknowledged,
and what was sent since the last barrier is sent again by sequence number, marked: then nothing of
the first part is missing either.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np

from fanplan.core.arrays import places_among
from fanplan.systems.nats.receive import Copy, joined
from fanplan.systems.nats.run import Run
from fanplan.systems.nats.streams import kept_in_streams
from fanplan.systems.traffic import DESCENT, Traffic, received_figures
from fanplan.systems.trial import Row, Tried

SENT_SECONDS, DOWN_SECONDS = 2.0, 0.6
KILL_AFTER, AWAY_AFTER, START_AFTER = 0.25, 0.4, 0.65
"""Parts of what is sent: on a busy machine seconds alone would not tell what a server misses. It is
killed in the midst of the first, and what comes after the second waits until it is away."""
PATIENCE, GLANCE = 30.0, 0.01


async def disturbed(run: Run, name: str) -> Tried:
    """The first part with a kill, the rest as ever."""
    broker, first = run.traffic.ways.brokers.index(name), 2 * run.traffic.size // 3
    if run.params.durable:
        async with kept_in_streams(run) as streams:
            down = await lost_part(run, broker, first)
            again = await streams.send_again()
            await run.settled()
            run.late.append(run.tally.taken())
    else:
        down, again = await lost_part(run, broker, first), 0
    await run.barrier()
    result = await run.measured(first)
    facts = {"down_seconds": down, "sent_again": again}
    return with_losses(run, result, joined(run.late), first, facts)


async def lost_part(run: Run, broker: int, first: int) -> float:
    """Send while a server is away; how long it was."""
    with run.progress.stage(f"send while {run.params.kill} is away"):
        before, copies = run.sent, int(run.traffic.copies[run.traffic.parcel[:first]].sum())
        away = asyncio.Event()
        sending = asyncio.create_task(send_around(run, first, away))
        await until_sent(run, before + KILL_AFTER * copies)
        began = time.monotonic()
        await asyncio.to_thread(run.servers.kill, broker)
        away.set()
        await asyncio.sleep(DOWN_SECONDS)
        await until_sent(run, before + START_AFTER * copies)
        run.servers.start(broker)
        await asyncio.to_thread(run.servers.await_ready)
        down = time.monotonic() - began
        await sending
        await run.settled()
        run.late.append(run.tally.taken())
        await run.barrier()
    return down


async def send_around(run: Run, first: int, away: asyncio.Event) -> None:
    """Send as time goes on, but what the server is to miss only when it is away."""
    missed = int(AWAY_AFTER * first)
    await run.send(range(missed), AWAY_AFTER * SENT_SECONDS)
    await away.wait()
    await run.send(range(missed, first), (1 - AWAY_AFTER) * SENT_SECONDS)


async def until_sent(run: Run, copies: float) -> None:
    """Until this many copies were sent, or somebody is in the way of it."""
    deadline = time.monotonic() + PATIENCE
    while run.sent < copies and time.monotonic() < deadline:
        await asyncio.sleep(GLANCE)


def with_losses(
    run: Run, result: Tried, copies: Copy, first: int, facts: dict[str, float]
) -> Tried:
    """The result of the rest, with what was lost of the first part; if durable, none may be."""
    wanted = run.traffic.wanted
    before = replace(run.traffic, wanted=wanted[wanted < first * len(run.traffic.ways.subscribers)])
    copies = copies.only(copies.number < first)
    unmarked = copies.only(~copies.again)
    lost = count_of(received_figures(before, *copies[:3]), "missed")
    late = count_of(received_figures(before, *unmarked[:3]), DESCENT)
    rows = (
        Row(("while away", "deliveries", "lost"), 0, lost),
        Row(("while away", "copies", "neither planned nor marked"), 0, too_many(before, unmarked)),
    )
    facts = {"sent_while_away": first, "lost_while_away": lost, **facts}
    facts["out_of_order_while_away"] = late
    shown = rows if run.params.durable else ()
    note = f"the other figures are of the {run.traffic.size - first:,} sent after recovery"
    return replace(
        result,
        rows=shown + result.rows,
        facts={**result.facts, **facts},
        notes=(*result.notes, note),
    )


def too_many(traffic: Traffic, copies: Copy) -> int:
    """Copies beyond those that the plan itself has of a publication for a subscriber."""
    people, own = len(traffic.ways.subscribers), traffic.ways.copies
    pair, count = np.unique(copies.number * people + copies.who, return_counts=True)
    parcel = traffic.parcel[pair // people]
    at = places_among(own.parcel * people + own.subscriber, parcel * people + pair % people)
    planned = np.append(own.copies, 0)[at]
    return int(np.maximum(count - planned, 0).sum())


def count_of(figures: dict[tuple[str, ...], int], what: str) -> int:
    return sum(count for key, count in figures.items() if key[0] == "subscriber" and key[2] == what)
