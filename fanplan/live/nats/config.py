"""The configuration of a broker's server, for one plan, or for two while they change places.

The accounts of trees are a plan's own, so that two plans have links side by side that share no
cycle and no message. The account `local` is shared, with a user for each plan: streams stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fanplan.live.names import token
from fanplan.live.nats.plan import LOCAL, NatsPlan, Server


def file_of(server: Server) -> str:
    return f"{token(server.broker) if server.broker else 'broker'}.conf"


def pid_file_of(server: Server) -> str:
    """Where a server leaves its process number."""
    return file_of(server).removesuffix(".conf") + ".pid"


def config_of(plans: Sequence[NatsPlan], server: Server, store: str = "") -> str:
    """The text of a server's file; ``store`` is a folder for streams, if there are any."""
    epochs = " and ".join(plan.epoch for plan in plans)
    accounts = [account_of(plan, name) for plan in plans for name in plan.trees]
    local = ", ".join(user_of(plan, LOCAL) for plan in plans)
    remotes = [remote for plan in plans for remote in remotes_at(plan, server)]
    kept = f"jetstream {{ store_dir: {json.dumps(store)} }}\n" if store else ""
    return f"""# The server of {json.dumps(server.broker)} in plan {epochs}.
server_name: {json.dumps(token(server.broker))}
listen: "{server.host}:{server.client}"
http: "{server.host}:{server.monitor}"
write_deadline: "60s"
{kept}accounts {{
{lines(accounts)}  {LOCAL} {{ users: [ {local} ]{stream_settings(store)} }}
}}
leafnodes {{
  listen: "{server.host}:{server.leafnodes}"
  compression: off
  reconnect: "1s"
  remotes: [
{lines(remotes)}  ]
}}
"""


def lines(parts: Sequence[str]) -> str:
    return "".join(f"{part}\n" for part in parts)


def user_of(plan: NatsPlan, account: str) -> str:
    return f"{{ user: {plan.user(account)}, password: {json.dumps(plan.password)} }}"


def account_of(plan: NatsPlan, account: str) -> str:
    return f"  {plan.user(account)} {{ users: [ {user_of(plan, account)} ] }}"


def remotes_at(plan: NatsPlan, server: Server) -> list[str]:
    """The leafnodes that a server opens; none if the plan does not have its broker."""
    found = []
    for account, head in plan.remotes.get(plan.number.get(server.broker, -1), ()):
        name, other = plan.user(account), plan.servers[head]
        url = f"nats-leaf://{name}:{plan.password}@{other.host}:{other.leafnodes}"
        found.append(f'    {{ url: "{url}", account: {name} }}')
    return found


def stream_settings(store: str) -> str:
    return ", jetstream: enabled" if store else ""


def write_configs(plan: NatsPlan, folder: Path, store: Path | None = None) -> None:
    """A file for the server of each broker."""
    for server in plan.servers:
        kept = "" if store is None else str(store / token(server.broker))
        (folder / file_of(server)).write_text(config_of([plan], server, kept), encoding="utf-8")
