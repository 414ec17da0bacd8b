"""Design: every layer that a workload allows, planned together, in one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fanplan.api.allocations import allocate
from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.design_steps import Steps, broker_steps, flat_steps, savings, with_descriptors
from fanplan.api.engine import EMBEDDED, Engine
from fanplan.api.overlay_plans import OverlayPlan, overlay
from fanplan.api.overlay_stages import make_senders
from fanplan.api.running import Watch
from fanplan.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.plan.channels.types import ChannelLayer
    from fanplan.plan.delivery.types import DeliveryLayer
    from fanplan.plan.groups.types import GroupsLayer
    from fanplan.plan.marking.types import MarkingLayer
    from fanplan.plan.overlay.types import OverlayLayer
    from fanplan.plan.store import Layer
    from fanplan.planners.delivery.joint import Judged
    from fanplan.planners.delivery.params import DeliveryParams
    from fanplan.planners.stop import Stop
    from fanplan.problem.delivery import DeliveryProblem
    from fanplan.problem.interest import Ints

LAYERS = ("channels", "groups", "direct", "marking")
"""What can be switched off; without an overlay there would be nothing to plan them on."""
