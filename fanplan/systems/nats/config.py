"""The configuration of the server of each broker."""

from __future__ import annotations

import json
from pathlib import Path

from fanplan.live.names import token
from fanplan.live.nats.plan import LOCAL, NatsPlan, Server
from fanplan.network.trees import hang
from fanplan.systems.nats.enact import tree_account
from fanplan.systems.ways import Ways

Remotes = dict[int, list[tuple[str, int]]]
"""Of each broker the accounts and brokers that it connects to by leafnodes."""


def remotes_of(ways: Ways) -> Remotes:
    """Each link of each tree, from the end that is farther from the first broker."""
    found: Remotes = {broker: [] for broker in range(len(ways.brokers))}
    for number, edges in enumerate(ways.edges):
        if len(edges):
            tree = hang(edges, int(edges.min()), len(ways.brokers))
            for broker in tree.order[1:].tolist():
                found[broker].append((tree_account(number), int(tree.parent[broker])))
    return found


def file_of(server: Server) -> str:
    return f"{token(server.broker) if server.broker else 'broker'}.conf"


def config_of(plan: NatsPlan, broker: int, remotes: list[tuple[str, int]], store: str = "") -> str:
    """The text of a server's file; ``store`` is a folder for streams, if there are any."""
    server, word = plan.servers[broker], json.dumps(plan.password)
    users = "\n".join(
        f"  {account} {{ users: [ {{ user: {account}, password: {word} }} ]"
        f"{streams(account, store)} }}"
        for account in plan.accounts
    )
    trees = ", ".join(
        f"{{ user: {account}, password: {word}, account: {account} }}"
        for account in plan.accounts
        if account != LOCAL
    )
    to = "\n".join(
        f'    {{ url: "nats-leaf://{account}:{plan.password}@{other.host}:{other.leafnodes}",'
        f" account: {account} }}"
        for account, other in ((account, plan.servers[head]) for account, head in remotes)
    )
    kept = f"jetstream {{ store_dir: {json.dumps(store)} }}\n" if store else ""
    return f"""# The server of {json.dumps(server.broker)} in plan {plan.epoch}.
server_name: {json.dumps(token(server.broker))}
listen: "{server.host}:{server.client}"
http: "{server.host}:{server.monitor}"
write_deadline: "60s"
{kept}accounts {{
{users}
}}
leafnodes {{
  listen: "{server.host}:{server.leafnodes}"
  compression: off
  reconnect: "1s"
  authorization {{ users: [ {trees} ] }}
  remotes: [
{to}
  ]
}}
"""


def streams(account: str, store: str) -> str:
    return ", jetstream: enabled" if store and account == LOCAL else ""


def write_configs(plan: NatsPlan, ways: Ways, folder: Path, store: Path | None = None) -> None:
    """A file for each server."""
    remotes = remotes_of(ways)
    for broker, server in enumerate(plan.servers):
        kept = "" if store is None else str(store / token(server.broker))
        text = config_of(plan, broker, remotes[broker], kept)
        (folder / file_of(server)).write_text(text, encoding="utf-8")
