"""Overlay plans: brokers as they are, or those that clients need, linked."""

from __future__ import annotations

from fanplan.layers.overlay.allocate import plan_allocation
from fanplan.layers.overlay.linking import plan_overlay

PLANS = {"overlay": plan_overlay, "allocate": plan_allocation}
