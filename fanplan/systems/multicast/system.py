"""IP multicast, as a system that plans run on."""

from __future__ import annotations

from fanplan.systems.multicast.export import export, lacks
from fanplan.systems.multicast.network import require_root
from fanplan.systems.multicast.trial import trial
from fanplan.systems.system import System

SYSTEM = System("multicast", lacks, export, trial, require_root)
