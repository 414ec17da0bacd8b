"""Ends of NATS by name, for the library."""

from __future__ import annotations

from pathlib import Path

from fanplan.live.entry import load_entry
from fanplan.live.nats.ends import NatsIncoming, NatsOutgoing
from fanplan.live.nats.follow import Follower, PublisherFollower, SubscriberFollower
from fanplan.live.nats.plan import load_plan
from fanplan.live.publisher import Publishing
from fanplan.live.subscriber import Subscribed

DURABLE = True
"""Whether publishers can be asked for what was lost."""


def outgoing(folder: Path, name: str) -> NatsOutgoing:
    return NatsOutgoing(load_plan(folder), name, load_entry(folder))


def incoming(folder: Path, name: str) -> tuple[bytes, NatsIncoming]:
    plan = load_plan(folder)
    return bytes.fromhex(plan.epoch), NatsIncoming(plan, name)


def following(folder: Path, name: str, client: Publishing | Subscribed) -> Follower:
    plan = load_plan(folder)
    if isinstance(client, Publishing):
        return PublisherFollower(plan, name, client)
    return SubscriberFollower(plan, name, client)
