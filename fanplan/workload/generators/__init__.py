"""Workloads of the papers, made from a few parameters and a seed."""

from __future__ import annotations

from importlib import import_module

from fanplan.core.errors import InputError, Problem
from fanplan.workload.generators.generated import Kind

KINDS = (
    "market",
    "random",
    "websphere",
    "subjects",
    "content",
    "brokers",
    "clients",
    "transit-stub",
    "tree-grid",
    "enterprise",
)


def load(name: str) -> Kind:
    """A kind by its name. Its module, and with it numpy and numba, is imported only now."""
    if name not in KINDS:
        remedy = f"Choose one of {', '.join(KINDS)}"
        raise InputError(Problem(name, "no such kind of workload", remedy))
    kind: Kind = import_module(f"{__name__}.{name.replace('-', '_')}").KIND
    return kind
