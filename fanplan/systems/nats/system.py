"""NATS, as a system that plans run on."""

from __future__ import annotations

from fanplan.systems.nats.export import export, lacks
from fanplan.systems.nats.servers import server_program
from fanplan.systems.nats.trial import trial
from fanplan.systems.system import System

SYSTEM = System("nats", lacks, export, trial, server_program)
