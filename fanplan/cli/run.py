"""What every command needs to run: an engine for Spark with progress on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fanplan.api import Engine


def engine(master: str | None, remote: str | None, quiet: bool) -> Engine:
    from fanplan.api import Engine
    from fanplan.progress import progress

    return Engine(master, remote, progress(quiet))
