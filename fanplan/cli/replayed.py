"""What a replay says, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.cli.show import say, show_facts

if TYPE_CHECKING:
    from fanplan.layers.layer import Outcome


def show_replay(result: Outcome) -> None:
    """Facts; those of marks apart if a plan has other layers too."""
    show_facts("Replay", result.facts())
    marks = getattr(result, "marks", None)
    if marks is not None:
        say("")
        show_facts("Marks", marks.facts())
