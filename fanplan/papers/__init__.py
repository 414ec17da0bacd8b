"""The papers' experiments, one module per paper: its settings and figures, nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fanplan.core.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.papers.experiment import Experiment

PAPERS = {
    "hybrid": "Bickson et al. 2010: channels and unicast together",
    "genetic": "Guimarães & Rodrigues 2003: a genetic algorithm for multicast mapping",
    "overlay": "Tajuddin 2011: trees of similar brokers, and few brokers for many clients",
    "hyper": "Zhang & Hu 2005: messages of a group matched once, and hops skipped",
    "matchmaker": "Ge et al. 2002: where advertisements and subscriptions travel and meet",
}
"""What each experiment is about. A module of that name here defines its ``EXPERIMENT``."""


def load_experiment(name: str) -> Experiment:
    """An experiment by its name. Its module, and with it the planners, is imported only now."""
    if name not in PAPERS:
        known = ", ".join(PAPERS)
        raise InputError(Problem(name, "no such paper", f"Use one of: {known}"))
    experiment: Experiment = import_module(f"{__name__}.{name}").EXPERIMENT
    return experiment
