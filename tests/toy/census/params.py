"""What can be asked of a census."""

from __future__ import annotations

from dataclasses import dataclass

from fanplan.core.options import Command, Options, option


@dataclass(frozen=True)
class CensusParams(Options):
    """Which topics are listed."""

    least: int = option(1, "Leave out topics with fewer subscribers.", at_least=0)


COMMANDS = (Command("census", CensusParams, "Count how many subscribers want each topic."),)
