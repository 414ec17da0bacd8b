"""Cyclone DDS, as a system that plans run on."""

from __future__ import annotations

from fanplan.systems.cyclonedds.export import export, lacks
from fanplan.systems.system import System

SYSTEM = System("cyclonedds", lacks, export)
