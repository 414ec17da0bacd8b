"""The agent of a broker: it does what leafnodes cannot, namely channels and hops off the tree.

A message that comes on a way is sent on to the servers of the next brokers, unchanged and without
matching, and to the channels of its flow.
"""

from __future__ import annotations

import asyncio

from fanplan.live.names import token
from fanplan.live.nats.plan import END, LOCAL, NatsPlan
from fanplan.live.nats.wire import Connection


class Agent:
    """One broker's agent. Its connections to other servers have the names of both."""

    def __init__(self, plan: NatsPlan, broker: int) -> None:
        self.plan, self.broker = plan, broker
        self.own = plan.agents[broker]
        self.heard: list[Connection] = []
        self._here = self._connection(broker, LOCAL, "agent")
        heads = {head for heads in self.own.forward.values() for head in heads}
        self._to = {
            head: self._connection(head, LOCAL, connection_name(plan, broker, head))
            for head in sorted(heads)
        }
        # By the way as it stands in a subject: connections to forward on, channels by flow.
        self._forward = {
            way.encode(): [self._to[head] for head in heads]
            for way, heads in self.own.forward.items()
        }
        self._channels = {
            (way.encode(), flow.encode()): [name.encode() for name in names]
            for way, flows in self.own.channels.items()
            for flow, names in flows.items()
        }
        for way, flows in self.own.channels.items():
            # All channels are sent to on one connection: one end marker is enough for all.
            self._channels[way.encode(), END.encode()] = [b"c"] if flows else []

    def _connection(self, broker: int, account: str, name: str) -> Connection:
        return Connection(self.plan.address(broker, account), name)

    async def open(self) -> Agent:
        for account in sorted({each.account for each in self.own.listens}):
            heard = self._connection(self.broker, account, "agent")
            heard.on_message = self.take
            for each in self.own.listens:
                if each.account == account:
                    heard.subscribe(each.subject)
            self.heard.append(heard)
        await asyncio.gather(*(each.open() for each in self.connections))
        return self

    @property
    def connections(self) -> list[Connection]:
        return [self._here, *self._to.values(), *self.heard]

    def take(self, _: int, subject: bytes, content: bytes) -> None:
        head, epoch, way, flow, topic = subject.split(b".", 4)
        for next_one in self._forward.get(way, ()):
            next_one.publish(subject, content)
        for channel in self._channels.get((way, flow), ()):
            self._here.publish(b".".join((head, epoch, channel, flow, topic)), content)

    async def flush(self) -> None:
        await asyncio.gather(*(each.flush() for each in self.connections))

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self.connections))


def connection_name(plan: NatsPlan, tail: int, head: int) -> str:
    """The name of a connection from a broker's agent to another broker's server."""
    return ">".join(token(plan.servers[broker].broker) for broker in (tail, head))
