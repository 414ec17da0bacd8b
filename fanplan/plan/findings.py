"""What a check finds, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fanplan.core.result import Result

EXAMPLES = 10
"""How many items a violation names."""

TOLERANCE = 1e-9
"""Relative: sums of fractions depend a little on their order."""


@dataclass
class Findings:
    """What is wrong and what is wasteful, one sentence for each kind, with examples."""

    violations: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def violate(self, what: str, count: int, examples: Sequence[str]) -> None:
        if count:
            self.violations.append(sentence(what, count, examples))

    def warn(self, what: str, count: int, examples: Sequence[str]) -> None:
        if count:
            self.warnings.append(sentence(what, count, examples))


def sentence(what: str, count: int, examples: Sequence[str]) -> str:
    """``what (count): example, example and 3 more``"""
    named = ", ".join(examples[:EXAMPLES])
    more = f" and {count - EXAMPLES} more" if count > EXAMPLES else ""
    return f"{what} ({count}): {named}{more}"


def require_close(
    what: str, stated: float, counted: float, scale: float, findings: Findings
) -> None:
    """Stated must equal counted, but for rounding in sums of numbers as large as ``scale``."""
    if not math.isclose(stated, counted, rel_tol=TOLERANCE, abs_tol=1e-12 * abs(scale)):
        findings.violate(what, 1, [f"stated {stated}, counted {counted}"])


def require_proved(what: str, stated: float, proved: float, findings: Findings) -> None:
    """A lower bound may be below what the check can prove itself, but not above."""
    if stated > proved * (1 + TOLERANCE):
        findings.violate(what, 1, [f"stated {stated}, but only {proved} is proved"])


@dataclass(frozen=True)
class Missed:
    """How many are not reached that must be, and the first (flow, subscriber) pairs of them."""

    count: int = 0
    first: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """What the check found. ``missed`` counts (flow, interested subscriber) pairs not served.

    Violations make a plan wrong; warnings name what it does in vain. ``stated`` names what
    plan.json says that tables alone do not prove.
    """

    missed: int
    violations: tuple[str, ...]
    warnings: tuple[str, ...]
    unserved: tuple[tuple[str, str], ...]
    stated: tuple[str, ...] = ()

    def with_violation(self, what: str) -> CheckResult:
        return replace(self, violations=(*self.violations, what))

    def planned_again(self, differing: list[str]) -> CheckResult:
        """With what came out otherwise when it was planned again; if nothing did, all is proved."""
        if differing:
            what = sentence("planned again, it differs", len(differing), differing)
            return self.with_violation(what)
        return replace(self, stated=())

    @property
    def ok(self) -> bool:
        return not self.violations

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "missed": self.missed,
            "violations": list(self.violations),
            "warnings": list(self.warnings),
            "stated": list(self.stated),
        }

    def notes_shown(self) -> Iterable[str]:
        return (*self.violations, *self.warnings)
