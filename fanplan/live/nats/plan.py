"""A plan as subjects: where publishers send each flow, what subscribers and agents listen to.

An export has it as ``nats.json``. A subject is ``fp.<epoch>.<way>.<flow>.<topic>``: the topic comes
last, so that wildcards of users still work. A way is a number, ``c`` and a channel, ``d`` for what
goes directly, or ``x`` for flows that the plan does not know. Each tree of links is an account, and
``local`` is one more that does not leave its server. ``fp.<epoch>.<way>.end.<source>`` says that a
publisher sends no more in this epoch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.live.nats.wire import Address

FILE = "nats.json"
LOCAL = "local"
DIRECT, DEFAULT = "d", "x"
NO_FLOW = "-"
END = "end"
"""In place of a flow: the marker of a publisher that goes on with another plan."""
AGAIN = "fp-again"
"""Before the epoch and the number of a publisher: what was lost of it; before a random number:
where its answer is to go. Both in the account `local` of its server."""
EXPORT_AGAIN = "Write the export again with `fanplan export`"

Target = tuple[str, str]
"""An account, and the way in a subject."""


@dataclass(frozen=True)
class Server:
    """The server of a broker, and its ports."""

    broker: str
    host: str
    client: int
    leafnodes: int
    monitor: int


@dataclass(frozen=True, order=True)
class Listening:
    """A subject that somebody listens to at a broker, by its number, in an account."""

    broker: int
    account: str
    subject: str


@dataclass(frozen=True)
class AgentPlan:
    """What the agent of a broker does.

    What comes on a way goes on to the servers ``forward`` names, and to channels by way and flow.
    """

    listens: tuple[Listening, ...]
    forward: dict[str, tuple[int, ...]]
    channels: dict[str, dict[str, tuple[str, ...]]]


@dataclass(frozen=True)
class NatsPlan:
    """All that clients and agents need. ``publish[entry][flow]`` has the targets of a flow there.

    ``entries`` are the brokers of publishers, ``listens`` what each subscriber listens to.
    ``default`` are the accounts that unknown flows are sent in, by entry. ``remotes`` are the
    accounts and brokers that a broker's server connects to by leafnodes.
    """

    epoch: str
    password: str
    accounts: tuple[str, ...]
    servers: tuple[Server, ...]
    entries: dict[str, int]
    publish: dict[int, dict[int, tuple[Target, ...]]]
    default: dict[int, str]
    listens: dict[str, tuple[Listening, ...]]
    agents: dict[int, AgentPlan]
    remotes: dict[int, tuple[tuple[str, int], ...]]

    @property
    def prefix(self) -> str:
        return f"fp.{self.epoch}"

    @property
    def trees(self) -> tuple[str, ...]:
        """The accounts of trees."""
        return tuple(account for account in self.accounts if account != LOCAL)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each broker."""
        return {server.broker: number for number, server in enumerate(self.servers)}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Publishers by the number that their messages have."""
        return tuple(sorted(self.entries))

    def user(self, account: str) -> str:
        """The user of an account in this plan; trees have accounts of that name too."""
        return f"{account}_{self.epoch}"

    def accounts_at(self, entry: int) -> list[str]:
        """The accounts that publishers at an entry send in; that of unknown flows is the first."""
        first = self.default.get(entry, self.accounts[0])
        others = {a for to in self.publish.get(entry, {}).values() for a, _ in to} - {first}
        return [first, *sorted(others)]

    def address(self, broker: int, account: str) -> Address:
        server = self.servers[broker]
        return Address(server.host, server.client, self.user(account), self.password)

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def load_plan(folder: Path) -> NatsPlan:
    """Read what `NatsPlan.save` wrote."""
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return NatsPlan(
            epoch=told["epoch"],
            password=told["password"],
            accounts=tuple(told["accounts"]),
            servers=tuple(Server(**server) for server in told["servers"]),
            entries=told["entries"],
            publish={
                int(entry): {int(f): tuple(map(tuple, to)) for f, to in flows.items()}
                for entry, flows in told["publish"].items()
            },
            default={int(entry): account for entry, account in told["default"].items()},
            listens={who: heard(rows) for who, rows in told["listens"].items()},
            agents={int(broker): agent_of(agent) for broker, agent in told["agents"].items()},
            remotes={
                int(b): tuple((a, int(to)) for a, to in r) for b, r in told["remotes"].items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"is not an export for NATS ({error})"
        raise InputError(Problem(str(folder), what, EXPORT_AGAIN)) from error


def heard(rows: list[dict[str, Any]]) -> tuple[Listening, ...]:
    return tuple(Listening(**row) for row in rows)


def agent_of(told: dict[str, Any]) -> AgentPlan:
    channels = {
        way: {flow: tuple(names) for flow, names in flows.items()}
        for way, flows in told["channels"].items()
    }
    forward = {way: tuple(heads) for way, heads in told["forward"].items()}
    return AgentPlan(heard(told["listens"]), forward, channels)
