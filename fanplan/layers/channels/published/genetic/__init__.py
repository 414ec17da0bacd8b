"""The genetic mapping of Guimarães & Rodrigues (2003): one idea per file, assembled in ``plan``."""

from __future__ import annotations

from fanplan.layers.channels.published.genetic.evolve import State, advance, best, migrate, start
from fanplan.layers.channels.published.genetic.params import AtomicParams, GeneticParams
from fanplan.layers.channels.published.genetic.plan import (
    finished_atomic,
    finished_map,
    first_atomic,
    first_state,
    genetic,
    genetic_atomic,
)

__all__ = [
    "AtomicParams",
    "GeneticParams",
    "State",
    "advance",
    "best",
    "finished_atomic",
    "finished_map",
    "first_atomic",
    "first_state",
    "genetic",
    "genetic_atomic",
    "migrate",
    "start",
]
