"""Plans of all layers that are edited and sealed again; `forging` judges what becomes of each."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from forged_worlds import PLANS
from forging import campaign, corruptions
from ready import stages_are_there

from chaos.count import Part

DESIGNS = ("design", "flat")


def attack_corruptions(
    folder: Path, count: int, seed: int, names: Collection[str] = tuple(PLANS)
) -> list[Part]:
    """About so many edits, spread over all that these plans say; none may be accepted unproved."""
    alone, together = Part("corruptions of one layer"), Part("corruptions of a design")
    with stages_are_there():
        plans = {name: PLANS[name](folder / "plans" / name) for name in names}
        there = sum(1 for plan, _ in plans.values() for _ in corruptions(plan, seed))
        every = max(1, there // count)
        for name, corruption, fate in campaign(plans, folder / "work", seed, every):
            part = together if name in DESIGNS else alone
            part.hold(fate != "ACCEPTED", f"{name}: {corruption.name} was accepted")
            part.notes[fate.lower()] += 1
    return [alone, together]
