"""What a replay says, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fanplan.cli.show import show_facts

if TYPE_CHECKING:
    from fanplan.evaluation.replayed import Replayed
    from fanplan.evaluation.replayed_groups import ReplayedGroups
    from fanplan.evaluation.replayed_marks import ReplayedMarks
    from fanplan.plan.delivery.replayed import ReplayedDelivery


def show_replay(result: Replayed | ReplayedGroups | ReplayedMarks | ReplayedDelivery) -> None:
    """Facts; those of marks apart if a plan has other layers too."""
    show_facts("Replay", result.facts())
    marks = getattr(result, "marks", None)
    if marks is not None:
        typer.echo()
        show_facts("Marks", marks.facts())
