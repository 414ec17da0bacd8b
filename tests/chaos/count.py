"""What a part of the attack counts: tried, survived, and each failure in a sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN = 5
"""Failures of a part that are told one by one."""


@dataclass
class Part:
    """One kind of attack. Nothing is both survived and failed."""

    name: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def hold(self, held: bool, what: str, attacks: int = 1) -> None:
        """Count attacks that were survived together, or one failure among them."""
        self.tried += attacks
        if not held:
            self.failures.append(what)

    @property
    def survived(self) -> int:
        return self.tried - len(self.failures)

    def row(self) -> list[str]:
        notes = ", ".join(f"{count:,} {what}" for what, count in sorted(self.notes.items()))
        return [self.name, f"{self.tried:,}", f"{self.survived:,}", str(len(self.failures)), notes]


def as_markdown(parts: list[Part]) -> str:
    """The table of all parts."""
    head = ["attack", "tried", "survived", "failed", "of these"]
    rows = [head, ["---"] * len(head), *(part.row() for part in parts)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def told(part: Part) -> str:
    """A part in lines for a terminal."""
    lines = [" · ".join(text for text in part.row() if text)]
    lines += [f"  failed: {what}" for what in part.failures[:SHOWN]]
    if len(part.failures) > SHOWN:
        lines.append(f"  and {len(part.failures) - SHOWN} more")
    return "\n".join(lines)
