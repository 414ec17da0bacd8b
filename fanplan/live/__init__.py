"""Clients that follow a plan. They need what an export wrote, and neither the dataset nor Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Publisher", "Subscriber"]

if TYPE_CHECKING:
    from fanplan.live.client import Publisher, Subscriber


def __getattr__(name: str) -> Any:
    """Names in a subject need none of what matching needs: it is loaded with the clients."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fanplan.live import client

    return getattr(client, name)
