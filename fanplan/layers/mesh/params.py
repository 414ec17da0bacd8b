"""What can be asked of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, option

Method = Literal["best", "greedy", "flat", "separate"]
Aim = Literal["links", "degree"]
Connect = Literal["topics", "flows"]

METHODS: tuple[str, ...] = get_args(Method)


@dataclass(frozen=True)
class MeshParams(Options):
    """Which subscribers are linked."""

    method: Method = option(
        "best", "best; or greedy (merge), flat (lowest degrees) or separate (a row for each topic)."
    )
    aim: Aim = option(
        "links", "With --method best: fewest links in all, or for the subscriber that has most."
    )
    degree: int | None = option(
        None, "With --method best: limit on the links of a subscriber.", at_least=1
    )
    connect: Connect = option(
        "topics",
        "Connect those who want a topic; or of each flow, so that nobody passes on what it does "
        "not want.",
    )

    def relations(self) -> Iterator[Problem]:
        if self.method != "best" and (self.aim != "links" or self.degree is not None):
            name = "aim" if self.aim != "links" else "degree"
            yield Problem(name, f"the method {self.method} has its own", "Use the method best")
        if self.aim == "degree" and self.degree is not None:
            yield Problem(
                "degree", "the aim is already the lowest possible", "Leave out one of them"
            )


def require_methods(names: list[str]) -> None:
    for name in names:
        if name not in METHODS:
            remedy = f"Use some of: {', '.join(METHODS)}"
            raise InputError(Problem("compare", f"{name!r} is unknown", remedy))


COMMANDS = (
    Command(
        "mesh",
        MeshParams,
        "Link subscribers, without brokers, so that those of each topic are connected.",
        seeded=True,
        timed=True,
        compare="separate,greedy,flat",
        compare_help="Methods to compare the plan with, such as greedy,flat",
        comparable=require_methods,
    ),
)
