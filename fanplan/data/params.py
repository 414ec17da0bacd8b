"""What can be asked of reading a workload, and of looking at what could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from fanplan.core.options import Options, option


@dataclass(frozen=True)
class ReadParams(Options):
    """When reading stops; every command that ingests on the way has it too."""

    lost_limit: float = option(
        0.5,
        "Stop if a table loses more than this share of its rows, 0 to 1; with 1 always go on.",
        at_least=0,
        at_most=1,
    )


@dataclass(frozen=True)
class QuarantineParams(Options):
    """Which rows in quarantine to look at."""

    table: str | None = option(None, "Only rows of this table.", shown="all tables")
    reason: str | None = option(
        None, "Only rows whose reason has this text in it.", shown="all reasons"
    )
    rows: int = option(10, "Rows to show as they came.", at_least=0)
