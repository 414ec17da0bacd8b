"""The policy on a sequence of worlds, beside never, every window and the best plan in hindsight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from fanplan.watching.params import PolicyParams
from fanplan.watching.policy import InWindow, Stance, after_step, pays, seen

Plan = TypeVar("Plan")


class World(Protocol[Plan]):
    """A window: what is estimated from the past to plan with, and what is truly sent."""

    def believed(self, plan: Plan) -> float:
        """What a plan costs by the estimate."""

    def true(self, plan: Plan) -> float:
        """What it costs in this window."""

    def fresh(self) -> Plan:
        """A plan made afresh, by the estimate."""

    def step(self, plan: Plan, churn: int, price: float) -> Plan:
        """A plan changed at most this much, each change at a price."""

    def changes(self, old: Plan, new: Plan) -> int:
        """How many changes lead from one to the other."""

    def places(self, plan: Plan) -> int:
        """How many members and flows its channels have."""


@dataclass
class Course(Generic[Plan]):
    """What one way to replan came to: the plan in force, and costs and changes by window."""

    plan: Plan
    costs: list[float] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)

    def go_on(self, world: World[Plan], plan: Plan) -> None:
        self.changes.append(world.changes(self.plan, plan))
        self.costs.append(world.true(plan))
        self.plan = plan


def courses(
    worlds: Iterable[World[Plan]], first: Plan, hindsight: Plan, params: PolicyParams
) -> dict[str, Course[Plan]]:
    """All ways from the same first plan; ``hindsight`` was made for all windows together."""
    found = {name: Course(first) for name in ("never", "every window", "policy")}
    found["hindsight"] = Course(hindsight)
    standing = Stance()
    for number, world in enumerate(worlds):
        fresh = world.fresh()
        found["never"].go_on(world, first)
        found["hindsight"].go_on(world, hindsight)
        found["every window"].go_on(world, fresh)
        standing, plan = follow_window(world, found["policy"].plan, fresh, standing, number, params)
        found["policy"].go_on(world, plan)
    return found


def follow_window(
    world: World[Plan], plan: Plan, fresh: Plan, standing: Stance, window: int, params: PolicyParams
) -> tuple[Stance, Plan]:
    """One window of the policy."""
    now = world.believed(plan)
    evidence = InWindow(window, now, world.believed(fresh), world.places(fresh))
    standing = seen(standing, evidence, params)
    if not standing.moving:
        return standing, plan
    price = evidence.price(standing.price(params))
    offered = world.step(plan, params.most(evidence.places), price)
    taken = pays(evidence, world.believed(offered), world.changes(plan, offered), price)
    return after_step(standing, taken), offered if taken else plan
