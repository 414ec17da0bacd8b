"""The configuration of the server of each broker."""

from __future__ import annotations

from pathlib import Path

from fanplan.live.names import token
from fanplan.live.nats.config import config_of, file_of
from fanplan.live.nats.plan import NatsPlan


def write_configs(plan: NatsPlan, folder: Path, store: Path | None = None) -> None:
    """A file for each server."""
    for server in plan.servers:
        kept = "" if store is None else str(store / token(server.broker))
        (folder / file_of(server)).write_text(config_of([plan], server, kept), encoding="utf-8")
