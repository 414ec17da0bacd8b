"""Clients that follow a plan, and a matcher that needs none.

Clients need what an export wrote, the matcher a ``workload.toml``; none of them a dataset or Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Matcher", "Publisher", "Subscriber"]

if TYPE_CHECKING:
    from fanplan.live.client import Publisher, Subscriber
    from fanplan.live.matcher import Matcher


def __getattr__(name: str) -> Any:
    """Names in a subject need none of what matching needs: it is loaded with who does that."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "matcher" if name == "Matcher" else "client"
    return getattr(import_module(f"fanplan.live.{module}"), name)
