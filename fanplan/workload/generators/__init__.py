"""Workloads of the papers, made from a few parameters and a seed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fanplan.core.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.workload.generators.generated import WorkloadKind

KINDS = {
    "market": "plain_topics",
    "random": "plain_topics",
    "websphere": "plain_topics",
    "structured": "plain_topics",
    "subjects": "subjects",
    "content": "subjects",
    "brokers": "clients",
    "clients": "clients",
    "transit-stub": "networks",
    "tree-grid": "networks",
    "enterprise": "enterprise",
    "options": "listed_options",
    "cloud": "cloud",
}
"""The kinds by name, each with the module that makes it."""


def load_kind(name: str) -> WorkloadKind:
    """A kind by its name. Its module, and with it numpy and numba, is imported only now."""
    if name not in KINDS:
        remedy = f"Choose one of {', '.join(KINDS)}"
        raise InputError(Problem(name, "no such kind of workload", remedy))
    kind: WorkloadKind = getattr(
        import_module(f"{__name__}.{KINDS[name]}"), name.replace("-", "_").upper()
    )
    return kind
